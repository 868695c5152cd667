"""Hosts by the names that people use."""

from pathlib import Path

import pytest

from daqloom.base.words import did_you_mean
from daqloom.topology import TopologyError
from daqloom.topology.fabric.host_names import HostNames, expand
from daqloom.topology.fabric.wiring import wire
from daqloom.topology.formats.load import load_cabling
from daqloom.topology.schedule.slots import read_order
from support.repository import DATA

CASE = DATA / "cabling" / "01-edr-fabric-one-slow-cable"
NODES = ["node001 HCA-1", "node090 HCA-1", "two mlx5_0", "two mlx5_1", "ru7.daq.example"]
NAMES = HostNames(NODES, "net")


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("node001 HCA-1", 0),
        ("node090", 1),
        ("node090.cern.example", 1),
        ("two mlx5_1", 3),
        ("ru7", 4),
    ],
)
def test_a_name_means_the_only_host_of_it(name: str, place: int) -> None:
    assert NAMES.place(name, "here") == place


def test_an_ambiguous_or_unknown_host_is_refused_with_a_hint() -> None:
    with pytest.raises(
        TopologyError, match='here: host "two" has several adapters; give "two mlx5_0"'
    ):
        NAMES.place("two", "here")
    with pytest.raises(TopologyError, match='here: there is no host "node002" in net'):
        NAMES.place("node002", "here")
    # Host files of MPI; `node090` is as near by letters.
    for name in ("node001:4", "node001 slots=4", "node001x", "node001-ib0"):
        with pytest.raises(TopologyError, match='did you mean "node001 HCA-1"'):
            NAMES.place(name, "here")
    with pytest.raises(TopologyError, match=r'did you mean "two mlx5_[01]"'):
        NAMES.place("two slots=8", "here")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node[001-003]", ["node001", "node002", "node003"]),
        ("n[1,3-4]-ib0,login", ["n1-ib0", "n3-ib0", "n4-ib0", "login"]),
        ("r[1-2]n[01-02]", ["r1n01", "r1n02", "r2n01", "r2n02"]),
        ("node001 HCA-1", ["node001 HCA-1"]),
    ],
)
def test_ranges_of_slurm(text: str, names: list[str]) -> None:
    assert list(expand(text, "here")) == names


@pytest.mark.parametrize(
    "text",
    [
        "n[1-]", "n[a-b]", "n[1-999999999]", "n[0-999]x[0-999]", "n[1-2],m[4-3]", "n1,m2]", "n]",
        "n[1,[2]]",
    ],
)  # fmt: skip
def test_ranges_that_are_none_or_too_long_are_refused(text: str) -> None:
    with pytest.raises(TopologyError, match="here: "):
        list(expand(text, "here"))


def test_a_host_file_and_a_range_are_orders() -> None:
    fabric, _ = load_cabling(CASE / "ibnetdiscover.txt")
    wiring = wire(fabric)
    order = read_order(CASE / "hostfile.txt", fabric, wiring)
    assert [fabric.hosts[host].name for host in order[:2]] == ["node001 HCA-1", "node002 HCA-1"]
    assert read_order(CASE / "slurm.txt", fabric, wiring).tolist() == order.tolist()


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("tor.cell", ["tor.pace", "tor.cell_size", "tor.cores"], "tor.cell_size"),
        ("node001", ["node090 HCA-1", "node001 HCA-1"], "node001 HCA-1"),
        ("laptp", ["laptop", "lhcb"], "laptop"),
    ],
)
def test_a_hint_prefers_names_with_the_same_begin(name, known, hint, tmp_path: Path) -> None:
    assert did_you_mean(name, known, "") == f'did you mean "{hint}"?'
