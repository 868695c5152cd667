"""Closed form of linear shifting with phases by the clock: number of writes in a time window."""

import math
from dataclasses import dataclass

import numpy as np

from daqloom.analyse.answer import Condition
from daqloom.analyse.fabric.push import Push
from daqloom.analyse.fabric.slowest import Chance, chance_below, delay_of

MOST_GRANTED = 2
"""Maximum multi-event packets that a builder unit has granted and not yet built."""


@dataclass(frozen=True, slots=True)
class Windows:
    """A round of phases that each last a fixed time window."""

    length_s: float
    meps: float
    """Mean multi-event packets that a node writes per window; may be below 1."""
    conditions: tuple[Condition, ...]


def by_clock(push: Push) -> Windows:
    """Return the round of a scenario whose phases change at fixed times.

    A node begins a write only if it can end before the grace period at the link rate. With jitter
    `late` and request time `asking`, room = (window − grace − late − asking)·rate/8 bytes fit. The
    node begins the f-th write if the first f sizes together fit. The sum of Poissonian sizes is
    nearly Gaussian, with a variance in bytes² equal to its mean. All nodes build the same events,
    so the node with the fewest writes counts. Builders grant at most two multi-event packets ahead.
    """
    building, hosts = push.scenario.building, push.scenario.hosts
    far = np.full(push.nodes, push.traffic.farthest, np.int32)
    asking_s = float(push.asking_s(far).max()) + (push.posts - 1) * push.messages.latency_s
    open_s = building.window - building.grace - building.jitter.mean - asking_s
    room = open_s * push.link.rate_bps / 8
    sizes = np.unique(push.mfps, axis=0)
    fixed = push.scenario.event.fragment_sizes == "fixed"
    fitting = min(_fitting(row, room, fixed) for row in sizes.tolist())
    turns = fitting / push.mfps.shape[1]
    needed_s = float(push.transfer_s(math.ceil(turns) * push.alone_s, far).max())
    needed_s += delay_of(hosts.latency).mean_s + building.jitter.mean + asking_s
    off_s = math.hypot(hosts.clock_offset, hosts.clock_drift * push.scenario.run.duration)
    apart_s = 2 * Chance([], off_s).slowest_s(np.zeros(push.nodes))
    return Windows(
        length_s=push.slots * building.window,
        meps=min(turns, building.window / float(push.alone_s.max())),
        conditions=(
            Condition(
                "a multi-fragment packet fits",
                fitting >= 1,
                f"the window of {building.window * 1e6:.4g} us without its grace period fits "
                f"{fitting:.3g} multi-fragment packets of the largest node",
            ),
            Condition(
                "the clock alone sets the pace",
                not push.is_paced,
                'with building.pace = "builder" a node asks anew for what is granted later in its '
                "window, and waits for one whose clock is behind, for which there is no closed "
                f"form: the formula has it ask once a window, for {asking_s * 1e6:.3g} us",
            ),
            Condition(
                "writes end in their window",
                needed_s + apart_s <= building.window,
                f"the largest node's writes take {needed_s * 1e6:.4g} us and clocks differ by up "
                f"to {apart_s * 1e6:.4g} us, together more than the window of "
                f"{building.window * 1e6:.4g} us: writes of two phases overlap",
            ),
        ),
    )


def _fitting(sizes: list[int], room: float, fixed: bool) -> float:
    """Return the expected number of MFPs (streams in turn) that fit into `room` bytes."""
    sums = np.cumsum(sizes * MOST_GRANTED).tolist()
    if fixed:
        return float(sum(total <= room for total in sums))
    return sum(chance_below((room - total) / math.sqrt(max(total, 1))) for total in sums)
