"""Detection of irregular cabling in a fabric; every anomaly names switches and ports.

The regular pattern of each level is derived from the fabric's cables (see `pattern`); a cable that
differs from its pattern is an anomaly. Swapped cables form a circle: each cable ends where the
pattern expects the next one, and the last ends where it expects the first. For switches without a
pattern, only the numbers of links between pairs are compared.

A host counts as missing at a leaf port without cable if half of the leaves or more have a host at
that port. A link has another rate if most links between the same two levels share a different rate.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Literal, get_args

from daqloom.base.words import plural
from daqloom.topology.fabric.fabric import Cable, End, Fabric
from daqloom.topology.fabric.levels import HOST, UNREACHED, Links, node_levels, parts, switch_links
from daqloom.topology.fabric.pattern import UNKNOWN, agrees, fit, groups

Kind = Literal[
    "missing link",
    "swapped cables",
    "misplaced cable",
    "extra cable",
    "uneven links",
    "no pattern",
    "other rate",
    "separate part",
    "unexpected host",
    "missing host",
]

LONGEST_CIRCLE = 32
"""Limit on the cables of one circle of interchanged cables."""


@dataclass(frozen=True)
class Anomaly:
    """One irregularity: a sentence, and the ports that it concerns (`ends`).

    For each cable, `ends` holds the lower end and the upper end to which it leads. For a missing
    link, the second end is the expected one (port 0: any port of the switch). Uneven links have two
    switches with port 0; no pattern and a separate part have one switch with port 0.
    """

    kind: Kind
    ends: tuple[End, ...]
    sentence: str


def anomalies(fabric: Fabric) -> tuple[Anomaly, ...]:
    """Return all irregularities of the cabling, sorted by kind, then by switch and port."""
    level = node_levels(fabric)
    found = [
        *_hosts(fabric, level),
        *_links(fabric, level),
        *_other_rates(fabric, level),
        *_separate_parts(fabric, level),
    ]
    kinds = get_args(Kind)
    return tuple(sorted(found, key=lambda anomaly: (kinds.index(anomaly.kind), anomaly.ends)))


def _hosts(fabric: Fabric, level: Sequence[int]) -> Iterator[Anomaly]:
    """Yield hosts missing at leaves, and hosts connected to switches above the leaves."""
    places = [there for here, there in fabric.peers.items() if level[here.node] == HOST]
    leaves = [node for node, above in enumerate(level) if above == 1]
    usual = Counter(end.port for end in places if level[end.node] == 1)
    for port in sorted(port for port, times in usual.items() if 2 * times >= len(leaves)):
        for leaf in leaves:
            end = End(leaf, port)
            if port <= fabric.nodes[leaf].ports and end not in fabric.peers:
                yield Anomaly("missing host", (end,), f"{fabric.end_name(end)} has no host")
    for end in places:
        if level[end.node] > 1:
            yield _unexpected_host(fabric, end, "above the leaves")


def _unexpected_host(fabric: Fabric, end: End, where: str) -> Anomaly:
    host = fabric.nodes[fabric.peers[end].node].name
    sentence = f"{fabric.end_name(end)} is connected to host {host}, {where}"
    return Anomaly("unexpected host", (end,), sentence)


def _links(fabric: Fabric, level: Sequence[int]) -> list[Anomaly]:
    """Return the anomalies of cables between switches, from the pattern of each level's uplinks."""
    links = switch_links(fabric)
    anomalies: list[Anomaly] = []
    expected: dict[End, End] = {}
    extra: dict[End, End] = {}
    rows: dict[int, dict[int, dict[int, End]]] = defaultdict(dict)
    for switch, ends in links.items():
        rows[level[switch]][switch] = {
            port: end for port, end in ends.items() if level[end.node] == level[switch] + 1
        }
    for height in sorted(rows.keys() - {UNREACHED}):
        uplinks = rows[height]
        unruly: list[int] = []
        for members in groups(uplinks):
            pattern = fit(members, uplinks)
            expected |= pattern
            if not pattern:
                unruly += members
                continue
            up = ((End(s, port), far) for s in members for port, far in uplinks[s].items())
            extra |= {near: far for near, far in up if near not in pattern}
        anomalies += _uneven(fabric, {switch: uplinks[switch] for switch in unruly})
        anomalies += _without_pattern(fabric, unruly, uplinks)
    anomalies += _against(fabric, expected, extra)
    if max(rows, default=0) == 1:
        anomalies += _no_tree(fabric, links)
        return anomalies
    judged = {end for anomaly in anomalies for end in anomaly.ends}
    for cable in fabric.cables:
        heights = level[cable.a.node], level[cable.b.node]
        astray = min(heights) > UNREACHED and abs(heights[0] - heights[1]) != 1
        if astray and not judged & {cable.a, cable.b}:
            anomalies.append(_extra(fabric, cable.a, cable.b))
    return anomalies


def _against(fabric: Fabric, expected: dict[End, End], extra: dict[End, End]) -> Iterator[Anomaly]:
    """Yield differences from the `expected` ends; `extra`: cables at ports outside the pattern."""
    missing: dict[End, End] = {}
    wrong: dict[End, End] = {}
    for lower, goal in expected.items():
        have = fabric.peers.get(lower)
        if have is None:
            missing[lower] = goal
        elif have.node < len(fabric.hosts):
            yield _unexpected_host(fabric, lower, "where the other switches have an uplink")
        elif not agrees(have, goal):
            wrong[lower] = have
    goals = {goal: lower for lower, goal in missing.items() if goal.port != UNKNOWN}
    for lower, have in extra.items():
        if have in goals:
            meant = goals[have]
            del missing[meant]
            where = f"the pattern leads there from {fabric.end_name(meant)}"
            sentence = f"{_goes(fabric, lower, have)}; {where}"
            yield Anomaly("misplaced cable", (lower, have), sentence)
        else:
            yield _extra(fabric, lower, have)
    for lower, goal in missing.items():
        if lower.port <= fabric.nodes[lower.node].ports:
            where = f"the pattern leads to {_end(fabric, goal)}"
            sentence = f"{fabric.end_name(lower)} has no cable; {where}"
            yield Anomaly("missing link", (lower, goal), sentence)
    for circle in _circles(wrong, expected):
        if len(circle) == 1:
            [lower] = circle
            where = f"the pattern leads to {_end(fabric, expected[lower])}"
            sentence = f"{_goes(fabric, lower, wrong[lower])}; {where}"
            yield Anomaly("misplaced cable", (lower, wrong[lower]), sentence)
        else:
            ends = tuple(end for lower in circle for end in (lower, wrong[lower]))
            cables = ", ".join(_goes(fabric, lower, wrong[lower]) for lower in circle)
            how = "swapped" if len(circle) == 2 else "interchanged in a circle"
            yield Anomaly("swapped cables", ends, f"{cables}: {how}")


def _circles(wrong: dict[End, End], expected: dict[End, End]) -> Iterator[list[End]]:
    """Yield circles of wrong cables: each ends where the next should. Others come alone."""
    owners: dict[End, list[End]] = defaultdict(list)
    for lower in sorted(wrong):
        owners[expected[lower]].append(lower)
    left = dict.fromkeys(sorted(wrong))
    while left:
        first = next(iter(left))
        circle = [first]
        while not agrees(have := wrong[circle[-1]], expected[first]):
            others = chain(owners[have], owners[End(have.node, UNKNOWN)])
            after = next((o for o in others if o in left and o not in circle), None)
            if after is None or len(circle) == LONGEST_CIRCLE:
                circle = [first]
                break
            circle.append(after)
        for lower in circle:
            del left[lower]
        yield circle


def _uneven(fabric: Fabric, uplinks: Links) -> Iterator[Anomaly]:
    """Yield pairs of switches without a pattern whose number of links differs from most pairs'.
    Pairs without a link are included if more than half of all pairs have links."""
    pairs = Counter((switch, end.node) for switch, ends in uplinks.items() for end in ends.values())
    if not pairs:
        return
    uppers = sorted({upper for _, upper in pairs})
    if 2 * len(pairs) > len(uplinks) * len(uppers):
        pairs = Counter({pair: pairs[pair] for pair in product(uplinks, uppers)})
    usual, times = Counter(pairs.values()).most_common(1)[0]
    if 2 * times <= len(pairs):
        return
    for (switch, upper), links in pairs.items():
        if links != usual:
            names = fabric.nodes[switch].name, fabric.nodes[upper].name
            yield Anomaly(
                "uneven links",
                (End(switch, UNKNOWN), End(upper, UNKNOWN)),
                f"{names[0]} and {names[1]} share {plural(links, 'link')}; most such pairs have "
                f"{usual}",
            )


def _without_pattern(fabric: Fabric, switches: list[int], uplinks: Links) -> Iterator[Anomaly]:
    """Yield switches that share upper switches with others of their level but fit no pattern."""
    uppers = {switch: {end.node for end in ends.values()} for switch, ends in uplinks.items()}
    shared = Counter(upper for ends in uppers.values() for upper in ends)
    for switch in switches:
        if any(shared[upper] > 1 for upper in uppers[switch]):
            name = fabric.nodes[switch].name
            sentence = f"the uplinks of {name} follow no pattern that other switches share"
            yield Anomaly("no pattern", (End(switch, UNKNOWN),), sentence)


def _no_tree(fabric: Fabric, links: Links) -> Iterator[Anomaly]:
    """Yield leaves cabled to each other in a circle, for a fabric without a level above leaves."""
    pairs = {frozenset((one, end.node)) for one, ends in links.items() for end in ends.values()}
    if len(pairs) < len(links):
        return
    for switch, ends in links.items():
        if ends:
            text = f"{fabric.nodes[switch].name} is cabled to other leaves, with no level above"
            yield Anomaly("no pattern", (End(switch, UNKNOWN),), text)


def _other_rates(fabric: Fabric, level: Sequence[int]) -> Iterator[Anomaly]:
    alike: dict[tuple[int, ...], list[Cable]] = defaultdict(list)
    for cable in fabric.cables:
        alike[tuple(sorted((level[cable.a.node], level[cable.b.node])))].append(cable)
    for cables in alike.values():
        usual, times = Counter(cable.rate_bps for cable in cables).most_common(1)[0]
        if 2 * times <= len(cables):
            continue
        for cable in cables:
            if cable.rate_bps != usual:
                yield Anomaly(
                    "other rate",
                    (cable.a, cable.b),
                    f"{fabric.end_name(cable.a)} – {fabric.end_name(cable.b)} runs at "
                    f"{cable.rate_bps / 1e9:.5g} Gb/s; most such links at {usual / 1e9:.5g} Gb/s",
                )


def _separate_parts(fabric: Fabric, level: Sequence[int]) -> Iterator[Anomaly]:
    """Yield parts of the fabric with hosts that no cable connects to the largest part."""
    links = switch_links(fabric)
    found = parts([switch for switch in links if level[switch] > UNREACHED], links)
    largest, *others = sorted(found, key=lambda part: (-len(part), part)) or [[]]
    for part in others:
        first, main = (fabric.nodes[min(each)].name for each in (part, largest))
        more = f" and {plural(len(part) - 1, 'other switch')} have" if len(part) > 1 else " has"
        sentence = f"{first}{more} no way to {main}"
        yield Anomaly("separate part", (End(min(part), UNKNOWN),), sentence)


def _extra(fabric: Fabric, lower: End, upper: End) -> Anomaly:
    sentence = f"{_goes(fabric, lower, upper)}, where the pattern has no cable"
    return Anomaly("extra cable", (lower, upper), sentence)


def _goes(fabric: Fabric, lower: End, upper: End) -> str:
    return f"{fabric.end_name(lower)} goes to {fabric.end_name(upper)}"


def _end(fabric: Fabric, end: End) -> str:
    return fabric.nodes[end.node].name if end.port == UNKNOWN else fabric.end_name(end)
