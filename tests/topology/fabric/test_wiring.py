"""Levels of switches above hosts."""

import pytest

from daqloom.topology.fabric.wiring import tree_levels, wire
from support.small_fabrics import pods


@pytest.mark.parametrize(
    ("hosts", "levels"),
    [
        ([0], 1),
        ([0, 5], 1),  # one leaf
        ([0, 6], 2),  # two leaves below the spines of a pod
        ([0, 17], 2),
        ([0, 18], 3),  # two pods below the cores
        (range(72), 3),
    ],
)
def test_a_tree_is_as_high_as_the_lowest_switch_above_all_hosts(hosts, levels) -> None:
    assert tree_levels(wire(pods(72)), list(hosts)) == levels
