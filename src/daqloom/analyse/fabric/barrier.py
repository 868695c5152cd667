"""The cost of a barrier, from its messages.

Barrier messages travel along a tree of nodes. A node that is released late enters the next barrier
late. So a step lasts as long as the longest path from one release by the root of the tree to the
next: down the tree to a node, its writes, and its report up again (the cycle mean of a max-plus
system with one node on all cycles). With m the latency and o the processor time of a message, a
barrier of N equal nodes, N a power of two, costs

    centralised    2·m + (N − 2)·o
    tournament     2·m·⌈log₂ N⌉
    dissemination  m·⌈log₂ N⌉
    network        2·o + h + p + 2·L·t
    ideal          0

The network's barrier passes the switches' tree of L levels twice, at a time t per level; h and p
are the latency of the adapter and the polling delay, which are parts of m.

With the barrier `neighbour`, nodes wait for neighbours only and have no common step, so the
formulas count only the processor time of messages.

See `docs/explanation/infiniband-model.md` and `engine/protocol/schedule/barrier.hpp`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daqloom.analyse.fabric.messages import Messages

Times = NDArray[np.float64]
Switches = Callable[[int, int], int]
"""Switches on the path between two nodes."""


CLOSING = "closing"
"""Barrier `neighbour` for builder-paced phases: one message, from a group's first node to its
last."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """Cost of a barrier: times (s) in arrays of shape (nodes,), in the order of the slots."""

    released_s: Times
    """Time from the root's release until the release reaches a node."""
    begins_s: Times
    """Time from the root's release until a node has forwarded it and begins the next phase."""
    report_s: Times
    """Time from the entry of the last node into the barrier until the root can release."""
    messages: NDArray[np.int64]
    """Messages that a node sends and receives in a barrier."""

    @property
    def cost_s(self) -> float:
        """Time that the barrier adds to a step of equal nodes."""
        return float((self.begins_s + self.report_s).max())


def barriers_of(
    kind: str, groups: Sequence[NDArray[np.intp]], messages: Messages, switches: Switches
) -> Barrier:
    """Return the costs of separate barriers of disjoint groups, as arrays over all nodes."""
    nodes = sum(map(len, groups))
    released_s, begins_s, report_s = np.zeros((3, nodes))
    whole = Barrier(released_s, begins_s, report_s, np.zeros(nodes, np.int64))
    for group in groups:
        members = group.tolist()

        def between(one: int, other: int, members: list[int] = members) -> int:
            return switches(members[one], members[other])

        part = barrier(kind, len(members), messages, between)
        for name in Barrier.__slots__:
            getattr(whole, name)[group] = getattr(part, name)
    return whole


def barrier(kind: str, nodes: int, messages: Messages, switches: Switches) -> Barrier:
    """Return the barrier that `building.barrier` names."""
    if kind in ("centralised", "tournament"):
        return _tree(kind == "centralised", nodes, messages, switches)
    if kind == "dissemination":
        return _dissemination(nodes, messages, switches)
    nothing = np.zeros(nodes)
    count = np.zeros(nodes, np.int64)
    if kind == "neighbour" and nodes > 1:
        count += 2
    if kind == CLOSING and nodes > 1:
        count[[0, -1]] = 1
    return Barrier(nothing, nothing, nothing, count)


def network_barrier(crossing_s: Times, messages: Messages) -> Barrier:
    """Return the cost of a barrier that switches combine. `crossing_s`: time from the adapter of a
    node to the root of the tree of its group. A node posts its arrival and receives the release."""
    report_s = messages.cost_s + messages.latency_s + crossing_s
    released_s = crossing_s + messages.polling_s + messages.cost_s
    return Barrier(released_s, released_s, report_s, np.full(len(crossing_s), 2))


def _tree(star: bool, nodes: int, messages: Messages, switches: Switches) -> Barrier:
    """Return the cost of a tree barrier: reports go up, the release comes down. A node releases its
    children one after the other, the largest subtree first, at intervals of the message cost o. The
    next reports arrive at the same intervals, so they do not wait for each other."""
    cost_s = messages.cost_s
    parents = [0 if star else node & (node - 1) for node in range(nodes)]
    children: list[list[int]] = [[] for _ in range(nodes)]
    for node in range(1, nodes):
        children[parents[node]].append(node)
    released_s, report_s = np.zeros(nodes), np.zeros(nodes)
    for node in range(nodes):
        first_largest = children[node] if star else children[node][::-1]
        for place, child in enumerate(first_largest):
            way_s = messages.sent_s(messages.control, switches(node, child))
            released_s[child] = released_s[node] + place * cost_s + way_s
            report_s[child] = report_s[node] + way_s
    below = np.array([len(each) for each in children])
    sent = 2 * (below + 1)
    sent[0] -= 2
    return Barrier(released_s, released_s + below * cost_s, report_s, sent)


def _dissemination(nodes: int, messages: Messages, switches: Switches) -> Barrier:
    """Return the cost of ⌈log₂ N⌉ rounds, in each of which a node sends and receives a message. All
    nodes wait for each other in turn, so a round takes the mean latency of its messages."""
    rounds = (nodes - 1).bit_length()
    ways_s = [
        messages.sent_s(messages.control, switches(node, (node + (1 << k)) % nodes))
        for k in range(rounds)
        for node in range(nodes)
    ]
    nothing = np.zeros(nodes)
    all_s = np.full(nodes, sum(ways_s) / nodes)
    return Barrier(nothing, nothing, all_s, np.full(nodes, 2 * rounds))
