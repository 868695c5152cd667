"""Check of full bisection: any half of the hosts can send to the other half at full rate.

A fabric has full bisection if the cables from every set of switches to all others carry the rate of
the hosts in the set, or that of the hosts outside it (max-flow min-cut: Ford and Fulkerson 1956).
No fast method decides this for every fabric, so the answer is yes, no, or not known:

- if the sets of switches are few, all are tried and the answer is exact: for 20 switches, or for
  more switches of which most are cabled alike;
- a larger fabric has no full bisection if a tried cut is too narrow: cuts around leaves, around
  pods, and around sets that grow along the cables are tried;
- it has full bisection if all leaves can spread their traffic over the top switches in the same
  shares, because any exchange then fits through the top (Valiant and Brebner 1981).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

Rates = Mapping[int, Mapping[int, int]]
"""For each switch: the total rate of its cables to each neighbour (b/s)."""
Twins = Sequence[tuple[int, int]]
"""Groups of switches that are cabled alike: the first switch, and the number of switches."""
Sent = Mapping[int, int]
"""For each switch with hosts: the total rate of its hosts' cables (b/s), above 0."""
MOST_SETS = 1 << 19
"""Sets that are tried one by one."""
MOST_STARTS = 16
"""Leaves from which sets grow."""
NONE = Fraction(0)
"""Share of a rate."""


def has_full_bisection(
    rates: Rates, sent: Sent, level: Mapping[int, int], pods: Iterable[Collection[int]]
) -> bool | None:
    """Return whether the cables between switches carry the rate of any half of the hosts; None: not
    known. `level` of each switch (1: leaf) and `pods` guide the search in large fabrics."""
    if len(sent) < 2:
        return True
    inner, outer = _decisive(rates, sent)
    twins = _twins(rates, sent, inner)
    if prod(count + 1 for _, count in twins) <= 2 * MOST_SETS:
        return _every_cut_carries(rates, sent, twins, outer)
    cuts = (*([switch] for switch in sent), *pods)
    if not all(_carries(rates, sent, set(cut)) for cut in cuts):
        return False
    if spreads_evenly(rates, sent, level):
        return True
    orders = _orders(rates, sorted(sent))
    return None if all(_growing_cuts_carry(rates, sent, outer, each) for each in orders) else False


def _decisive(rates: Rates, sent: Sent) -> tuple[list[int], list[int]]:
    """Return the switches whose side must be chosen for a cut, and the remaining ones. No cables
    connect remaining switches; each of them joins the side to which more of its rate leads."""
    free = {switch: [o for o in near if o not in sent] for switch, near in rates.items()}
    inner = dict.fromkeys(switch for switch in rates if switch in sent)
    for switch in sorted(rates.keys() - sent.keys(), key=lambda s: (-len(free[s]), s)):
        if not inner.keys() >= set(free[switch]):
            inner[switch] = None
    return list(inner), [switch for switch in rates if switch not in inner]


def _twins(rates: Rates, sent: Sent, switches: Iterable[int]) -> Twins:
    """Return groups of switches with equal cables and equal host rates, the largest first."""
    found: dict[tuple[int, frozenset[tuple[int, int]]], list[int]] = {}
    for switch in switches:
        alike = sent.get(switch, 0), frozenset(rates[switch].items())
        found.setdefault(alike, []).append(switch)
    return sorted(((each[0], len(each)) for each in found.values()), key=lambda twin: -twin[1])


def _every_cut_carries(rates: Rates, sent: Sent, twins: Twins, outer: Sequence[int]) -> bool:
    """Return whether each cut carries the rate of its smaller side. Sets with more than half of the
    first group of twins are left out, because their complements are tried."""
    steps = [range(count + 1) for _, count in twins]
    steps[0] = range(twins[0][1] // 2 + 1)
    cut = np.zeros(1, np.int64)
    for place, (switch, count) in enumerate(twins):
        near = [rates[switch].get(other, 0) for other, _ in twins[:place]]
        inside, total = _sums(near, steps), _total(near, twins)
        parts = [cut + n * (total - inside) + (count - n) * inside for n in steps[place]]
        cut = np.concatenate(parts)
    alike = Counter(tuple(rates[switch].get(other, 0) for other, _ in twins) for switch in outer)
    for row, times in alike.items():
        inside = _sums(row, steps)
        cut += times * np.minimum(inside, _total(row, twins) - inside)
    sends = [sent.get(switch, 0) for switch, _ in twins]
    own = _sums(sends, steps)
    return bool((cut >= np.minimum(own, _total(sends, twins) - own)).all())


def _sums(values: Sequence[int], steps: Sequence[range]) -> NDArray[np.int64]:
    """Return all sums of values, each times a count from its `steps`; the first varies fastest."""
    sums = np.zeros(1, np.int64)
    for value, times in zip(values, steps, strict=False):
        sums = np.concatenate([sums + n * value for n in times])
    return sums


def _total(values: Sequence[int], twins: Twins) -> int:
    return sum(value * count for value, (_, count) in zip(values, twins, strict=False))


def _carries(rates: Rates, sent: Sent, side: Collection[int]) -> bool:
    cut = sum(rate for s in side for other, rate in rates[s].items() if other not in side)
    own = sum(sent.get(switch, 0) for switch in side)
    return cut >= min(own, sum(sent.values()) - own)


def spreads_evenly(rates: Rates, sent: Sent, level: Mapping[int, int]) -> bool:
    """Return whether all hosts are at leaves and, for some level, every leaf can send the same
    share of its rate to each switch of that level, with shares that sum to 1 or more."""
    if any(level[switch] != 1 for switch in sent):
        return False
    groups = [(bps, {leaf: Fraction(1)}) for leaf, bps in sent.items()]
    for height in range(2, max(level.values()) + 1):
        joined: list[tuple[int, dict[int, Fraction]]] = []
        for bps, below in groups:
            shares = _passed_up(rates, bps, below, level, height)
            apart = [each for each in joined if each[1].keys().isdisjoint(shares)]
            for other_bps, other in joined:
                if not other.keys().isdisjoint(shares):
                    bps += other_bps
                    get = other.get
                    shares = {s: min(shares.get(s, NONE), get(s, NONE)) for s in shares | other}
            joined = [*apart, (bps, shares)]
        groups = joined
        if len(groups) == 1 and sum(groups[0][1].values()) >= 1:
            return True
    return False


def _passed_up(
    rates: Rates, bps: int, below: Mapping[int, Fraction], level: Mapping[int, int], height: int
) -> dict[int, Fraction]:
    """Return the share of `bps` that can reach each switch of level `height` from those `below`."""
    found: dict[int, Fraction] = {}
    for switch, share in below.items():
        up = {other: rate for other, rate in rates[switch].items() if level[other] == height}
        if up:
            carried = min(Fraction(1, bps), share / sum(up.values()))
            found |= {other: found.get(other, NONE) + rate * carried for other, rate in up.items()}
    return found


def _orders(rates: Rates, leaves: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield orders of the switches whose first elements may lie behind a narrow cut."""
    yield leaves
    yield [*leaves[::2], *leaves[1::2]]
    for leaf in leaves[:MOST_STARTS]:
        order = dict.fromkeys([leaf])
        for switch in (reached := [leaf]):
            near = sorted(rates[switch], key=lambda other: -rates[switch][other])
            reached += [other for other in near if other not in order]
            order |= dict.fromkeys(near)
        yield reached


def _growing_cuts_carry(rates: Rates, sent: Sent, outer: list[int], order: Sequence[int]) -> bool:
    """Return whether the cut around each prefix of `order` carries the rate of its smaller side."""
    total, own, cut = sum(sent.values()), 0, 0
    full = {switch: sum(rates[switch].values()) for switch in outer}
    inside: Counter[int] = Counter()
    taken: set[int] = set()
    for switch in order:
        if switch in full:
            continue
        taken.add(switch)
        own += sent.get(switch, 0)
        for other, rate in rates[switch].items():
            if other in full:
                before = min(inside[other], full[other] - inside[other])
                inside[other] += rate
                cut += min(inside[other], full[other] - inside[other]) - before
            else:
                cut += -rate if other in taken else rate
        if cut < min(own, total - own):
            return False
    return True
