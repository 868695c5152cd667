"""Rates and delays of cables, by their level or by the name of an end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from daqloom.topology.errors import TopologyError
from daqloom.topology.fabric import Fabric, checked
from daqloom.topology.levels import tree
from daqloom.topology.link_names import link_names

if TYPE_CHECKING:
    from daqloom.scenario.links import LevelLink
    from daqloom.scenario.network import Network

SPINE = 2


def with_rates(network: Network, fabric: Fabric) -> Fabric:
    """Return the fabric with the rates of `network.links.host` and so on.

    Raises TopologyError for a name that no end has.
    """
    if network.is_racks or network.links.are_alike:
        return fabric
    cables = [
        replace(cable, rate_bps=next((link.rate for link in links if link.rate), cable.rate_bps))
        for cable, links in zip(fabric.cables, _of_cables(network, fabric), strict=True)
    ]
    return checked(replace(fabric, cables=tuple(cables)))


def delays_s(network: Network, fabric: Fabric) -> list[float]:
    """Return the delay of each cable (s)."""
    links = network.links
    if network.is_racks:
        kinds = (kind.partition(".")[0] for _, kind in link_names(network, fabric)[::2])
        return [getattr(links, kind).delay for kind in kinds]
    if links.are_alike:
        return [links.delay] * len(fabric.cables)
    return [
        next((link.delay for link in tables if link.delay), links.delay)
        for tables in _of_cables(network, fabric)
    ]


def _of_cables(network: Network, fabric: Fabric) -> Iterator[list[LevelLink]]:
    """What is said of each cable, first of itself, then of its level."""
    links, hosts = network.links, len(fabric.hosts)
    named = {link.end: link for link in links.named}
    ends = {fabric.end_name(end) for cable in fabric.cables for end in (cable.a, cable.b)}
    if unknown := sorted(named.keys() - ends):
        raise TopologyError(
            f"network.links.named has a cable at {unknown[0]}, where {fabric.name} has none; "
            f'expected a host, such as {min(ends)}, or a switch and its port, as "leaf0 port 3"'
        )
    level = tree(fabric).level
    for cable in fabric.cables:
        told: list[LevelLink] = [
            named[name] for name in map(fabric.end_name, (cable.a, cable.b)) if name in named
        ]
        low, high = sorted((cable.a.node, cable.b.node))
        if low < hosts:
            told.append(links.host)
        else:
            upper = max(level[low - hosts], level[high - hosts])
            told.append(links.spine if upper <= SPINE else links.core)
        yield told
