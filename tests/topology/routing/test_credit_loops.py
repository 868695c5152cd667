"""Credit loops: circles of links that wait for each other's buffers."""

from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daqloom.deployment.scenarios import override
from daqloom.scenario.dumps import shipped_fabrics
from daqloom.simulate import SimulationError
from daqloom.study.methods import methods
from daqloom.topology.fabric.fabric import Cable, End, Fabric, Node
from daqloom.topology.fabric.wiring import NONE
from daqloom.topology.formats.load import load_fabric
from daqloom.topology.routing.credit_loops import credit_loops, loop_names
from daqloom.topology.routing.minimal import minimal
from daqloom.topology.routing.routes import Paths, Routes, trace
from daqloom.topology.shapes.clos import folded_clos
from support.small_fabrics import ring

RATE = 10**11


def of_switches(switches: int, between: list[tuple[int, int]]) -> Fabric:
    """A host on port 1 of each switch, and cables between switches."""
    free = [2] * switches
    cables = [Cable(End(n, 1), End(switches + n, 1), RATE) for n in range(switches)]
    for a, b in between:
        cables.append(Cable(End(switches + a, free[a]), End(switches + b, free[b]), RATE))
        free[a] += 1
        free[b] += 1
    return Fabric(
        "net",
        tuple(Node(f"h{n}", 1) for n in range(switches)),
        tuple(Node(f"sw{n}", max(1, free[n] - 1)) for n in range(switches)),
        tuple(cables),
    )


def blocks(paths: Paths) -> bool:
    """Whether the links of all paths, one pair after the other, wait for each other in a circle."""
    after: dict[int, set[int]] = {}
    hosts = range(len(paths.wiring.leaf))
    for source in hosts:
        for destination in hosts:
            links = paths.links(source, destination)
            for one, following in pairwise(links[links != NONE].tolist()):
                after.setdefault(one, set()).add(following)
    try:
        list(TopologicalSorter(after).static_order())
    except CycleError:
        return True
    return False


def test_a_ring_has_a_loop_each_way_unless_hosts_are_selected() -> None:
    fabric = of_switches(5, [(n, (n + 1) % 5) for n in range(5)])
    loops = credit_loops(trace(fabric, minimal(fabric)))
    # Two hops at most each way round: every link waits for the next one of its direction.
    assert [loop_names(fabric, loop) for loop in loops] == [
        "sw0 port 2 → sw1 port 3 → sw2 port 3 → sw3 port 3 → sw4 port 3 → sw0 port 2",
        "sw0 port 3 → sw4 port 2 → sw3 port 2 → sw2 port 2 → sw1 port 2 → sw0 port 3",
    ]
    paths = trace(fabric, minimal(fabric))
    assert [len(loop) for loop in credit_loops(paths)] == [5, 5]
    assert credit_loops(paths, [0, 1, 2]) == []


def test_short_routes_and_regular_trees_have_none_with_any_tables() -> None:
    fabric = of_switches(3, [(0, 1), (1, 2), (2, 0)])
    assert credit_loops(trace(fabric, minimal(fabric))) == []
    fabric = folded_clos("t", leaves=4, spines=3, hosts_per_leaf=5, rate_bps=RATE)
    assert credit_loops(trace(fabric, minimal(fabric, "lowest-port"))) == []


@pytest.mark.parametrize("name", list(shipped_fabrics()))
def test_the_shipped_trees_have_none(name: str) -> None:
    fabric, tables, _ = load_fabric(shipped_fabrics()[name])
    assert tables is not None
    assert credit_loops(trace(fabric, Routes(tables))) == []


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_loops_are_found_where_a_search_pair_by_pair_finds_them(data: st.DataObject) -> None:
    switches = data.draw(st.integers(2, 7))
    pairs = [(a, b) for a in range(switches) for b in range(a)]
    fabric = of_switches(switches, data.draw(st.lists(st.sampled_from(pairs), max_size=12)))
    tie = data.draw(st.sampled_from(["balanced", "lowest-port", "modulo"]))
    paths = trace(fabric, minimal(fabric, tie))
    loops = credit_loops(paths)
    assert bool(loops) == blocks(paths)
    for loop in loops:
        assert len(set(loop)) == len(loop)
        for here, following in pairwise([*loop, loop[0]]):
            assert fabric.peers[here].node == following.node


def test_a_credit_loop_that_blocks_the_simulator_is_named_before(tmp_path: Path) -> None:
    scenario = ring(tmp_path)
    fabric, tables, _ = load_fabric(tmp_path)
    assert tables is not None
    [loop] = credit_loops(trace(fabric, Routes(tables)))
    assert loop_names(fabric, loop) == "sw0 port 2 → sw1 port 2 → sw2 port 2 → sw0 port 2"
    with pytest.raises(SimulationError, match=loop_names(fabric, loop)):
        methods.simulate(scenario, seed=1)
    # With enough buffer nothing blocks; the warning stays, but for packets with a lifetime.
    roomy = override(scenario, {"network.switch.buffer": "4 MB"})
    lasting = {"network.switch.head_of_queue_lifetime": "1 s"}
    for method in (methods.simulate, methods.analyse):
        [said] = [w for w in method(roomy).warnings if "credit loop" in w]
        assert loop_names(fabric, loop) in said
        assert not any("credit loop" in w for w in method(override(roomy, lasting)).warnings)
