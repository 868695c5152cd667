"""Cuts of fabrics whose switches of one level are cabled to each other."""

from __future__ import annotations

from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.topology.bisection import has_full_bisection, most_flow
from daqloom.topology.fabric import Fabric, Node
from daqloom.topology.levels import tree
from daqloom.topology.load import load_cabling
from daqloom.topology.named_ports import NamedCable, Plug, fabric_of_ports
from support.repository import DATA

CASES = DATA / "cabling" / "08-two-switches"


def cabled(hosts: list[int], pairs: list[tuple[int, int]]) -> Fabric:
    """Switches with so many hosts, and these cables between them, all at one rate."""
    names = [f"sw{each}" for each in range(len(hosts))]
    used = dict.fromkeys(names, 0)

    def plug(name: str) -> Plug:
        used[name] += 1
        return Plug(name, used[name])

    cables = [
        NamedCable(Plug(f"n{each}-{number}", 1), plug(name), 10**11)
        for each, name in enumerate(names)
        for number in range(hosts[each])
    ]
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
        # As many cables as hosts on either side.
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
def test_rings_and_meshes(
    hosts: int, switches: int, pairs: list[tuple[int, int]], full: bool
) -> None:
    assert tree(cabled([hosts] * switches, pairs)).full_bisection is full


def test_hosts_at_a_spine_make_no_leaf_of_it() -> None:
    """A spine with one host, below which leaves have four; and a ToR that has one host fewer than
    its neighbour, which is no spine."""
    assert tree(cabled([4, 4, 1], [(0, 2), (1, 2)] * 4)).level == (1, 1, 2)
    assert tree(cabled([8, 9], [(0, 1)] * 4)).level == (1, 1)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[int, dict[int, int]], dict[int, int]]:
    count = draw(st.integers(2, 6))
    rates: dict[int, dict[int, int]] = {each: {} for each in range(count)}
    for a, b in combinations(range(count), 2):
        if rate := draw(st.integers(0, 4)):
            rates[a][b] = rates[b][a] = rate
    return rates, {each: draw(st.integers(0, 5)) for each in range(count)}


@given(graphs(), st.data())
def test_the_flow_is_the_least_cut(
    graph: tuple[dict[int, dict[int, int]], dict[int, int]], data: st.DataObject
) -> None:
    """Every cut is tried: switches on the side of the source, with what then is cut."""
    rates, sent = graph
    leaves = frozenset(data.draw(st.sets(st.sampled_from(sorted(sent)), min_size=1)))

    def cut(side: frozenset[int]) -> int:
        between = sum(rate for a in side for b, rate in rates[a].items() if b not in side)
        sources = sum(sent[leaf] for leaf in leaves - side)
        sinks = sum(sent[leaf] for leaf in side - leaves)
        return between + sources + sinks

    every = chain.from_iterable(combinations(sorted(rates), n) for n in range(len(rates) + 1))
    assert most_flow(rates, sent, leaves) == min(cut(frozenset(side)) for side in every)


@given(graphs())
def test_a_fabric_is_only_refused_for_a_half_that_fails(
    graph: tuple[dict[int, dict[int, int]], dict[int, int]],
) -> None:
    rates, sent = graph
    total = sum(sent.values())
    leaves = [leaf for leaf in sent if sent[leaf]]
    every = chain.from_iterable(combinations(leaves, n) for n in range(1, len(leaves)))
    fails = any(
        most_flow(rates, sent, side) < min(own := sum(sent[leaf] for leaf in side), total - own)
        for side in every
    )
    assert fails or has_full_bisection(rates, sent)
