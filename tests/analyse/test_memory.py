"""Memory of a switch's port, each number derived here by hand."""

from typing import Any

import pytest

from daqloom.analyse.memory import Memory, memory_of
from daqloom.scenario.schema.switches import Switch

COUNTED_BY_THE_BYTE = {"model": "shared-memory", "cell_size": "0 B", "cell_metadata": "0 B"}


def memory(is_paced: bool = False, inputs: int = 1, **keys: Any) -> Memory:
    return memory_of(Switch(**keys), ports=10, inputs=inputs, frame_bytes=1500, is_paced=is_paced)


@pytest.mark.parametrize("ports", [1, 2, 8, 100])
@pytest.mark.parametrize("alpha", [0.0625, 1.0, 8.0])
def test_equal_ports_of_a_pool_get_alpha_of_the_free_memory(ports: int, alpha: float) -> None:
    pool = memory(**COUNTED_BY_THE_BYTE, buffer="64 MB", alpha=alpha)
    each = alpha * 64e6 / (1 + ports * alpha)  # Choudhury and Hahne (1998)
    assert pool.most_bytes((ports - 1) * each) == pytest.approx(each)
    assert each == pytest.approx(alpha * (64e6 - ports * each))


def test_the_dedicated_part_comes_first_and_cells_are_counted_off() -> None:
    # 1500 B and 64 B of metadata take 7 cells of 256 B; 10 ports share 5 MB, alpha 1 takes half.
    cells = {"cell_size": "256 B", "cell_metadata": "64 B"}
    shared = memory(model="shared-memory", buffer="32 MB", dedicated="5 MB", **cells)
    assert shared.most_bytes(0) == pytest.approx((0.5e6 + 27e6 / 2) * 1500 / (7 * 256))
    full = memory(**COUNTED_BY_THE_BYTE, buffer="5 MB", dedicated="5 MB")
    assert full.most_bytes(0) == pytest.approx(0.5e6)


def test_queues_are_limited_in_bytes_packets_and_by_the_buffer() -> None:
    tail = {"model": "drop-tail", "queue_packets": 0}
    assert memory(**tail, port_limit="1 MB").most_bytes(9e9) == 1e6
    assert memory(**tail | {"queue_packets": 100}).most_bytes(9e9) == 150e3
    assert memory(**tail, buffer="3 MB").most_bytes(2e6) == 1e6
    assert memory(**tail, buffer="3 MB").most_bytes(4e6) == 0
    assert memory(model="voq", port_limit="1 MB", inputs=4).most_bytes(0) == 4e6
    assert memory(model="infinite").most_bytes(9e9) == float("inf")
    ring = {"model": "software", "queue_packets": 100, "descriptors": 60}
    assert memory(**ring).most_bytes(0) == 160 * 1500
    assert memory(is_paced=True, **ring).most_bytes(0) == 100 * 1500
    assert memory(is_paced=True, **ring, pause_at=40).most_bytes(0) == 40 * 1500
