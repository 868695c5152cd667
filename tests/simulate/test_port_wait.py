"""The size of a buffer, read off PortXmitWait: it is the configured one."""

import pytest

from daqloom.deployment.scenarios import load
from daqloom.simulate.port_wait import Probe, probe_of
from support.small_fabrics import simulated

BLOCK = 64


def probed(**changes: object) -> dict[str, float]:
    scenario = load("ib-buffer-probe", {k.replace("__", "."): v for k, v in changes.items()})
    return simulated(scenario)


@pytest.mark.parametrize("blocks", [256, 300, 511, 1024, 2048])
def test_packets_of_a_block_give_the_buffer_to_a_block(blocks: int) -> None:
    found = probed(network__switch__buffer=f"{blocks * BLOCK} B", flows__burst__size="160 KiB")
    assert found["inferred_buffer_bytes.least"] == blocks * BLOCK
    assert found["inferred_buffer_bytes.most"] == blocks * BLOCK


@pytest.mark.parametrize("size", [18, 64, 256, 1000, 4096])
@pytest.mark.parametrize("blocks", [389, 390, 1024])
def test_larger_packets_give_the_buffer_to_a_packet(size: int, blocks: int) -> None:
    found = probed(
        network__switch__buffer=f"{blocks * BLOCK} B",
        flows__stream__size=f"{size} B",
        flows__burst__size="160 KiB",
    )
    packet = -(-(-(-size // 4) * 4 + 26 + 16 + 4) // BLOCK)
    fitting = blocks // packet
    assert found["inferred_buffer_bytes.least"] == fitting * packet * BLOCK
    assert found["inferred_buffer_bytes.most"] == ((fitting + 1) * packet - 1) * BLOCK


LANES = [
    {"flows__stream__service_level": lane, "flows__burst__service_level": lane} for lane in range(4)
]
CUTS = [
    {"flows__burst__messages": messages, "flows__burst__size": f"{160 * 1024 // messages} B"}
    for messages in (1, 30, 400)
]


@pytest.mark.parametrize(
    "override",
    [
        *LANES,
        *CUTS,
        {"network__switch__credit_release": "per-block"},
        {"network__links__rate": "200 Gb/s"},
        {"network__links__delay": "500 ns"},
        {"transport__mtu": "256 B"},
        {"network__switch__input_queue": "fifo"},
    ],
)
def test_it_holds_for_each_lane_any_cut_of_the_burst_and_other_switches(
    override: dict[str, object],
) -> None:
    found = probed(**override)
    assert found["inferred_buffer_bytes.least"] == 64 * 1024
    assert found["inferred_buffer_bytes.most"] == 64 * 1024


def test_updates_at_intervals_leave_an_error_and_a_burst_that_fits_gives_the_least() -> None:
    found = probed(network__switch__credit_update_interval="50 ns")
    assert found["inferred_buffer_bytes.least"] <= 64 * 1024 <= found["inferred_buffer_bytes.most"]
    # 50 ns either way are ten packets of 62 B, and one of a block.
    width = found["inferred_buffer_bytes.most"] - found["inferred_buffer_bytes.least"]
    assert 0 < width <= 2 * 11 * BLOCK
    found = probed(flows__burst__size="20 KiB")
    assert found["flow_wait_s.stream"] == 0
    assert 20 * 1024 < found["inferred_buffer_bytes.least"] <= 64 * 1024
    assert "inferred_buffer_bytes.most" not in found


@pytest.mark.parametrize(
    "override",
    [
        {"flows__stream__outstanding": 1000},  # fewer than fit: the source runs dry
        {"network__switch__buffer": "4160 B", "flows__stream__size": "4 KiB"},  # no loop is covered
        {"flows__burst__start": "59 us"},  # not over at the end
        {"transport__connection": "reliable"},
        {"flows__burst__destination": 0},
        {"flows__burst__service_level": 1},
        {"flows__stream__load": 0.5},
    ],
)
def test_runs_that_bound_no_buffer_have_no_inferred_buffer(override: dict[str, object]) -> None:
    assert "inferred_buffer_bytes.least" not in probed(**override)


def test_a_person_may_use_the_formula_alone() -> None:
    # 100 Gb/s, packets of 4122 B, a loop of 1 us, bursts of 100 packets; 15 fit.
    packet_s = 4122 * 8 / 100e9
    waited_s = 100 * packet_s - (15 * packet_s - 1e-6)
    probe = Probe(100e9, 4122, 100 * 4122, loop_s=1e-6, outstanding=128)
    assert probe.bounds(waited_s) == (15 * 65 * 64, (16 * 65 - 1) * 64)
    vague = Probe(100e9, 4122, 100 * 4122, loop_s=1e-6, outstanding=128, error_s=0.4e-6)
    assert vague.bounds(waited_s) == (14 * 65 * 64, (17 * 65 - 1) * 64)
    assert probe.bounds(0) == ((100 + 4) * 65 * 64, None)
    scenario = load("ib-uniform-64")
    assert probe_of(scenario) is None
