"""Graph of a network in the engine's configurations of both technologies."""

import numpy as np

from daqloom import _engine
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.fabric.links import delays_s
from daqloom.topology.system.system import FabricSystem


def graph_fields(fabric: Fabric) -> dict[str, object]:
    """Return the numbers of hosts and of each switch's ports, as the engine names them."""
    return {"hosts": len(fabric.hosts), "switch_ports": [each.ports for each in fabric.switches]}


def set_graph(
    config: _engine.EthernetConfig | _engine.InfinibandConfig, system: FabricSystem
) -> None:
    """Set cables with their delays, and forwarding tables (switches, hosts)."""
    fabric = system.fabric
    for cable, delay_s in zip(fabric.cables, delays_s(system.network, fabric), strict=True):
        config.add_cable(*cable.a, *cable.b, cable.rate_bps, delay_s)
    config.set_forwarding(np.ascontiguousarray(system.ways.ports, np.uint16))
    for switch, ports in system.ways.groups:
        config.add_group(fabric.switch_node(switch), list(ports))
