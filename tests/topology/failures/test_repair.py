"""Tables and schedule for a tree that has lost cables."""

from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daqloom.deployment.fabric_system import fabric_system
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.file.load import load
from daqloom.study.methods import methods
from daqloom.topology.fabric.broken_cables import between_switches, with_broken
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.fabric.wiring import NONE, wire
from daqloom.topology.failures.repair import Repair, mend, round_time
from daqloom.topology.routing.max_flow import least_time
from daqloom.topology.routing.minimal import minimal
from daqloom.topology.routing.routes import Paths, trace
from daqloom.topology.schedule.frames import Frames
from daqloom.topology.schedule.shift_check import ShiftCheck, check_shift
from daqloom.topology.schedule.slots import DUMMY, by_port, slots_of
from daqloom.topology.schedule.spread import NOWHERE, spread
from daqloom.topology.shapes.clos import folded_clos


def tree(leaves: int, hosts_per_leaf: int, spines: int = 10, links: int = 2) -> Fabric:
    sizes = {"leaves": leaves, "hosts_per_leaf": hosts_per_leaf, "spines": spines, "links": links}
    return folded_clos("tree", **sizes, rate_bps=10**11)


def before(fabric: Fabric, missing: int = 0) -> Repair:
    """OpenSM's minhop and the usual order, of all hosts but the last ones."""
    hosts = slots_of(range(len(fabric.hosts) - missing))
    slots = by_port(fabric, wire(fabric), hosts, dummies=True)
    return Repair(minimal(fabric), slots, slots)


def after(fabric: Fabric, missing: int = 0) -> Repair:
    old = before(fabric, missing)
    return mend(fabric, old.routes, old.readouts)


def checked(fabric: Fabric, mended: Repair) -> ShiftCheck:
    return check_shift(trace(fabric, mended.routes), mended.readouts, builders=mended.builders)


def share(fabric: Fabric, mended: Repair) -> float:
    """Return the share of the rate that the cables allow, those of hosts included."""
    hosts = mended.readouts[mended.readouts != DUMMY]
    least = max(len(hosts) - 1, least_time(wire(fabric), hosts, np.ones(len(hosts))))
    return least / round_time(fabric, mended)


def meetings(mended: Repair) -> list[tuple[int, int]]:
    """All (sender, receiver) of a round."""
    count = len(mended.readouts)
    phase = np.arange(count)[:, None]
    receivers = mended.builders[(np.arange(count)[None, :] + phase) % count]
    senders = np.broadcast_to(mended.readouts, receivers.shape)
    real = (senders != DUMMY) & (receivers != DUMMY)
    return list(zip(senders[real].tolist(), receivers[real].tolist(), strict=True))


# ---- the schedule -------------------------------------------------------------------------------


@pytest.mark.parametrize(("leaves", "size", "turns"), [(2, 6, 3), (3, 3, 1), (3, 8, 2), (4, 6, 1)])
def test_each_phase_sends_as_many_flows_from_each_leaf_to_each(leaves, size, turns) -> None:
    """`turns` flows from each leaf to each, and one more for each of the extras."""
    hosts = [[leaf * size + place for place in range(size)] for leaf in range(leaves)]
    frames = Frames(hosts, turns, size)
    readouts, builders = frames.schedule()
    assert sorted(readouts.tolist()) == sorted(builders.tolist()) == list(range(leaves * size))
    for phase in range(len(readouts)):
        to = np.roll(builders, -phase) // size
        flows = np.zeros((leaves, leaves), int)
        np.add.at(flows, (readouts // size, to), 1)
        assert flows.min() >= turns
        assert (flows.sum(axis=1) == size).all()
        assert (flows - turns).sum(axis=1).tolist() == [frames.extras] * leaves


def test_the_extras_of_a_leaf_are_in_one_frame_each() -> None:
    frames = Frames([[0, 1, 2], [3, 4, 5]], 1, 3)
    readouts, builders = frames.schedule()
    assert readouts.tolist() == [0, 1, 2, 3, 4, 5]
    assert builders.tolist() == [0, 3, 5, 1, 4, 2]


# ---- spreading ----------------------------------------------------------------------------------


def test_of_flows_that_cannot_go_together_the_first_spine_that_can_takes_one() -> None:
    """Sender 0 has cables to spine 0 only, sender 1 to both, and they have one receiver."""
    up, down = np.array([[1, 0], [1, 1]]), np.array([[1, 1]])
    pairs = np.array([[0, 0], [1, 1]])
    found = spread(np.array([1, 0]), np.array([0, 0]), up, down, pairs, np.ones((2, 2)))
    assert found.tolist() == [1, 0]
    one = np.array([[1]])
    none, pairs = np.array([0, 0]), np.array([[0], [1]])
    found = spread(none, none, one, one, pairs, np.ones((2, 1)))
    assert sorted(found.tolist()) == [NOWHERE, 0]
    two = np.array([[2, 1]])
    none, pairs = np.array([0, 0]), np.zeros((2, 2), int)
    found = spread(none, none, two, two, pairs, np.ones((2, 2)))
    assert sorted(found.tolist()) == [0, 1]


# ---- broken trees -------------------------------------------------------------------------------


@pytest.mark.parametrize(("leaves", "size"), [(2, 20), (6, 18)])
@pytest.mark.parametrize("cables", [1, 3, 5])
def test_a_tree_without_some_cables_has_no_conflict(leaves: int, size: int, cables: int) -> None:
    """The sizes of the study lhcb-link-failures: as many phases as hosts."""
    for seed in range(1, 6):
        fabric = with_broken(tree(leaves, size), cables, seed)
        mended = after(fabric)
        assert checked(fabric, mended).worst_flows == 1
        assert len(mended.readouts) == leaves * size
        assert share(fabric, mended) >= 0.95
        assert share(fabric, before(fabric)) < 0.7


def test_lhcbs_nodes_have_no_conflict_and_full_leaves_few() -> None:
    """18 leaves of 18, which leaves three dummies, and cables to ten spines in pairs."""
    for cables, seed in ((1, 1), (3, 2), (5, 3)):
        fabric = with_broken(tree(18, 18), cables, seed)
        mended = after(fabric, missing=3)
        assert checked(fabric, mended).worst_flows == 1
        assert len(mended.readouts) == 324
        assert share(fabric, mended) >= 0.95
    # All 20 host ports of a leaf with 20 uplinks: the cables of a leaf that lost one are busy for
    # 6800 / 19 = 357.9 of the 359 transfers of a host, so that nothing may be wasted.
    fabric = with_broken(tree(18, 20), 1, 1)
    assert share(fabric, after(fabric)) >= 0.95


def test_sound_fabrics_keep_their_routes_and_order() -> None:
    fabric = tree(2, 20)
    old = before(fabric)
    assert round_time(fabric, old) == 40
    new = mend(fabric, old.routes, old.readouts)
    assert all(one is other for one, other in zip(new, old, strict=True))
    fabric = tree(1, 4)
    assert after(fabric).builders.tolist() == [0, 1, 2, 3]


def test_of_three_levels_it_is_no_worse() -> None:
    """Minhop itself makes a circle in one of these draws."""
    sizes = {"leaves": 2, "spines": 2, "links": 1, "hosts_per_leaf": 2, "pods": 2, "cores": 2}
    whole = folded_clos("deep", **sizes, rate_bps=10**11)
    for seed in range(1, 6):
        fabric = with_broken(whole, 2, seed)
        old, new = before(fabric), after(fabric)
        assert round_time(fabric, new) <= round_time(fabric, old)
        was, is_now = (has_circle(trace(fabric, each.routes)) for each in (old, new))
        assert is_now <= was


SIZES = {"leaves": st.integers(2, 6), "hosts_per_leaf": st.integers(1, 8)}
TREES = st.builds(tree, **SIZES, spines=st.integers(1, 4), links=st.integers(1, 3))


@settings(max_examples=40, deadline=None)
@given(TREES, st.data())
def test_any_broken_tree_is_no_worse_and_serves_all(whole: Fabric, data: st.DataObject) -> None:
    cables = data.draw(st.integers(0, len(between_switches(whole)) * 2 // 3))
    fabric = with_broken(whole, cables, data.draw(st.integers(0, 999)))
    missing = data.draw(st.integers(0, (len(whole.hosts) - 1) // 2))
    old, new = before(fabric, missing), after(fabric, missing)
    assert round_time(fabric, new) <= round_time(fabric, old)
    hosts = range(len(whole.hosts) - missing)
    assert sorted(meetings(new)) == [(one, other) for one in hosts for other in hosts]
    again = after(fabric, missing)
    assert np.array_equal(new.routes.ports, again.routes.ports)
    assert np.array_equal(new.builders, again.builders)
    was, paths = trace(fabric, old.routes), trace(fabric, new.routes)
    assert np.array_equal(paths.arrives, was.arrives)
    if (was.rest != NONE).sum(axis=0).max(initial=0) <= 3:
        assert not has_circle(paths)
    if np.isfinite(round_time(fabric, new)):
        assert share(fabric, new) <= 1 + 1e-9


def has_circle(paths: Paths) -> bool:
    """Packets can wait for each other's buffers in a circle: from each link to the next one that
    some path takes, the links have no order."""
    hosts = np.arange(len(paths.wiring.leaf))
    used = paths.links(hosts[:, None], hosts[None, :]).reshape(1 + len(paths.rest), -1)
    follows: dict[int, set[int]] = {}
    for one, after_it in pairwise(used):
        both = (one != NONE) & (after_it != NONE)
        for link, later in set(zip(one[both].tolist(), after_it[both].tolist(), strict=True)):
            follows.setdefault(later, set()).add(link)
    try:
        TopologicalSorter(follows).prepare()
    except CycleError:
        return True
    return False


# ---- scenarios ----------------------------------------------------------------------------------

KEYS = {
    "readout.units": 8, "network.leaves": 2, "network.spines": 2, "network.spine_links": 2,
    "network.hosts_per_leaf": 4, "event.packing": 30_000, "readout.streams": 1,
    "building.barrier": "ideal", "run.warmup": "3 ms", "run.duration": "12 ms",
    "faults.cables": 1,
}  # fmt: skip


def test_simulated_no_phase_takes_longer_than_one_transfer() -> None:
    """Two leaves of four hosts with four cables each, of which one is broken. The usual order has a
    phase in which four flows leave a leaf; minhop puts two of them on a cable in some phases.
    Mended, eight phases take a transfer each, where the order without a broken cable has seven."""
    rate = {}
    for routing, cables in (("d-mod-k", 0), ("minimal:balanced", 1), ("mended", 1)):
        keys = KEYS | {"network.routing": routing, "faults.cables": cables}
        found = methods.simulate(load("lhcb-run3-test-160", keys))
        rate[routing] = found.metrics["written_throughput_bps"]
    assert rate["mended"] / rate["d-mod-k"] == pytest.approx(7 / 8, rel=0.03)
    assert rate["minimal:balanced"] < 0.8 * rate["d-mod-k"]


def test_analysis_has_the_maximum_flow_of_broken_fabrics_only() -> None:
    """Four hosts of a leaf send 16 flows to the other by three cables, less than the seven of a
    host."""
    scenario = load("lhcb-run3-test-160", KEYS | {"network.routing": "mended"})
    found = methods.analyse(scenario)
    assert found.analysis["schedule"] == {"phases": 8, "conflicting": 0, "worst_flows": 1}
    free = found.analysis["rate_bounds_hz"]["host_link"]
    payload = found.metrics["throughput_bps"] / found.metrics["event_rate_hz"]
    assert found.metrics["max_flow_bps"] == pytest.approx(free * payload)
    whole = load("lhcb-run3-test-160", KEYS | {"faults.cables": 0, "network.routing": "d-mod-k"})
    assert "max_flow_bps" not in methods.analyse(whole).metrics
    keys = KEYS | {"network.routing": "minimal:balanced"}
    phases = [
        methods.analyse(load("lhcb-run3-test-160", keys | more)).analysis["schedule"]["conflicting"]
        for more in ({"faults.cables": 0}, {"faults.cables": 4}, {"faults.cables": 0})
    ]
    assert phases[0] == phases[2] < phases[1]


def test_units_keep_their_sizes_and_hosts() -> None:
    system = fabric_system(load("lhcb-run3-test-160", KEYS | {"network.routing": "mended"}))
    assert system.hosts == list(range(8))
    assert system.readouts.tolist() == list(range(8))
    assert system.builders.tolist() == [0, 4, 1, 5, 2, 6, 3, 7]


@pytest.mark.parametrize("key", [{"building.protocol": "daqpipe"}, {"builders.folded": False}])
def test_it_is_refused_where_there_is_no_order_to_mend(key: dict[str, object]) -> None:
    with pytest.raises(ScenarioError, match=r'network\.routing = "mended".*requires'):
        load("lhcb-run3-test-160", {"network.routing": "mended"} | key)
