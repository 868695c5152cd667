"""A fabric from a scenario's own list of cables."""

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from itertools import count

from daqloom.scenario.links import Cable as GivenCable
from daqloom.topology import TopologyError
from daqloom.topology.fabric import MOST_PORTS, Cable, End, Fabric, Node, check_size, checked

NAME = "cables"
_PORT = re.compile(r"(.+) port ([1-9][0-9]{0,3})")


def fabric_of_cables(switches: Sequence[str], given: Sequence[GivenCable], rate_bps: int) -> Fabric:
    """Return the fabric of `network.switches` and `network.cables`.

    Hosts are in the order in which cables name them. A switch's ports that no cable names are the
    lowest free ones, in the order of the cables.

    `rate_bps`: of cables without a rate of their own. Raises TopologyError, with the cable, where
    they contradict one another.
    """
    _check_names(switches)
    check_size(NAME, len(switches), sum(cable.count for cable in given))
    known = frozenset(switches)
    plugs = [
        (place, [_Plug(name, known) for name in cable.ends], cable.rate or rate_bps)
        for place, cable in enumerate(given)
        for _ in range(cable.count)
    ]
    hosts = list(dict.fromkeys(p.node for _, ends, _ in plugs for p in ends if not p.is_switch))
    index = {name: place for place, name in enumerate([*hosts, *switches])}
    taken = {(p.node, p.port) for _, ends, _ in plugs for p in ends if p.port}
    used = Counter(p.node for _, ends, _ in plugs for p in ends)
    free = {name: _free_ports(name, taken) for name in index}
    highest: Counter[str] = Counter()
    cables = []
    for place, plugged, each_bps in plugs:
        where = f"network.cables.{place}"
        if not each_bps:
            raise TopologyError(
                f'{where} has no rate; give it a rate, such as "HDR", or network.links.rate'
            )
        ends = []
        for plug in plugged:
            if not plug.is_switch and used[plug.node] > 1:
                raise TopologyError(
                    f"{where}: host {plug.node} has {used[plug.node]} cables; a host has one: list "
                    "it in network.switches, or give each adapter a name of its own"
                )
            port = plug.port or next(free[plug.node])
            highest[plug.node] = max(highest[plug.node], port)
            ends.append(End(index[plug.node], port))
        cables.append(Cable(ends[0], ends[1], each_bps))
    for name in switches:
        if not 1 <= highest[name] <= MOST_PORTS:
            raise TopologyError(
                f"network.switches: {name} has {used[name]} cables, to port {highest[name]}; "
                f"expected 1 to {MOST_PORTS}"
            )
    return checked(
        Fabric(
            NAME,
            tuple(Node(name, 1) for name in hosts),
            tuple(Node(name, highest[name]) for name in switches),
            tuple(cables),
        )
    )


class _Plug:
    """One end of a cable; port 0: the next free one."""

    def __init__(self, name: str, switches: frozenset[str]) -> None:
        found = _PORT.fullmatch(name)
        is_port = found is not None and name not in switches
        self.node = found[1] if found is not None and is_port else name
        self.port = int(found[2]) if found is not None and is_port else 0
        self.is_switch = self.node in switches
        if is_port and not self.is_switch:
            raise TopologyError(
                f'network.cables: "{name[:80]}" names a port of a node that is not in '
                "network.switches; list it there, or name a host alone"
            )


def _free_ports(node: str, taken: Container[tuple[str, int]]) -> Iterator[int]:
    return (port for port in count(1) if (node, port) not in taken)


def _check_names(switches: Sequence[str]) -> None:
    twice = [name for name, times in Counter(switches).items() if times > 1]
    if twice:
        raise TopologyError(f"network.switches names {twice[0]} twice; give each switch once")
