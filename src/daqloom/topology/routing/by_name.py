"""Choice of forwarding tables by name: imported tables, or computed ones."""

import numpy as np
from numpy.typing import NDArray

from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.routing.dmodk import d_mod_k
from daqloom.topology.routing.minimal import TIES, minimal
from daqloom.topology.routing.routes import Routes

IMPORTED = "imported"
D_MOD_K = "d-mod-k"
MINIMAL = "minimal"
MENDED = "mended"
"""Tables made for a schedule (`daqloom.topology.failures.repair`), only in scenarios."""


def routing(fabric: Fabric, tables: NDArray[np.int16] | None, name: str | None) -> Routes:
    """Return the forwarding tables called `imported`, `d-mod-k`, `minimal` or `minimal:<tie>`.
    Raises TopologyError for an unknown name, or if the fabric does not allow these tables."""
    kind, _, tie = name.partition(":") if name else (default_routing(tables), "", "")
    if kind == MINIMAL:
        return minimal(fabric, tie) if tie else minimal(fabric)
    if name == MENDED:
        raise TopologyError(
            f"routing {MENDED} needs a schedule: use `daqloom topology check --routing {MENDED}`, "
            f"or `daqloom analyse SCENARIO --set network.routing={MENDED}`"
        )
    if tie or kind not in (IMPORTED, D_MOD_K):
        raise TopologyError(
            f'routing "{name}" is not known; known are {IMPORTED}, {D_MOD_K}, {MINIMAL}, '
            + ", ".join(f"{MINIMAL}:{rule}" for rule in TIES)
            + f", {MENDED}, and in scenarios ecmp on Ethernet"
        )
    if kind == D_MOD_K:
        return d_mod_k(fabric)
    if tables is None:
        raise TopologyError(
            f"{fabric.name} comes without forwarding tables: put opensm-lfts.dump into its "
            f"folder, or use routing {D_MOD_K} or {MINIMAL}"
        )
    return Routes(tables)


def default_routing(tables: NDArray[np.int16] | None) -> str:
    """Return the default routing: the imported tables if there are any, else D-mod-K."""
    return D_MOD_K if tables is None else IMPORTED
