"""Forwarding tables for `opensm -R file --lfts_file FILE`, in the form of `dump_lfts.sh`:

    Unicast lids [0x0-0x4e] of switch Lid 2 guid 0x0000000000200000 ('leaf00'):
    0x0001 001 # portguid 0x0000000000100001: 'H00-00'
    …
    78 lids dumped

There is an entry for each host and each switch. OpenSM finds nodes by GUID if LIDs have changed.
"""

import numpy as np
from numpy.typing import NDArray

from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.fabric.wiring import wire
from daqloom.topology.routing.minimal import ways_to_leaf
from daqloom.topology.routing.routes import Routes


def lft_text(fabric: Fabric, routes: Routes) -> str:
    """Return the tables of all switches. An entry without a route is left out, so that OpenSM drops
    packets to that LID. Raises TopologyError for a node without a GUID or LID."""
    for node in fabric.nodes:
        if not (node.guid and node.lid):
            raise TopologyError(
                f"{fabric.name}: {node.name} has no {'LID' if node.guid else 'GUID'}, by which "
                "OpenSM's tables name it; import the InfiniBand fabric from ibnetdiscover"
            )
    ports = np.hstack([routes.ports, _to_switches(fabric, routes)])
    nodes = sorted(enumerate(fabric.nodes), key=lambda each: each[1].lid)
    lids = f"[0x0-{nodes[-1][1].lid:#x}]"
    lines = []
    for place, switch in enumerate(fabric.switches):
        here = fabric.switch_node(place)
        own = ports[place].tolist()
        entries = [
            f"{node.lid:#06x} {own[index]:03} # portguid {node.guid:#018x}: '{node.name}'"
            for index, node in nodes
            if own[index] or index == here
        ]
        lid, guid = f"Lid {switch.lid}", f"guid {switch.guid:#018x}"
        lines.append(f"Unicast lids {lids} of switch {lid} {guid} ('{switch.name}'):")
        lines += [*entries, f"{len(entries)} lids dumped", ""]
    return "\n".join(lines)


def _to_switches(fabric: Fabric, routes: Routes) -> NDArray[np.int16]:
    """Return (switches, switches): the port towards each switch, 0 for itself and without a path.
    Packets to a leaf go as those to its first host, by the paths of the tables; to other switches
    they take a shortest path."""
    wiring, count = wire(fabric), len(fabric.switches)
    ports = np.zeros((count, count), np.int16)
    ways = ways_to_leaf(wiring, range(count))
    for switch in range(count):
        hosts = np.flatnonzero(wiring.leaf == switch)
        ports[:, switch] = routes.ports[:, hosts[0]] if len(hosts) else ways(switch).argmax(axis=1)
        ports[switch, switch] = 0
    return ports
