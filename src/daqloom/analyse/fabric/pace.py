"""Linear shifting where builder units set the pace: what a phase lasts.

A node that is ready asks its builder unit and writes when that lets it. If the builder unit is
idle, the request and the answer pass before the first byte; if it is busy, the answer comes ahead
of time, so that the node's data follow those before them without a gap. So with T the time of a
transfer, c what passes between two transfers of a node that never waits (its acknowledge, the
request, the answer) and d its random delays, transfer n of node i ends at

    D(i, n) = T + max( D(i, n - 1) + c + d,  D(i + 1, n - 1) )

as long as no node overtakes: nodes on a ring (`ring.py`) with c added to their delays. A node waits
only for one that is more than c + d late. If nothing is random, the slowest node decides: no cycle
of the recursion has a larger mean than its T + c.
"""

import numpy as np

from daqloom.analyse.fabric.push import Push
from daqloom.analyse.fabric.ring import Ring
from daqloom.analyse.fabric.slowest import Times, delay_of


def paced_round_s(push: Push, own_s: Times) -> float:
    """A round without barriers on the ring, settled; `own_s` (nodes,) is what a node's phases take
    by themselves, without what is random. In its own phase a node copies, and a dummy's lasts as
    long as the one before it, or no time but jitter."""
    building, others = push.scenario.building, push.nodes - 1
    jitter_s = delay_of(building.jitter).mean_s
    idle = push.slots - push.nodes
    phase_s = _phase_s(push, (own_s - push.copy_s) / others) if others else 0.0
    idle_s = phase_s if building.dummy_phases == "kept" else jitter_s
    return float(others * phase_s + push.copy_s.max() + jitter_s + idle * idle_s)


def _phase_s(push: Push, alone_s: Times) -> float:
    """Return a phase with a transfer; `alone_s` (nodes,): with all before it but random delays."""
    building, latency = push.scenario.building, push.scenario.hosts.latency
    certain_s, jitter = float((alone_s - push.alone_s).mean()), building.jitter
    ring = Ring(push.alone_s, push.deviation_s, jitter, latency, push.posts, certain_s)
    deviations_s = [delay_of(delay).deviation_s for delay in (building.jitter, latency)]
    random = any((push.deviation_s, *deviations_s))
    if random or (building.writers > 1 and np.ptp(push.alone_s) > 0):
        return ring.transfer_s / ring.paced_share(building.writers)
    return float(alone_s.max()) + building.jitter.mean_s + push.posts * latency.mean_s
