"""The regular pattern in the cables above one level of switches, derived from the cables alone.

Port numbers and names may be arbitrary. The cables of a regular folded Clos obey two rules:

1. The switches of a level form groups (all leaves; the leaves of a pod; the spines of a plane) that
   reach the *same upper switch by the same port*. Two switches belong to one group if they agree on
   at least half of the uplinks of the switch with fewer uplinks.
2. Within a group, the port of the upper switch is a sum, q = a(switch) + b(port): a selects a block
   of ports for the lower switch, and b the position in the block. Both usual numberings obey this
   rule (parallel links side by side, or one turn of leaves apart), and so do many unusual ones.

Majorities decide, so a few wrong or missing cables do not hide the pattern: a(switch) is the most
frequent difference over all ports and members; (upper switch, b) of a port is the most frequent
pair over the members. On a tie, the lowest numbers win that no other port has taken. A pattern is
accepted if it explains more than half of the group's cables. Each number chosen for a pattern can
explain one cable of any random cabling, so as many cables are left out of this comparison. A port
counts as explained only if two or more members confirm it. If rule 2 fails, rule 1 is tried alone.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

from daqloom.topology.fabric.fabric import End
from daqloom.topology.fabric.levels import Links, components

UNKNOWN = 0
"""Port number of an end for which the pattern determines only the switch."""
NEXT_FEW = 16


def groups(uplinks: Links) -> list[list[int]]:
    """Return groups of switches that agree on at least half of their uplinks, or single ones."""
    alike: dict[int, set[int]] = defaultdict(set)
    for (one, other), agreed in _agreements(uplinks).items():
        if 2 * agreed >= min(len(uplinks[one]), len(uplinks[other])):
            alike[one].add(other)
            alike[other].add(one)
    return [sorted(group) for group in components(sorted(uplinks), alike.__getitem__)]


def _agreements(uplinks: Links) -> Counter[tuple[int, int]]:
    """For pairs of switches, lower index first: the number of ports by which both reach the same
    switch. Each is compared only with the next few, as these pairs chain up a whole group."""
    same: dict[tuple[int, int], list[int]] = defaultdict(list)
    for switch in sorted(uplinks):
        for port, end in uplinks[switch].items():
            same[port, end.node].append(switch)
    return Counter(
        (switch, other)
        for switches in same.values()
        for place, switch in enumerate(switches)
        for other in switches[place + 1 : place + 1 + NEXT_FEW]
    )


def fit(members: Sequence[int], uplinks: Links) -> dict[End, End]:
    """Return the expected far end for each port of a group's switches; empty without a pattern. A
    port is used if at least half of the members have a cable there. One member has no pattern."""
    if len(members) < 2:
        return {}
    common = Counter(port for switch in members for port in uplinks[switch])
    ports = sorted(port for port, times in common.items() if 2 * times >= len(members))
    cables = sum(len(uplinks[switch]) for switch in members)
    for expected, free in (
        (_by_port(members, uplinks, ports), len(ports) + len(members) - 1),
        (_by_switch(members, uplinks, ports), len(ports)),
    ):
        explained = Counter(
            port
            for switch in members
            for port, end in uplinks[switch].items()
            if agrees(end, expected.get(End(switch, port)))
        )
        confirmed = sum(times for times in explained.values() if times > 1)
        if 2 * (confirmed - free) > cables - free:
            return expected
    return {}


def agrees(end: End, expected: End | None) -> bool:
    """Return whether an end is the expected one; the expected port may be `UNKNOWN`."""
    return expected in (end, End(end.node, UNKNOWN))


def _by_port(members: Sequence[int], uplinks: Links, ports: list[int]) -> dict[End, End]:
    """Return the ends expected by rules 1 and 2: upper switch and port."""
    first = _first_ports(members, uplinks)
    votes: dict[int, Counter[tuple[int, int]]] = {port: Counter() for port in ports}
    for switch in members:
        for port, end in uplinks[switch].items():
            if port in votes:
                votes[port][end.node, end.port - first[switch]] += 1
    taken: set[tuple[int, int]] = set()
    slots: dict[int, tuple[int, int]] = {}
    for port in sorted(ports, key=lambda port: (-max(votes[port].values()), port)):
        free = [slot for slot in votes[port] if slot not in taken]
        if free:
            slots[port] = min(free, key=lambda slot: (-votes[port][slot], slot))
            taken.add(slots[port])
    return {
        End(switch, port): End(node, first[switch] + step)
        for switch in members
        for port, (node, step) in slots.items()
    }


def _by_switch(members: Sequence[int], uplinks: Links, ports: list[int]) -> dict[End, End]:
    """Rule 1 alone."""
    expected: dict[End, End] = {}
    for port in ports:
        votes = Counter(uplinks[s][port].node for s in members if port in uplinks[s])
        node = min(votes, key=lambda node: (-votes[node], node))
        expected |= {End(switch, port): End(node, UNKNOWN) for switch in members}
    return expected


def _first_ports(members: Sequence[int], uplinks: Links) -> dict[int, int]:
    """Return a(switch) up to a constant; each member is placed relative to those before it."""
    # For (port, upper switch): how many of the members placed so far have each value of b.
    leads: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    first: dict[int, int] = {}
    for switch in sorted(members, key=lambda switch: (-len(uplinks[switch]), switch)):
        votes: Counter[int] = Counter()
        for port, end in uplinks[switch].items():
            for step, times in leads[port, end.node].items():
                votes[end.port - step] += times
        first[switch] = min(votes, key=lambda a: (-votes[a], a), default=0)
        for port, end in uplinks[switch].items():
            leads[port, end.node][end.port - first[switch]] += 1
    return first
