"""Whether any half of the hosts can send to the other half at full rate, where cables join switches
of one level: stacks, rings, meshes.

In a tree the cables upwards of each pod decide. Here a cut does: for a set of leaves, the cables to
all others must carry what its hosts send, or what all others can take (max-flow min-cut: Ford and
Fulkerson 1956; the flow by Dinic 1970). All sets cannot be tried; tried are each leaf, the leaves
around each leaf by distance, and halves in the order of names.
"""

from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise

Rates = Mapping[int, Mapping[int, int]]
"""For each switch its neighbours, and the rate of all cables to each (b/s)."""
MOST_STARTS = 64
"""Leaves from which sets grow."""


def has_full_bisection(rates: Rates, sent: Mapping[int, int]) -> bool:
    """Return whether the cables between switches carry any half's rate. `sent`: the rate of the
    hosts of each leaf (b/s)."""
    total = sum(sent.values())
    tried: set[frozenset[int]] = set()
    for leaves in _sets(rates, sent):
        if leaves in tried:
            continue
        tried.add(leaves)
        own = sum(sent[leaf] for leaf in leaves)
        if most_flow(rates, sent, leaves) < min(own, total - own):
            return False
    return True


def _sets(rates: Rates, sent: Mapping[int, int]) -> Iterator[frozenset[int]]:
    leaves = sorted(leaf for leaf in sent if sent[leaf])
    yield from (frozenset([leaf]) for leaf in leaves)
    yield frozenset(leaves[: len(leaves) // 2])
    yield frozenset(leaves[::2])
    for leaf in leaves[:MOST_STARTS]:
        near = [switch for switch in _by_distance(rates, leaf) if sent.get(switch)]
        yield from (frozenset(near[:count]) for count in range(2, len(near) // 2 + 1))


def _by_distance(rates: Rates, first: int) -> list[int]:
    order, seen = [first], {first}
    for switch in order:
        for other in sorted(rates[switch], key=lambda other: -rates[switch][other]):
            if other not in seen:
                seen.add(other)
                order.append(other)
    return order


def most_flow(rates: Rates, sent: Mapping[int, int], leaves: Collection[int]) -> int:
    """Return the largest rate (b/s) from the hosts of `leaves` to those of all other leaves, each
    host at no more than its own rate."""
    source, sink = -1, -2
    left: dict[int, Counter[int]] = {switch: Counter(near) for switch, near in rates.items()}
    left[source] = Counter({leaf: sent[leaf] for leaf in leaves})
    left[sink] = Counter()
    for leaf, rate in sent.items():
        if leaf not in leaves:
            left[leaf][sink] = rate
    flow = 0
    while level := _levels(left, source, sink):
        turn = {node: iter(list(near)) for node, near in left.items()}
        while pushed := _push(left, level, turn, source, sink):
            flow += pushed
    return flow


def _levels(left: Mapping[int, Counter[int]], source: int, sink: int) -> dict[int, int]:
    """Distance from the source of all that it reaches; empty if the sink is out of reach."""
    level = {source: 0}
    queue = deque([source])
    while queue:
        node = queue.popleft()
        for other, rate in left[node].items():
            if rate > 0 and other not in level:
                level[other] = level[node] + 1
                queue.append(other)
    return level if sink in level else {}


def _push(
    left: Mapping[int, Counter[int]],
    level: Mapping[int, int],
    turn: Mapping[int, Iterator[int]],
    source: int,
    sink: int,
) -> int:
    """Send along one way by rising levels as much as it carries; 0 if none is left."""
    path = [source]
    while path[-1] != sink:
        node = path[-1]
        step = next(
            (o for o in turn[node] if left[node][o] > 0 and level.get(o) == level[node] + 1), None
        )
        if step is not None:
            path.append(step)
        elif len(path) == 1:
            return 0
        else:
            path.pop()  # a dead end: the node before goes on with its next neighbour
    steps = list(pairwise(path))
    rate = min(left[a][b] for a, b in steps)
    for a, b in steps:
        left[a][b] -= rate
        left[b][a] += rate
    return rate
