"""A fabric from a scenario's own list of cables."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import count

from daqloom.scenario.schema.links import Cable
from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import Fabric, Node, check_size
from daqloom.topology.formats.named_ports import NamedCable, Plug, fabric_of_ports

NAME = "cables"
_PORT = re.compile(r"(.+) port ([1-9][0-9]{0,3})")
_End = tuple[str, int]
"""A node and its port; 0: the next free port."""


def fabric_of_cables(switches: Sequence[str], entries: Sequence[Cable], rate_bps: int) -> Fabric:
    """Return the fabric of `network.switches` and `network.cables`.

    Hosts appear in the order in which cables name them; ends of cables without a port get the
    lowest free ports of switches in the same order. `rate_bps`: for cables that specify no rate.
    Raises TopologyError for contradictions.
    """
    if twice := [name for name, times in Counter(switches).items() if times > 1]:
        raise TopologyError(f"network.switches names {twice[0]} twice; give each switch once")
    check_size(NAME, len(switches), sum(cable.count for cable in entries))
    known = frozenset(switches)
    every = [
        (f"network.cables.{place}", [_end(name, known) for name in cable.ends], cable.rate)
        for place, cable in enumerate(entries)
        for _ in range(cable.count)
    ]
    listed = [end for _, ends, _ in every for end in ends]
    used = Counter(node for node, _ in listed)
    taken = frozenset(listed)
    free = {node: _free_ports(node, taken) for node in used}
    cables = []
    for where, ends, own_bps in every:
        if not (own_bps or rate_bps):
            raise TopologyError(
                f'{where} has no rate; give one such as "HDR", or network.links.rate'
            )
        if many := [node for node, _ in ends if used[node] > 1 and node not in known]:
            raise TopologyError(
                f"{where}: host {many[0]} has {used[many[0]]} cables; a host has one: list "
                "it in network.switches, or give each adapter a name of its own"
            )
        a, b = (Plug(node, port or next(free[node])) for node, port in ends)
        cables.append(NamedCable(a, b, own_bps or rate_bps))
    if idle := [name for name in switches if not used[name]]:
        raise TopologyError(f"network.switches: {idle[0]} has 0 cables; expected 1 or more")
    hosts = [Node(name, 1) for name in used if name not in known]
    return fabric_of_ports(NAME, [Node(name, 0) for name in switches], cables, hosts)


def _end(name: str, switches: Collection[str]) -> _End:
    found = _PORT.fullmatch(name)
    if name in switches or not found:
        return name, 0
    if found[1] not in switches:
        raise TopologyError(
            f'network.cables: "{name[:80]}" names a port of a node that is not in '
            "network.switches; list it there, or name a host alone"
        )
    return found[1], int(found[2])


def _free_ports(node: str, taken: Collection[_End]) -> Iterator[int]:
    return (port for port in count(1) if (node, port) not in taken)
