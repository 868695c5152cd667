"""Racks of builder units behind core routers to which the readout units are cabled.

    readout units ── router 0 ══╤══ top of rack 0 ── builder units
    readout units ── router 1 ══╪══ top of rack 1 ── builder units
                                ┊

Readout unit i is at router i mod routers, and storage units follow; every ToR has `uplinks` cables
to every router.
"""

from collections.abc import Iterator

from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import Cable, End, Fabric, Node

MOST_PORTS = 0x7FFF
"""Limit on the ports and groups of a switch."""


def racks(
    *,
    readouts: int,
    builders: int,
    storages: int = 0,
    racks: int = 1,
    routers: int = 1,
    uplinks: int = 1,
    readout_bps: int,
    storage_bps: int = 0,
    uplink_bps: int,
    access_bps: int,
) -> Fabric:
    """Return the fabric; `builders`: number in each rack. Hosts are the readout units, the builder
    units by rack, then the storage units; switches are the routers, then the ToRs. Raises
    TopologyError."""
    units = readouts + racks * builders
    hosts = units + storages
    at_core = [*range(readouts), *range(units, hosts)]
    per_router = [len(at_core[router::routers]) for router in range(routers)]
    router_ports = [count + racks * uplinks for count in per_router]
    tor_ports = routers * uplinks + builders
    if max(*router_ports, tor_ports) + max(racks, routers) > MOST_PORTS:
        raise TopologyError(
            f"a router with {max(router_ports)} ports or a ToR with {tor_ports} is more than any "
            f"switch has; expected fewer than {MOST_PORTS}"
        )

    def cables() -> Iterator[Cable]:
        for number, host in enumerate(at_core):
            place, router = divmod(number, routers)
            rate_bps = readout_bps if host < readouts else storage_bps
            yield Cable(End(host, 1), End(hosts + router, place + 1), rate_bps)
        for rack in range(racks):
            tor = hosts + routers + rack
            for router in range(routers):
                for link in range(uplinks):
                    down = End(hosts + router, per_router[router] + rack * uplinks + link + 1)
                    yield Cable(down, End(tor, router * uplinks + link + 1), uplink_bps)
            for place in range(builders):
                host = readouts + rack * builders + place
                yield Cable(End(tor, routers * uplinks + place + 1), End(host, 1), access_bps)

    return Fabric(
        "rack" if racks == 1 else "farm",
        tuple(Node(f"readout.{unit}", 1) for unit in range(readouts))
        + tuple(Node(f"builder.{unit}", 1) for unit in range(racks * builders))
        + tuple(Node(f"storage.{unit}", 1) for unit in range(storages)),
        tuple(
            Node("core" if routers == 1 else f"core.{router}", router_ports[router])
            for router in range(routers)
        )
        + tuple(Node("tor" if racks == 1 else f"tor.{rack}", tor_ports) for rack in range(racks)),
        tuple(cables()),
    )
