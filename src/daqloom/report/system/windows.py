"""Which part of the plane a panel shows, on paper as on the screen."""

from collections.abc import Sequence
from typing import NamedTuple

from daqloom.report.system.buffer_question import Regular, Run
from daqloom.report.system.curves import most_held, share_slower

RTO_S = 0.2
"""TCP's smallest retransmission timeout, as Linux has it."""


class Window(NamedTuple):
    """From and to along both axes: s, B, shares from 0 to 1."""

    x: tuple[float, float]
    y: tuple[float, float]


def triangles(regular: Regular) -> Window:
    """Time and bytes held; above the peak there is room for words."""
    return Window((0.0, regular.until_s), (0.0, 1.27 * regular.peak_bytes))


def whole_run(runs: Sequence[Run]) -> Window:
    """Return the window of the whole run: its times, and the bytes held."""
    curves = [most_held(run.result) for run in runs]
    ends = [(float(times[0]), float(times[-1])) for times, _ in curves if times.size]
    top = max((float(held.max(initial=0.0)) for _, held in curves), default=0.0)
    first = min((start for start, _ in ends), default=0.0)
    last = max((end for _, end in ends), default=1.0)
    if last == first:  # a run that ended at its first sample
        last = first + 1e-3
    return Window((first, last), (0.0, 1.1 * top or 1e6))


def latency(runs: Sequence[Run]) -> Window:
    """Latency and the share of the events that take longer; both axes are logarithmic."""
    curves = [curve for curve in (share_slower(run.result) for run in runs) if curve[0].size]
    rarest = min((float(slower[slower > 0].min()) for _, slower in curves), default=1e-3)
    fastest = min((float(taken[0]) for taken, _ in curves), default=1e-3)
    slowest = max((float(taken[-1]) for taken, _ in curves), default=RTO_S)
    return Window((fastest / 1.5, max(slowest, RTO_S) * 1.6), (rarest / 2, 1.5))
