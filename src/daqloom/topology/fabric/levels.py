"""Levels of a tree of switches, and whether each level can forward all traffic from below."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from daqloom.topology.fabric.bisection import has_full_bisection
from daqloom.topology.fabric.fabric import End, Fabric

HOST = -1
UNREACHED = 0
"""Level of a switch that has no path of cables to a host."""
NAMES = {HOST: "host", UNREACHED: "unreached", 1: "leaf", 2: "spine", 3: "core"}

MOST_LEVELS = 8
"""Limit on levels: no tree has more, and switches farther from the hosts are not examined."""
MOST_NEIGHBOURS = 256
"""Limit on cables followed to find a switch cabled alike; a regular tree needs only a few."""

Links = Mapping[int, Mapping[int, End]]
"""For each switch (node index): its ports with cables to switches, and the ends there."""


@dataclass(frozen=True)
class Balance:
    """Capacity of a switch towards its hosts, and towards the level above (b/s)."""

    switch: int
    """Place in `fabric.switches`."""
    down_bps: int
    up_bps: int


@dataclass(frozen=True)
class Tree:
    """Levels of a fabric: leaves (switches with hosts) 1, spines above them 2, cores 3."""

    level: tuple[int, ...]
    """Level of each switch in `fabric.switches`; `UNREACHED` if no cables lead to it from hosts."""
    blocking: tuple[Balance, ...]
    """Switches below the top with less capacity upwards than downwards, and switches with cables
    within their level whose capacity is below the rate of their hosts."""
    full_bisection: bool | None
    """Whether cable capacity lets any half of the hosts send to the other half at full rate: the
    cables around each set of switches carry the rate of the hosts inside, or of those outside.
    None: not known (see `bisection`), or the fabric has no hosts."""
    hosts_bps: int
    """Total rate of the cables of all hosts."""

    @property
    def counts(self) -> dict[int, int]:
        """Number of switches in each level, from the leaves up; `UNREACHED`, if any, is first."""
        return dict(sorted(Counter(self.level).items()))

    @property
    def non_blocking(self) -> bool | None:
        """Whether every switch below the top has at least as much capacity up as down, and no cut
        is too narrow; None: the bisection is not known. Any permutation of hosts needs this to run
        at full rate. With suitable routes it is also sufficient on regular cabling (without
        `anomalies`)."""
        return False if self.blocking else self.full_bisection


def tree(fabric: Fabric) -> Tree:
    """Levels and capacities."""
    links = switch_links(fabric)
    return _weigh(fabric, _levels(fabric, links), links)


def _levels(fabric: Fabric, links: Links) -> dict[int, int]:
    """Return the level of each switch, from its distance to the leaves.

    A leaf is a switch with hosts. A spine with a few servers is no leaf: it has more cables to
    switches than hosts, and a neighbour with at least twice as many hosts. Leaves and pods without
    hosts are reached only from above; they get the level of the switches cabled alike.
    """
    level = dict.fromkeys(links, UNREACHED) | _distances(_host_leaves(fabric, links), links)
    for top in range(2, MOST_LEVELS):
        for part in parts([switch for switch in links if level[switch] > top], links):
            if _stands_below(part, top, level, links):
                level |= {switch: 2 * top - level[switch] for switch in part}
    return level


def tree_levels(fabric: Fabric) -> tuple[int, ...]:
    """Return the level of each switch, in the order of `fabric.switches`."""
    return tuple(_levels(fabric, switch_links(fabric)).values())


def node_levels(fabric: Fabric) -> tuple[int, ...]:
    """Return the level of each node; hosts have level `HOST`."""
    return (HOST,) * len(fabric.hosts) + tree_levels(fabric)


def level_name(level: int) -> str:
    """Return host, leaf, spine or core; `unreached` for a switch without a path to a host."""
    return NAMES.get(level, f"level {level}")


def switch_links(fabric: Fabric) -> dict[int, dict[int, End]]:
    """For each switch (node index): its ports with cables to switches, and the ends there."""
    hosts = len(fabric.hosts)
    links: dict[int, dict[int, End]] = {node: {} for node in range(hosts, len(fabric.nodes))}
    for here, there in fabric.peers.items():
        if here.node >= hosts and there.node >= hosts:
            links[here.node][here.port] = there
    return links


def _host_leaves(fabric: Fabric, links: Links) -> set[int]:
    """The leaves with hosts."""
    attached = fabric.host_counts
    leaves: set[int] = set()
    for switch in sorted(attached, key=lambda switch: (-attached[switch], switch)):
        peers = [end.node for end in links[switch].values() if end.node in leaves]
        has_more = any(attached[peer] >= 2 * attached[switch] for peer in peers)
        if not (has_more and len(links[switch]) > attached[switch]):
            leaves.add(switch)
    return leaves


def _distances(leaves: Iterable[int], links: Links) -> dict[int, int]:
    """Return 1 for each leaf, 2 for its neighbours, …; unreachable switches are left out."""
    level = dict.fromkeys(leaves, 1)
    reached = list(level)
    for switch in reached:
        for end in links[switch].values():
            if end.node not in level:
                level[end.node] = level[switch] + 1
                reached.append(end.node)
    return level


def parts(switches: Collection[int], links: Links) -> Iterator[list[int]]:
    """Yield groups of these switches that are connected by cables between them."""
    return components(switches, lambda switch: {end.node for end in links[switch].values()})


def components(nodes: Collection[int], near: Callable[[int], set[int]]) -> Iterator[list[int]]:
    """Yield the connected groups of these nodes; `near` (a node's neighbours) is symmetric."""
    left = set(nodes)
    for first in nodes:
        if first in left:
            left.remove(first)
            part = [first]
            for node in part:
                found = near(node) & left
                left -= found
                part += sorted(found)
            yield part


def _stands_below(part: list[int], top: int, level: Mapping[int, int], links: Links) -> bool:
    """Return whether a part beyond level `top` belongs below: most of its edge has twins there."""
    edge = [switch for switch in part if level[switch] == top + 1]
    deep = any(level[switch] >= 2 * top for switch in part)
    return not deep and 2 * sum(_has_twin(s, top, level, links) for s in edge) > len(edge)


def _has_twin(switch: int, top: int, level: Mapping[int, int], links: Links) -> bool:
    """Return whether a switch of level `top` − 1 reaches the same switches of level `top` by the
    same ports, for more than half of each one's ports to that level."""

    def upwards(switch: int) -> set[tuple[int, int]]:
        return {(port, e.node) for port, e in links[switch].items() if level[e.node] == top}

    mine = upwards(switch)
    near = (end.node for _, upper in sorted(mine) for end in links[upper].values())
    for other in dict.fromkeys(islice(near, MOST_NEIGHBOURS)):
        theirs = upwards(other) if level[other] == top - 1 else set()
        if 2 * len(mine & theirs) > max(len(mine), len(theirs)):
            return True
    return False


def _weigh(fabric: Fabric, level: Mapping[int, int], links: Links) -> Tree:
    hosts = len(fabric.hosts)
    sent: Counter[int] = Counter()
    down: Counter[int] = Counter()
    up: Counter[int] = Counter()
    for cable in fabric.cables:
        for here, there in (cable.a, cable.b), (cable.b, cable.a):
            if here.node < hosts:
                sent[there.node] += cable.rate_bps
            elif there.node < hosts or level[there.node] < level[here.node]:
                down[here.node] += cable.rate_bps
            elif level[there.node] > level[here.node]:
                up[here.node] += cable.rate_bps
    top, hosts_bps = max(level.values(), default=0), sum(sent.values())
    across = _across(fabric, level)
    pods = (
        part
        for height in (*range(1, min(top, MOST_LEVELS)), top)
        for part in parts([s for s in links if UNREACHED < level[s] <= height], links)
    )
    return Tree(
        tuple(level.values()),
        tuple(
            Balance(node - hosts, down[node], up[node] + across[node])
            for node in sorted(level)
            if (level[node] < top and up[node] + across[node] < down[node])
            or (across[node] and up[node] + across[node] < min(sent[node], hosts_bps - sent[node]))
        ),
        has_full_bisection(_rates(fabric, links), sent, level, pods) if sent else None,
        hosts_bps,
    )


def _across(fabric: Fabric, level: Mapping[int, int]) -> Counter[int]:
    """Return the sum of cable rates between switches of the same level, by level (b/s)."""
    found: Counter[int] = Counter()
    for cable in fabric.cables:
        ends = cable.a.node, cable.b.node
        if min(ends) >= len(fabric.hosts) and len({level[node] for node in ends}) == 1:
            found.update(dict.fromkeys(ends, cable.rate_bps))
    return found


def _rates(fabric: Fabric, links: Links) -> dict[int, Counter[int]]:
    """For each switch: the total rate of its cables to each neighbour switch (b/s)."""
    rates: dict[int, Counter[int]] = {switch: Counter() for switch in links}
    for cable in fabric.cables:
        ends = cable.a.node, cable.b.node
        if min(ends) >= len(fabric.hosts):
            for here, there in (ends, ends[::-1]):
                rates[here][there] += cable.rate_bps
    return rates
