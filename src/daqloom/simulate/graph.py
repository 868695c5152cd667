"""Graph of a network, as configuration fields for both Ethernet and InfiniBand."""

import numpy as np

from daqloom.deployment.fabric_system import FabricSystem
from daqloom.topology.fabric.links import delays_s
from daqloom.topology.routing.minimal import EqualCost


def graph_fields(system: FabricSystem) -> dict[str, object]:
    """Return hosts, ports, cables with delays, and forwarding tables as configuration fields."""
    fabric = system.fabric
    delays = zip(fabric.cables, delays_s(system.network, fabric), strict=True)
    return {
        "hosts": len(fabric.hosts),
        "switch_ports": [each.ports for each in fabric.switches],
        "cables": [(cable.a, cable.b, cable.rate_bps, delay_s) for cable, delay_s in delays],
        **table_fields(system.ways, len(fabric.hosts)),
    }


def table_fields(ways: EqualCost, hosts: int) -> dict[str, object]:
    """Return forwarding tables (switches, hosts), and the groups of ports to which they refer."""
    return {
        "forwarding": np.ascontiguousarray(ways.ports, np.uint16).ravel(),
        "groups": [(hosts + switch, ports) for switch, ports in ways.groups],
    }
