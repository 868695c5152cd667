"""What the directed links of a network are called, and of which kind they are.

In racks `source.3.up`, `uplink.0.down`, `access.7.down`, numbered through all racks; elsewhere a
link has the name of the end that it begins at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from daqloom.topology.levels import tree

if TYPE_CHECKING:
    from daqloom.scenario.network import Network
    from daqloom.topology.fabric import Fabric


class LinkName(NamedTuple):
    """The name of a link, and of its kind."""

    name: str
    kind: str


def link_names(network: Network, fabric: Fabric) -> list[LinkName]:
    """Return the names in the order of cables: that from end a to b, then that back."""
    return list(_of_racks(fabric) if network.is_racks else _of_ends(fabric))


def _of_racks(fabric: Fabric) -> Iterator[LinkName]:
    """Readout units' cables begin at the host; the others lead down to it."""
    numbers = {"source": 0, "uplink": 0, "access": 0}
    hosts = len(fabric.hosts)
    for cable in fabric.cables:
        is_access = cable.b.node < hosts
        kind = "source" if cable.a.node < hosts else "access" if is_access else "uplink"
        ways = ("up", "down") if kind == "source" else ("down", "up")
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
    """Return the level of each switch: core or tor in racks, else leaf, spine or core."""
    if network.is_racks:
        return [switch.name.partition(".")[0] for switch in fabric.switches]
    names = {0: "leaf", 1: "leaf", 2: "spine"}
    return [names.get(level, "core") for level in tree(fabric).level]
