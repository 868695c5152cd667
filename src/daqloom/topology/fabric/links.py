"""Directed links of a network: names, kinds, rates and delays.

Links of a network of racks are called `source.3.up`, `uplink.0.down`, `access.7.down`, numbered
through all racks. In other networks, a link has the name of the cable end where it begins.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from daqloom.scenario.schema.links import LevelLink, RackLink
from daqloom.scenario.schema.network import Network
from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import Fabric, check
from daqloom.topology.fabric.levels import tree_levels


class LinkName(NamedTuple):
    """The name of a link, and of its kind."""

    name: str
    kind: str


def link_names(network: Network, fabric: Fabric) -> list[LinkName]:
    """Return two names for each cable in order: the link from end a to b, then the one back."""
    return list(_of_racks(fabric) if network.is_racks else _of_ends(fabric))


def _of_racks(fabric: Fabric) -> Iterator[LinkName]:
    """Yield the links of racks: cables of hosts at the core begin at the host, others at the
    switch."""
    numbers = {"source": 0, "storage": 0, "uplink": 0, "access": 0}
    hosts = len(fabric.hosts)
    for cable in fabric.cables:
        at_core = cable.a.node < hosts
        kind = "access" if cable.b.node < hosts else "uplink"
        if at_core:
            is_storage = fabric.hosts[cable.a.node].name.startswith("storage.")
            kind = "storage" if is_storage else "source"
        ways = ("up", "down") if at_core else ("down", "up")
        for way in ways:
            yield LinkName(f"{kind}.{numbers[kind]}.{way}", f"{kind}.{way}")
        numbers[kind] += 1


def _of_ends(fabric: Fabric) -> Iterator[LinkName]:
    hosts = len(fabric.hosts)
    for cable in fabric.cables:
        for near, far in ((cable.a, cable.b), (cable.b, cable.a)):
            kind = "host.down" if far.node < hosts else "fabric"
            yield LinkName(fabric.end_name(near), "host.up" if near.node < hosts else kind)


def switch_levels(network: Network, fabric: Fabric) -> list[str]:
    """Return the level name of each switch: core or tor in racks, else leaf, spine or core."""
    if network.is_racks:
        return [switch.name.partition(".")[0] for switch in fabric.switches]
    names = {0: "leaf", 1: "leaf", 2: "spine"}
    return [names.get(level, "core") for level in tree_levels(fabric)]


def means_by_kind(links: Iterable[LinkName], values: Iterable[float]) -> dict[str, float]:
    """Return the mean of `values` (one per link) for each kind and direction of links."""
    kinds: dict[str, list[float]] = {}
    for link, value in zip(links, values, strict=True):
        kinds.setdefault(link.kind, []).append(value)
    return {kind: math.fsum(each) / len(each) for kind, each in kinds.items()}


def most_by_level(levels: Iterable[str], values: Iterable[int]) -> dict[str, int]:
    """Return, for each level, the largest value of its switches."""
    found: dict[str, int] = {}
    for level, value in zip(levels, values, strict=True):
        found[level] = max(value, found.get(level, value))
    return found


SPINE = 2


def with_rates(network: Network, fabric: Fabric) -> Fabric:
    """Return the fabric with the rates of `network.links`. Raises TopologyError."""
    if network.is_racks or network.links.are_alike:
        return fabric
    cables = [
        replace(cable, rate_bps=next((link.rate for link in links if link.rate), cable.rate_bps))
        for cable, links in zip(fabric.cables, _of_cables(network, fabric), strict=True)
    ]
    return check(replace(fabric, cables=tuple(cables)))


def delays_s(network: Network, fabric: Fabric) -> list[float]:
    """Return the delay of each cable (s)."""
    links = network.links
    if network.is_racks:
        return [link.delay for link in _of_rack_cables(network, fabric)]
    if links.are_alike:
        return [links.delay] * len(fabric.cables)
    delays = [[table.delay for table in tables] for tables in _of_cables(network, fabric)]
    return [next(filter(None, each), links.delay) for each in delays]


def buckets_bytes(network: Network, fabric: Fabric) -> list[int]:
    """Return the token-bucket depth of each cable (B); 0 for a cable without shaping."""
    if network.is_racks:
        return [link.bucket for link in _of_rack_cables(network, fabric)]
    return [network.links.bucket] * len(fabric.cables)


def _of_rack_cables(network: Network, fabric: Fabric) -> Iterator[RackLink]:
    """Yield, for each cable of racks, its table in `network.links`."""
    for _, kind in link_names(network, fabric)[::2]:
        link: RackLink = getattr(network.links, kind.partition(".")[0])
        yield link


def _of_cables(network: Network, fabric: Fabric) -> Iterator[list[LevelLink]]:
    """Yield the link tables for each cable: those named after its ends, then that of its level."""
    links, hosts = network.links, len(fabric.hosts)
    named = {link.end: link for link in links.named}
    ends = {fabric.end_name(end) for cable in fabric.cables for end in (cable.a, cable.b)}
    if unknown := sorted(named.keys() - ends):
        port = min(end for end in ends if " port " in end)
        raise TopologyError(
            f"network.links.named has a cable at {unknown[0]}, where {fabric.name} has none; "
            f'expected a host, such as {min(ends)}, or a switch and its port, such as "{port}"'
        )
    level = tree_levels(fabric)
    for cable in fabric.cables:
        ports = map(fabric.end_name, (cable.a, cable.b))
        tables: list[LevelLink] = [named[name] for name in ports if name in named]
        low, high = sorted((cable.a.node, cable.b.node))
        if low < hosts:
            tables.append(links.host)
        else:
            upper = max(level[low - hosts], level[high - hosts])
            tables.append(links.spine if upper <= SPINE else links.core)
        yield tables
