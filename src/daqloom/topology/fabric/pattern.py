"""The regular pattern behind the cables of one level of switches, found from the cables themselves.

Nothing is assumed about numbers or names. What is regular about a folded Clos is that

1. switches of a level fall into groups (all leaves; the leaves of a pod; the spines of a plane)
   which reach the *same upper switch by the same port*: two switches are of one group when they
   agree on at least half of the uplinks of the one that has fewer;
2. inside a group the upper port is a sum, q = a(switch) + b(port): which block of an upper switch
   belongs to whom, and where in the block a port lands. Both usual numberings are of this kind
   (parallel links side by side, or a whole turn of leaves apart), and many odd ones.

Everything is decided by the majority, so a few wrong or missing cables do not hide the pattern:
a(switch) by the difference most frequent over all ports and members, (upper switch, b) of a port by
the most frequent over the members. A tie goes to the lower numbers that no other port has taken. A
pattern is believed where it explains more than half of the group's cables. As many cables as there
are numbers to choose in it are left out of the account, for each number can explain one cable of
any tangle; and only ports of two members or more count as explained. Without rule 2, rule 1 alone
is tried (upper port unknown, 0).
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

from daqloom.topology.fabric.fabric import End
from daqloom.topology.fabric.levels import Links, connected

UNKNOWN = 0
"""Port of an end of which the pattern determines only the switch."""
NEXT_FEW = 16


def groups(uplinks: Links) -> list[list[int]]:
    """Switches that agree on at least half of their uplinks; singles are groups of one."""
    alike: dict[int, set[int]] = defaultdict(set)
    for (one, other), agreed in _agreements(uplinks).items():
        if 2 * agreed >= min(len(uplinks[one]), len(uplinks[other])):
            alike[one].add(other)
            alike[other].add(one)
    return [sorted(group) for group in connected(sorted(uplinks), alike.__getitem__)]


def _agreements(uplinks: Links) -> Counter[tuple[int, int]]:
    """For pairs of switches, lower index first, the ports by which both reach the same switch. A
    switch is compared with the next few that reach the same: in a group, all form a chain."""
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
    """Where the pattern leads each port of a group's switches; empty where there is no pattern. A
    port counts where at least half of the members have a cable. One member shows no pattern."""
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
    """Whether an end is the expected one; a pattern may imply the node without the port."""
    return expected in (end, End(end.node, UNKNOWN))


def _by_port(members: Sequence[int], uplinks: Links, ports: list[int]) -> dict[End, End]:
    """Rules 1 and 2: upper switch and port."""
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
    """a(switch), up to a constant: members are placed one by one relative to those before."""
    # How often a port is seen to lead to an upper switch with this b, by members placed already.
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
