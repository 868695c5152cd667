"""Levels of a tree of switches, and whether each level passes on what comes from below."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from daqloom.topology.fabric.bisection import has_full_bisection
from daqloom.topology.fabric.fabric import End, Fabric

HOST = -1
UNREACHED = 0
"""The level of a switch that no cable connects to a host."""
NAMES = {HOST: "host", UNREACHED: "unreached", 1: "leaf", 2: "spine", 3: "core"}

MOST_LEVELS = 8
"""No tree has more; what is further from the hosts than this is looked at no closer."""
MOST_NEIGHBOURS = 256
"""Cables that are followed in search of a switch's twin; in a regular tree the first ones do."""

Links = Mapping[int, Mapping[int, End]]
"""For each switch (node index) its ports with a cable to a switch, and the other end."""


@dataclass(frozen=True)
class Balance:
    """Capacity of a switch towards hosts and upwards (b/s)."""

    switch: int
    """Place in `fabric.switches`."""
    down_bps: int
    up_bps: int


@dataclass(frozen=True)
class Tree:
    """A fabric's levels: hosts' switches (leaves) 1, those above (spines) 2, cores 3."""

    level: tuple[int, ...]
    """Level of each switch, in the order of `fabric.switches`; `UNREACHED` without a way to it."""
    blocking: tuple[Balance, ...]
    """The switches below the top that have less capacity upwards than downwards, and those whose
    cables to switches of their own level carry less than their hosts send."""
    full_bisection: bool | None
    """Any half of the hosts can send to the other half at full rate, as far as capacity goes: the
    cables around each set of switches carry what its hosts send, or what all others can take. None:
    not known (`bisection`), or there are no hosts."""
    hosts_bps: int
    """All hosts' cables together."""

    @property
    def counts(self) -> dict[int, int]:
        """Switches by level, from the leaves up; `UNREACHED` comes first if there are any."""
        return dict(sorted(Counter(self.level).items()))

    @property
    def non_blocking(self) -> bool | None:
        """Every switch below the top has no less capacity up than down, and no cut is too narrow.
        None: not known, as the bisection is not.
        That is necessary for any permutation of hosts to run at full rate, and sufficient (with the
        right routes) where the cabling is regular: where `anomalies` has nothing to say."""
        return False if self.blocking else self.full_bisection


def tree(fabric: Fabric) -> Tree:
    """Levels and capacities."""
    links = switch_links(fabric)
    return _weigh(fabric, _levels(fabric, links), links)


def _levels(fabric: Fabric, links: Links) -> dict[int, int]:
    """The level of each switch by its distance from the leaves.

    A leaf is a switch with hosts, unless it has more cables to switches than hosts and a neighbour
    with twice as many hosts: a server at a spine makes no leaf of it. Leaves and pods without
    hosts, which are reached from above, are put to the level of the switches that are cabled alike.
    """
    level = dict.fromkeys(links, UNREACHED) | _distances(_inhabited(fabric, links), links)
    for top in range(2, MOST_LEVELS):
        for part in parts([switch for switch in links if level[switch] > top], links):
            if _stands_below(part, top, level, links):
                level |= {switch: 2 * top - level[switch] for switch in part}
    return level


def tree_levels(fabric: Fabric) -> tuple[int, ...]:
    """The level of each switch, in the order of `fabric.switches`."""
    return tuple(_levels(fabric, switch_links(fabric)).values())


def node_levels(fabric: Fabric) -> tuple[int, ...]:
    """The level of each node, `HOST` of hosts."""
    return (HOST,) * len(fabric.hosts) + tree_levels(fabric)


def level_name(level: int) -> str:
    """host, leaf, spine, core; `unreached` for a switch that no cable connects to a host."""
    return NAMES.get(level, f"level {level}")


def switch_links(fabric: Fabric) -> dict[int, dict[int, End]]:
    """For each switch (node index) its ports with a cable to a switch, and the other end."""
    hosts = len(fabric.hosts)
    links: dict[int, dict[int, End]] = {node: {} for node in range(hosts, len(fabric.nodes))}
    for here, there in fabric.peers.items():
        if here.node >= hosts and there.node >= hosts:
            links[here.node][here.port] = there
    return links


def _inhabited(fabric: Fabric, links: Links) -> set[int]:
    """The leaves with hosts."""
    attached = fabric.attached
    leaves: set[int] = set()
    for switch in sorted(attached, key=lambda switch: (-attached[switch], switch)):
        peers = [end.node for end in links[switch].values() if end.node in leaves]
        has_more = any(attached[peer] >= 2 * attached[switch] for peer in peers)
        if not (has_more and len(links[switch]) > attached[switch]):
            leaves.add(switch)
    return leaves


def _distances(leaves: Iterable[int], links: Links) -> dict[int, int]:
    """1 for the leaves, 2 for their neighbours, …; switches out of reach are not in it."""
    level = dict.fromkeys(leaves, 1)
    reached = list(level)
    for switch in reached:
        for end in links[switch].values():
            if end.node not in level:
                level[end.node] = level[switch] + 1
                reached.append(end.node)
    return level


def parts(switches: Collection[int], links: Links) -> Iterator[list[int]]:
    """These switches in groups that cables between them connect."""
    return connected(switches, lambda switch: {end.node for end in links[switch].values()})


def connected(nodes: Collection[int], near: Callable[[int], set[int]]) -> Iterator[list[int]]:
    """These nodes in groups in which each is near another; `near` goes both ways."""
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
    """Whether switches beyond level `top` hang below it: most that touch it have twins there."""
    edge = [switch for switch in part if level[switch] == top + 1]
    deep = any(level[switch] >= 2 * top for switch in part)
    return not deep and 2 * sum(_has_twin(s, top, level, links) for s in edge) > len(edge)


def _has_twin(switch: int, top: int, level: Mapping[int, int], links: Links) -> bool:
    """Whether some switch of level `top` − 1 reaches the same switches of level `top` by the same
    ports: on more than half of the ports of both that lead there."""

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
    """The rate of each switch's cables to switches of its own level (b/s)."""
    found: Counter[int] = Counter()
    for cable in fabric.cables:
        ends = cable.a.node, cable.b.node
        if min(ends) >= len(fabric.hosts) and len({level[node] for node in ends}) == 1:
            found.update(dict.fromkeys(ends, cable.rate_bps))
    return found


def _rates(fabric: Fabric, links: Links) -> dict[int, Counter[int]]:
    """For each switch its neighbours, and the rate of all cables to each (b/s)."""
    rates: dict[int, Counter[int]] = {switch: Counter() for switch in links}
    for cable in fabric.cables:
        ends = cable.a.node, cable.b.node
        if min(ends) >= len(fabric.hosts):
            for here, there in (ends, ends[::-1]):
                rates[here][there] += cable.rate_bps
    return rates
