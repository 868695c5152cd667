"""The graph of a network, as the engine is told of it for both technologies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from daqloom.topology.link_names import link_names

if TYPE_CHECKING:
    from daqloom import _engine
    from daqloom.scenario.network import Network
    from daqloom.topology.system import FabricSystem


def set_graph(
    config: _engine.EthernetConfig | _engine.InfinibandConfig,
    network: Network,
    system: FabricSystem,
) -> None:
    """Set hosts, switches, cables with their delays, and forwarding tables (switches, hosts)."""
    fabric, links = system.fabric, network.links
    delays_s = {"source": links.source.delay, "uplink": links.uplink.delay}
    delays_s["access"] = links.access.delay
    config.hosts = len(fabric.hosts)
    config.switch_ports = [switch.ports for switch in fabric.switches]
    names = link_names(network, fabric)[::2]
    for cable, (_, kind) in zip(fabric.cables, names, strict=True):
        delay_s = delays_s.get(kind.partition(".")[0], links.delay)
        config.add_cable(*cable.a, *cable.b, cable.rate_bps, delay_s)
    config.set_forwarding(np.ascontiguousarray(system.ways.ports, np.uint16))
    for switch, ports in system.ways.groups:
        config.add_group(fabric.switch_node(switch), list(ports))
