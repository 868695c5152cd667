"""Maximum that a network can carry of an exchange of all with all."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daqloom.topology.fabric.broken_cables import between_switches, with_broken
from daqloom.topology.fabric.fabric import Cable, End, Fabric
from daqloom.topology.fabric.wiring import NONE, wire
from daqloom.topology.routing.max_flow import least_time
from daqloom.topology.routing.minimal import minimal
from daqloom.topology.routing.routes import trace
from daqloom.topology.shapes.clos import folded_clos

RATE = 10**11


def tree(leaves: int, spines: int, links: int, hosts_per_leaf: int) -> Fabric:
    return folded_clos(
        "tree", leaves=leaves, spines=spines, links=links, hosts_per_leaf=hosts_per_leaf,
        rate_bps=RATE,
    )  # fmt: skip


def time_of(fabric: Fabric) -> float:
    hosts = np.arange(len(fabric.hosts), dtype=np.int32)
    return least_time(wire(fabric), hosts, np.ones(len(hosts)))


def without(fabric: Fabric, leaf: int, spine: int, cables: int) -> Fabric:
    """Return the fabric without some of the parallel cables between a leaf and a spine."""
    ends = fabric.switch_node(leaf), fabric.switch_node(spine)
    between = [cable for cable in fabric.cables if (cable.a.node, cable.b.node) == ends]
    assert len(between) >= cables > 0
    gone = set(between[:cables])
    return replace(fabric, cables=tuple(cable for cable in fabric.cables if cable not in gone))


def test_a_leaf_sends_at_most_the_rate_of_its_working_uplinks() -> None:
    """Each of 4 hosts of a leaf sends to each of 8 elsewhere: 32 flows over 2 x 2 cables."""
    assert time_of(tree(3, 2, 2, 4)) == pytest.approx(32 / 4)
    # Leaf 0 has 3 cables for its 32 flows, up and down.
    assert time_of(without(tree(3, 2, 2, 4), 0, 3, 1)) == pytest.approx(32 / 3)
    assert time_of(without(tree(3, 2, 2, 4), 0, 3, 2)) == pytest.approx(32 / 2)


def test_cables_to_different_spines_do_not_meet_but_by_a_third_leaf() -> None:
    """Two leaves with two cables each, but with one spine in common, by one cable each: the 16
    flows of each direction have one cable."""
    fabric = without(without(tree(2, 3, 1, 4), 0, 3, 1), 1, 4, 1)
    assert time_of(fabric) == pytest.approx(16)
    # Leaves 0 and 1 have spines 0 and 1 each to itself, leaf 2 has both: what 0 and 1 exchange goes
    # by leaf 2. From spine 0 to leaf 2, all that leaf 0 sends takes 2 x 2 + 2 x 2 flows; the other
    # way come as many.
    fabric = without(without(tree(3, 2, 1, 2), 0, 4, 1), 1, 3, 1)
    assert time_of(fabric) == pytest.approx(8)


def test_no_cable_is_needed_on_one_leaf_and_without_cables_nothing_arrives() -> None:
    assert time_of(tree(1, 1, 1, 4)) == 0.0
    cut = tree(2, 1, 1, 2)
    assert time_of(without(cut, 0, 2, 1)) == float("inf")


def test_larger_flows_and_faster_cables_count() -> None:
    """Hosts 0 and 1 on leaf 0 send 3 and 1 to each of two hosts: 8 up, and 4 come down."""
    fabric = tree(2, 1, 1, 2)
    sent = np.array([3.0, 1.0, 1.0, 1.0])
    hosts = np.arange(4, dtype=np.int32)
    assert least_time(wire(fabric), hosts, sent) == pytest.approx(8)
    twice = [
        replace(cable, rate_bps=2 * RATE) if cable.a.node >= 4 else cable for cable in fabric.cables
    ]
    faster = replace(fabric, cables=tuple(twice))
    assert least_time(wire(faster), hosts, sent) == pytest.approx(4)


def test_a_ring_of_switches_needs_no_levels() -> None:
    """Four switches in a ring, a host each: of 12 flows, 8 take one cable and 4 take two, over 8
    directions of cables: 16 / 8."""
    hosts = tree(4, 1, 1, 1)
    ring = tuple(Cable(End(4 + place, 3), End(4 + (place + 1) % 4, 4), RATE) for place in range(4))
    access = tuple(cable for cable in hosts.cables if cable.a.node < 4)
    switches = tuple(replace(switch, ports=8) for switch in hosts.switches)
    assert time_of(replace(hosts, switches=switches, cables=access + ring)) == pytest.approx(2)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 4), st.integers(1, 4), st.integers(1, 2), st.integers(1, 4), st.data())
def test_no_tables_do_better(leaves, spines, links, hosts_per_leaf, data: st.DataObject) -> None:
    """The most loaded cable of minhop's tables bounds the time from above, the cables of a leaf
    alone from below."""
    whole = tree(leaves, spines, links, hosts_per_leaf)
    broken = data.draw(st.integers(0, len(between_switches(whole)) // 2))
    fabric = with_broken(whole, broken, data.draw(st.integers(0, 999)))
    paths = trace(fabric, minimal(fabric))
    least = time_of(fabric)
    if not paths.arrives[:leaves].all():
        assert least == float("inf")
        return
    hosts = np.arange(len(fabric.hosts))
    used = paths.links(hosts[:, None], hosts[None, :])
    load = np.bincount(used[used != NONE], minlength=paths.wiring.links)
    between = paths.wiring.tail >= len(hosts)
    between &= paths.wiring.head >= len(hosts)
    assert least <= load[between].max() * (1 + 1e-6)
    flows = hosts_per_leaf * (len(hosts) - hosts_per_leaf)
    for leaf in range(leaves):
        uplinks = int((paths.wiring.tail[between] == fabric.switch_node(leaf)).sum())
        assert least >= flows / uplinks * (1 - 1e-6)
