"""The graph of a network, as the engine is told of it for both technologies."""

import numpy as np

from daqloom import _engine
from daqloom.topology.links import delays_s
from daqloom.topology.system import FabricSystem


def set_graph(
    config: _engine.EthernetConfig | _engine.InfinibandConfig,
    system: FabricSystem,
) -> None:
    """Set hosts, switches, cables with their delays, and forwarding tables (switches, hosts)."""
    fabric = system.fabric
    config.hosts = len(fabric.hosts)
    config.switch_ports = [switch.ports for switch in fabric.switches]
    for cable, delay_s in zip(fabric.cables, delays_s(system.network, fabric), strict=True):
        config.add_cable(*cable.a, *cable.b, cable.rate_bps, delay_s)
    config.set_forwarding(np.ascontiguousarray(system.ways.ports, np.uint16))
    for switch, ports in system.ways.groups:
        config.add_group(fabric.switch_node(switch), list(ports))
