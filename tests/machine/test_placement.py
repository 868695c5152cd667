"""Placement of units on a server that is made up, and the pinning of this process."""

import ctypes
import os
import platform
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from daqloom.machine import placement
from daqloom.machine.machine import Machine
from daqloom.machine.placement import find_device, placement_of
from daqloom.results.errors import MeasureError
from daqloom.scenario.schema.hosts import UnitPlace

NODES = "sys/devices/system/node"
CORES = range(64)
LHCB = {
    f"{NODES}/online": "0-1\n",
    f"{NODES}/node0/cpulist": "0-15,32-47\n",
    f"{NODES}/node1/cpulist": "16-31,48-63\n",
    "sys/class/net/lo/operstate": "unknown\n",
}
"""LHCb's server: two NUMA nodes, each with an adapter. /sys lists a card in three places."""


def server(root: Path, **changes: str) -> Machine:
    files = dict(LHCB)
    for slot, node, net, rdma in (
        ("0000:41:00.0", 0, "ibp65s0", "mlx5_0"),
        ("0000:c1:00.0", 1, "ibp193s0", "mlx5_1"),
    ):
        for folder in (
            f"sys/bus/pci/devices/{slot}",
            f"sys/class/net/{net}/device",
            f"sys/class/infiniband/{rdma}/device",
        ):
            files[f"{folder}/uevent"] = f"DRIVER=mlx5_core\nPCI_SLOT_NAME={slot}\n"
            files[f"{folder}/numa_node"] = f"{node}\n"
            files[f"{folder}/net/{net}/mtu"] = "4092\n"
            files[f"{folder}/infiniband/{rdma}/node_type"] = "1: CA\n"
    for path, text in (files | changes).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return Machine(root)


def place(**keys: object) -> UnitPlace:
    return UnitPlace.model_validate({"unit": 1, "host": "r5n0020", **keys})


@pytest.mark.parametrize("name", ["0000:c1:00.0", "ibp193s0", "mlx5_1"])
def test_a_card_has_one_device_by_each_of_its_names(tmp_path: Path, name: str) -> None:
    device = find_device(server(tmp_path), name)
    assert device is not None
    assert (device.name, device.node) == ("0000:c1:00.0", 1)
    assert (device.interfaces, device.rdma) == (("ibp193s0",), ("mlx5_1",))


def test_a_virtual_interface_is_a_device_of_no_node(tmp_path: Path) -> None:
    device = find_device(server(tmp_path), "lo")
    assert device is not None
    assert (device.name, device.node, device.interfaces, device.rdma) == ("lo", None, ("lo",), ())
    assert find_device(Machine(tmp_path), "eth9") is None


def test_units_of_lhcbs_server_have_a_node_each(tmp_path: Path) -> None:
    machine = server(tmp_path)
    first = placement_of(machine, place(numa=0, device="mlx5_0"), CORES)
    second = placement_of(machine, place(cores="16-31", device="0000:c1:00.0"), CORES)
    assert first.cores == {*range(16), *range(32, 48)}
    assert second.cores == set(range(16, 32))
    assert (first.node, second.node) == (0, 1)  # that of the cores, where none is given
    assert not first.warnings + second.warnings


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            {"cores": "0-3", "device": "0000:c1:00.0"},
            ["unit 1: its cores are on NUMA node 0, and its device 0000:c1:00.0 is on node 1"],
        ),
        (
            {"cores": "0-3", "numa": 1},
            ["unit 1: its cores are on NUMA node 0, and its memory is on node 1"],
        ),
        (
            {"numa": 1, "device": "ibp65s0"},
            ["unit 1: its cores are on NUMA node 1, and its device 0000:41:00.0 is on node 0"],
        ),
        (
            {"cores": "0,16", "device": "mlx5_0"},
            ["unit 1: its cores are on NUMA node 0, 1, and its device 0000:41:00.0 is on node 0"],
        ),
        ({"cores": "0,16"}, []),
        ({"device": "mlx5_0"}, []),
    ],
)
def test_a_wrong_locality_is_warned_of_with_both_nodes(
    tmp_path: Path, keys: dict[str, object], expected: list[str]
) -> None:
    assert list(placement_of(server(tmp_path), place(**keys), CORES).warnings) == expected


@pytest.mark.parametrize(
    ("keys", "allowed", "sentence"),
    [
        (
            {"numa": 2},
            CORES,
            r"unit 1 has here no core of NUMA node 2; this machine has nodes 0, 1",
        ),
        ({"numa": 1}, range(16), "no core of NUMA node 1"),
        ({"numa": 2, "cores": "0"}, CORES, "no core of NUMA node 2"),
        ({"cores": "0-64"}, CORES, "no core 64; it may use 0, 1, 2"),
        ({"cores": "3"}, [0, 1], "no core 3; it may use 0, 1"),
        ({"device": "mlx5_2"}, CORES, "no device mlx5_2"),
    ],
)
def test_a_lack_of_the_machine_is_named(
    tmp_path: Path, keys: dict[str, object], allowed: range, sentence: str
) -> None:
    with pytest.raises(MeasureError, match=sentence):
        placement_of(server(tmp_path), place(**keys), allowed)


def test_a_kernel_without_numa_has_node_0(tmp_path: Path) -> None:
    placed = placement_of(Machine(tmp_path), place(numa=0), [2, 5])
    assert (placed.cores, placed.node) == ({2, 5}, 0)


@pytest.mark.parametrize("text", ["", "-1\n", "²\n", "9" * 40, "\0\xff", "1; rm\n"])
def test_a_node_that_sysfs_garbles_is_unknown(tmp_path: Path, text: str) -> None:
    changes = {f"sys/bus/pci/devices/0000:c1:00.0/{name}": text for name in ("numa_node", "uevent")}
    machine = server(tmp_path, **changes)
    device = find_device(machine, "0000:c1:00.0")
    assert device is not None
    assert (device.name, device.node) == ("0000:c1:00.0", None)
    assert not placement_of(machine, place(cores="0", device="0000:c1:00.0"), CORES).warnings


PINNED = """
import os, threading
from daqloom.machine.placement import Placement, apply
ended = threading.Event()
threading.Thread(target=ended.wait).start()
core = max(os.sched_getaffinity(0))
apply(Placement(frozenset({core}), 0, None, ()))
later = threading.Thread(target=ended.wait)
later.start()
threads = os.listdir("/proc/self/task")
print(core, len(threads), *{tuple(os.sched_getaffinity(int(each))) for each in threads})
ended.set()
"""


@pytest.mark.process
def test_all_threads_of_a_process_are_pinned() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PINNED], capture_output=True, text=True, check=True
    )
    core = max(os.sched_getaffinity(0))
    assert done.stdout.split("\n")[0] == f"{core} 3 ({core},)"


def test_memory_that_the_kernel_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    placed = placement.Placement(frozenset(), 1023, None, ())  # no machine has this node
    if platform.machine() in ("x86_64", "aarch64"):
        with pytest.raises(MeasureError, match="refuses NUMA node 1023, errno 22"):
            placement.apply(placed)
    monkeypatch.setattr(platform, "machine", lambda: "pdp11")
    placement.apply(
        placed
    )  # unknown system call: memory is on the node of the core that touches it
    placement.apply(replace(placed, node=None))


def test_the_mask_of_nodes_has_the_bit_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    class Library:
        def syscall(self, number: int, mode: int, nodes: ctypes.Array[ctypes.c_ulong], most: int):
            calls.append((mode, [bit for bit in range(1024) if nodes[bit // 64] >> bit % 64 & 1]))
            assert most == 1025
            return 0

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Library())
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    for node in (0, 1, 70):
        placement.apply(placement.Placement(frozenset(), node, None, ()))
    assert calls == [(1, [0]), (1, [1]), (1, [70])]  # MPOL_PREFERRED
