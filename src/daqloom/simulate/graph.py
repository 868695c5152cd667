"""The graph of a network, as the engine is told of it for both technologies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from daqloom import _engine
    from daqloom.topology.fabric import Fabric


def set_graph(
    config: _engine.EthernetConfig | _engine.InfinibandConfig,
    fabric: Fabric,
    delays_s: Iterable[float],
    ports: NDArray[np.integer],
) -> None:
    """Set hosts, switches, cables with their delays, and forwarding tables (switches, hosts)."""
    config.hosts = len(fabric.hosts)
    config.switch_ports = [switch.ports for switch in fabric.switches]
    for cable, delay_s in zip(fabric.cables, delays_s, strict=True):
        config.add_cable(*cable.a, *cable.b, cable.rate_bps, delay_s)
    config.set_forwarding(np.ascontiguousarray(ports, np.uint16))
