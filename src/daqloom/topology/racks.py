"""Racks of builder units behind one or two core routers, which the readout units are cabled to.

    readout units ── router 0 ══╤══ top of rack 0 ── builder units
    readout units ── router 1 ══╪══ top of rack 1 ── builder units
                                ┊

Readout unit i is cabled to router i mod routers; every top of rack (ToR) has `uplinks` cables to
every router. So there is one way between two hosts but for the choice among parallel uplinks.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daqloom.topology.equal_cost import EqualCost
from daqloom.topology.errors import TopologyError
from daqloom.topology.fabric import Cable, End, Fabric, Node

MOST_PORTS = 0x7FFF
"""Ports and groups of a switch."""


def racks(
    *,
    readouts: int,
    builders: int,
    racks: int = 1,
    routers: int = 1,
    uplinks: int = 1,
    readout_bps: int,
    uplink_bps: int,
    access_bps: int,
) -> tuple[Fabric, EqualCost]:
    """Return the cables and the forwarding tables; `builders` are those of each rack.

    Hosts are the readout units, then the builder units, rack after rack; switches are the routers,
    then the ToRs. Raises TopologyError where a switch has too many ports.
    """
    hosts = readouts + racks * builders
    per_router = [len(range(router, readouts, routers)) for router in range(routers)]
    router_ports = [count + racks * uplinks for count in per_router]
    tor_ports = routers * uplinks + builders
    if max(*router_ports, tor_ports) + max(racks, routers) > MOST_PORTS:
        raise TopologyError(
            f"a router with {max(router_ports)} ports or a ToR with {tor_ports} is more than any "
            f"switch has; expected fewer than {MOST_PORTS}"
        )

    def cables() -> Iterator[Cable]:
        for unit in range(readouts):
            router, place = unit % routers, unit // routers
            yield Cable(End(unit, 1), End(hosts + router, place + 1), readout_bps)
        for rack in range(racks):
            tor = hosts + routers + rack
            for router in range(routers):
                for link in range(uplinks):
                    down = End(hosts + router, per_router[router] + rack * uplinks + link + 1)
                    yield Cable(down, End(tor, router * uplinks + link + 1), uplink_bps)
            for place in range(builders):
                host = readouts + rack * builders + place
                yield Cable(End(tor, routers * uplinks + place + 1), End(host, 1), access_bps)

    fabric = Fabric(
        "rack" if racks == 1 else "farm",
        tuple(Node(f"readout.{unit}", 1) for unit in range(readouts))
        + tuple(Node(f"builder.{unit}", 1) for unit in range(racks * builders)),
        tuple(
            Node("core" if routers == 1 else f"core.{router}", router_ports[router])
            for router in range(routers)
        )
        + tuple(Node("tor" if racks == 1 else f"tor.{rack}", tor_ports) for rack in range(racks)),
        tuple(cables()),
    )
    return fabric, _routes(readouts, builders, racks, routers, uplinks, per_router)


def _routes(
    readouts: int, builders: int, racks: int, routers: int, uplinks: int, per_router: list[int]
) -> EqualCost:
    """Return the tables: a host's own port at its switch, else the uplinks that lead there."""
    ports = np.zeros((routers + racks, readouts + racks * builders), np.uint16)
    groups: list[tuple[int, tuple[int, ...]]] = []

    def way(switch: int, first: int, of_ports: int, number: int) -> int:
        """Return the route by the uplinks from port `first` on, a new group of the switch."""
        if uplinks == 1:
            return first
        groups.append((switch, tuple(range(first, first + uplinks))))
        return of_ports + number

    unit = np.arange(readouts)
    for router in range(routers):
        own = unit % routers == router
        ports[router, :readouts][own] = unit[own] // routers + 1
        for rack in range(racks):
            first = per_router[router] + rack * uplinks + 1
            there = readouts + rack * builders + np.arange(builders)
            ports[router, there] = way(
                router, first, per_router[router] + racks * uplinks, rack + 1
            )
    for rack in range(racks):
        tor = routers + rack
        there = readouts + rack * builders + np.arange(builders)
        to_routers = [
            way(tor, router * uplinks + 1, routers * uplinks + builders, router + 1)
            for router in range(routers)
        ]
        to_others = to_routers[0]
        if routers > 1:  # to other racks by way of any router
            groups.append((tor, tuple(range(1, routers * uplinks + 1))))
            to_others = routers * uplinks + builders + (routers if uplinks > 1 else 0) + 1
        ports[tor, :readouts] = np.array(to_routers, np.uint16)[unit % routers]
        ports[tor, readouts:] = to_others
        ports[tor, there] = routers * uplinks + np.arange(builders) + 1
    # A router reaches the other's readout units by way of any rack's ToR: the first.
    for router in range(routers):
        other = unit % routers != router
        ports[router, :readouts][other] = ports[router, readouts] if racks * builders else 0
    return EqualCost(ports, tuple(groups))
