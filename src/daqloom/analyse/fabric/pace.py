"""Duration of a phase of linear shifting where builder units set the pace.

A node that is ready sends a request to its builder unit and writes after the answer. An idle
builder unit receives the first byte after the request and the answer. A busy one answers ahead of
time, so that the data follow those of the previous node without a gap. Let T be the time of a
transfer and d the random delays of a node. Let c be the time between two transfers of a node that
never waits (acknowledge, request, answer). Transfer n of node i ends at

    D(i, n) = T + max( D(i, n - 1) + c + d,  D(i + 1, n - 1) )

as long as no node overtakes another. This is the ring of nodes of `ring.py` with c added to the
delays. A node waits only for a neighbour that is more than c + d late. Without random delays the
slowest node determines the phase: its T + c is the largest cycle mean of the recursion.
"""

import numpy as np

from daqloom.analyse.fabric.push import Push
from daqloom.analyse.fabric.ring import Ring
from daqloom.analyse.fabric.slowest import Times, delay_of


def paced_round_s(push: Push, own_s: Times) -> float:
    """Return the duration of a round without barriers in the steady state of the ring. `own_s`,
    shape (nodes,), is the time of a node's phases if it never waits, without random delays. In one
    phase a node sends to itself by a copy. A phase with an empty slot lasts as long as other phases
    (`dummy_phases` "kept") or only for the jitter."""
    building, others = push.scenario.building, push.nodes - 1
    jitter_s = delay_of(building.jitter).mean_s
    idle = push.slots - push.nodes
    phase_s = _phase_s(push, (own_s - push.copy_s) / others) if others else 0.0
    idle_s = phase_s if building.dummy_phases == "kept" else jitter_s
    return float(others * phase_s + push.copy_s.max() + jitter_s + idle * idle_s)


def _phase_s(push: Push, alone_s: Times) -> float:
    """Return the duration of a phase with a transfer. `alone_s`, shape (nodes,), is the duration
    for a node that never waits, without random delays."""
    building, latency = push.scenario.building, push.scenario.hosts.latency
    certain_s, jitter = float((alone_s - push.alone_s).mean()), building.jitter
    ring = Ring(push.alone_s, push.deviation_s, jitter, latency, push.posts, certain_s)
    deviations_s = [delay_of(delay).deviation_s for delay in (building.jitter, latency)]
    random = any((push.deviation_s, *deviations_s))
    if random or (building.writers > 1 and np.ptp(push.alone_s) > 0):
        return ring.transfer_s / ring.paced_share(building.writers)
    return float(alone_s.max()) + building.jitter.mean_s + push.posts * latency.mean_s
