"""Cuts of fabrics whose switches of one level are cabled to each other."""

from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.topology.fabric import bisection
from daqloom.topology.fabric.anomalies import anomalies
from daqloom.topology.fabric.bisection import has_full_bisection, spreads_evenly
from daqloom.topology.fabric.fabric import Fabric, Node
from daqloom.topology.fabric.levels import tree
from daqloom.topology.formats.load import load_cabling
from daqloom.topology.formats.named_ports import NamedCable, Plug, fabric_of_ports
from support.repository import DATA

CASES = DATA / "cabling" / "08-two-switches"


def cabled(hosts: list[int], pairs: list[tuple[int, int]]) -> Fabric:
    """Switches with so many hosts, and these cables between them, all at one rate."""
    names = [f"sw{each}" for each in range(len(hosts))]
    used = dict.fromkeys(names, 0)

    def plug(name: str) -> Plug:
        used[name] += 1
        return Plug(name, used[name])

    leaves = [(f"n{each}-{n}", name) for each, name in enumerate(names) for n in range(hosts[each])]
    cables = [NamedCable(Plug(host, 1), plug(name), 10**11) for host, name in leaves]
    cables += [NamedCable(plug(names[a]), plug(names[b]), 10**11) for a, b in pairs]
    return fabric_of_ports("cabled", [Node(name, 0) for name in names], cables)


@pytest.mark.parametrize("name", ["one-isl", "two", "two-uneven"])
def test_two_switches_with_too_few_cables_are_blocking(name: str) -> None:
    found = tree(load_cabling(CASES / f"{name}.toml")[0])
    assert found.level == (1, 1)
    assert (found.full_bisection, found.non_blocking) == (False, False)
    assert len(found.blocking) == 2


@pytest.mark.parametrize(
    ("hosts", "switches", "pairs", "full"),
    [
        # Equal numbers of cables and hosts on either side.
        (4, 2, [(0, 1)] * 4, True),
        (4, 2, [(0, 1)] * 3, False),
        # A ring of four: half of it has 2 × 2 hosts, and two cuts of two cables each.
        (2, 4, [(0, 1), (1, 2), (2, 3), (3, 0)] * 2, True),
        (2, 4, [(0, 1), (1, 2), (2, 3), (3, 0)], False),
        # A ring of eight: each switch alone passes, half of the ring does not.
        (2, 8, [(each, (each + 1) % 8) for each in range(8)], False),
        # A full mesh of four: half has 2 × 2 hosts and four cables to the other half.
        (2, 4, list(combinations(range(4), 2)), True),
        (3, 4, list(combinations(range(4), 2)), False),
        # A chain.
        (1, 3, [(0, 1), (1, 2)], True),
        (2, 3, [(0, 1), (1, 2)], False),
    ],
)
def test_rings_and_meshes(hosts: int, switches: int, pairs, full: bool) -> None:
    assert tree(cabled([hosts] * switches, pairs)).full_bisection is full


def test_hosts_at_a_spine_make_no_leaf_of_it() -> None:
    """A spine with one host, below which leaves have four; and a ToR that has one host fewer than
    its neighbour, which is no spine."""
    assert tree(cabled([4, 4, 1], [(0, 2), (1, 2)] * 4)).level == (1, 1, 2)
    assert tree(cabled([8, 9], [(0, 1)] * 4)).level == (1, 1)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[int, dict[int, int]], dict[int, int]]:
    count = draw(st.integers(2, 7))
    rates: dict[int, dict[int, int]] = {each: {} for each in range(count)}
    for a, b in combinations(range(count), 2):
        if rate := draw(st.integers(0, 4)):
            rates[a][b] = rates[b][a] = rate
    sent = {each: draw(st.integers(0, 5)) for each in range(count)}
    return rates, {each: bps for each, bps in sent.items() if bps}


def every_set_carries(rates: dict[int, dict[int, int]], sent: dict[int, int]) -> bool:
    """The definition, set by set."""
    total = sum(sent.values())
    for side in chain.from_iterable(combinations(rates, n) for n in range(1, len(rates))):
        cut = sum(rate for a in side for b, rate in rates[a].items() if b not in side)
        own = sum(sent.get(switch, 0) for switch in side)
        if cut < min(own, total - own):
            return False
    return True


@given(graphs())
def test_a_small_fabric_is_judged_by_all_its_cuts(graph) -> None:
    rates, sent = graph
    assert has_full_bisection(rates, sent, {}, []) is every_set_carries(rates, sent)


@given(graphs(), st.data())
def test_a_large_fabric_is_judged_rightly_or_not_at_all(graph, data: st.DataObject) -> None:
    """Graphs with too many sets to try all, in effect; wrong levels may only cost an answer."""
    rates, sent = graph
    level = {switch: data.draw(st.integers(1, 3)) for switch in rates}
    pods = data.draw(st.lists(st.sets(st.sampled_from(sorted(rates)))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bisection, "MOST_SETS", 0)
        found = has_full_bisection(rates, sent, level, pods)
    assert found in (None, every_set_carries(rates, sent))


@st.composite
def trees(draw: st.DrawFn) -> tuple[dict[int, dict[int, int]], dict[int, int], dict[int, int]]:
    """Pods of leaves and spines, and cores; now and then a cable is slower."""
    pods, leaves, spines, cores = (draw(st.integers(1, 2)) for _ in range(4))
    down, up, host = (draw(st.integers(1, 4)) for _ in range(3))
    names = range(pods * (leaves + spines) + cores)
    level = dict.fromkeys(names, 3)
    rates: dict[int, dict[int, int]] = {s: {} for s in names}
    for pod in range(pods):
        first = pod * (leaves + spines)
        for leaf in range(first, first + leaves):
            level[leaf] = 1
            for spine in range(first + leaves, first + leaves + spines):
                rates[leaf][spine] = rates[spine][leaf] = down
        for spine in range(first + leaves, first + leaves + spines):
            level[spine] = 2
            for core in names[-cores:]:
                slower = draw(st.integers(0, 9)) == 0
                rates[spine][core] = rates[core][spine] = max(1, up - slower)
    return rates, {s: host for s in names if level[s] == 1}, level


@given(trees())
def test_a_tree_is_judged_by_all_its_cuts(fabric) -> None:
    rates, sent, level = fabric
    assert has_full_bisection(rates, sent, {}, []) is every_set_carries(rates, sent)
    assert every_set_carries(rates, sent) or not spreads_evenly(rates, sent, level)


@pytest.mark.parametrize(("cables", "full"), [(2, True), (1, False)])
def test_a_large_regular_tree_is_known(cables: int, full: bool) -> None:
    """30 leaves of 8 hosts, 4 spines: the cables of a leaf carry what its hosts send, or half."""
    pairs = [(leaf, 30 + spine) for leaf in range(30) for spine in range(4)] * cables
    found = tree(cabled([8] * 30 + [0] * 4, pairs))
    assert (found.full_bisection, found.non_blocking) == (full, full)


@pytest.mark.parametrize(("spare", "full"), [(0, True), (1, False)])
def test_a_large_tree_with_a_dead_cable_and_a_server_at_a_spine_is_known(
    spare: int, full: bool
) -> None:
    """30 leaves of 8 hosts, two cables to each of 4 spines, of which one is dead: its leaf has 8
    hosts, or 7. A spine has a server."""
    pairs = [(leaf, 30 + spine) for leaf in range(30) for spine in range(4)] * 2
    found = tree(cabled([7 + spare] + [8] * 29 + [1, 0, 0, 0], pairs[1:]))
    assert found.level == (1,) * 30 + (2,) * 4
    assert found.full_bisection is full


@pytest.mark.parametrize(("cables", "full"), [(1, False), (16, None)])
def test_a_large_ring_is_refused_or_not_known(cables: int, full: bool | None) -> None:
    """32 switches of one host: half the ring has 16 hosts, and two hops of it are cut. 16 cables a
    hop suffice, which no method proves."""
    ring = [(each, (each + 1) % 32) for each in range(32)]
    found = tree(cabled([1] * 32, ring * cables))
    assert (found.full_bisection, found.non_blocking) == (full, full)


def test_rings_and_switches_without_cables_or_hosts_are_cut_between_pairs() -> None:
    """Switches with 4, 2, 4 and 2 hosts, two cables a hop: two neighbours have 6 hosts and four
    cables to the others."""
    found = tree(cabled([4, 2, 4, 2], [(0, 1), (1, 2), (2, 3), (3, 0)] * 2))
    assert (found.full_bisection, found.non_blocking) == (False, False)
    fabric = cabled([2, 2, 1, 0, 0], [(0, 3), (1, 3), (2, 4)])
    found = tree(fabric)
    assert (found.full_bisection, found.non_blocking) == (False, False)
    [apart] = [each for each in anomalies(fabric) if each.kind == "separate part"]
    assert apart.sentence == "sw2 and 1 other switch have no way to sw0"
    found = tree(cabled([0, 0], [(0, 1)]))
    assert (found.full_bisection, found.non_blocking) == (None, None)
