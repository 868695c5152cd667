"""The panels of a rack's figures as data: curves, limits, axes; see `panel_drawing`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daqloom.report import style

if TYPE_CHECKING:
    from daqloom.analyse.triangles import Triangle
    from daqloom.report.system.buffer_question import Regular, Run, Switch
    from daqloom.result import Result

XY = tuple[NDArray[np.float64], NDArray[np.float64]]
RTO_S = 0.2
"""TCP's smallest retransmission timeout, as Linux has it."""


class Axis(NamedTuple):
    """What an axis shows, and the part of it that is seen, on paper as on the screen."""

    title: str
    unit: str
    ends: tuple[float, float]


class Curve(NamedTuple):
    """A line; widths are points."""

    x: Any
    y: Any
    name: str
    colour: str
    width: float
    opacity: float = 1.0


class Limit(NamedTuple):
    """A straight line across the panel, and the words on it."""

    at: float
    text: str
    colour: str
    dash: Literal["dash", "dot"] = "dash"
    is_upright: bool = False


@dataclass(frozen=True)
class Panel:
    """Curves and limits over layers."""

    title: str
    about: str
    """A sentence or two for a page, which has room for them."""
    x: Axis
    y: Axis
    curves: Sequence[Curve]
    limits: Sequence[Limit] = ()
    layers: Sequence[Any] = ()
    """Upper edges of areas that lie on one another, over the x of the last curve."""
    is_binned: bool = False
    """Whether each y holds until the next x."""
    is_log: bool = False
    """Whether both axes are logarithmic."""
    hover: str = "%{y:.2f} MB"
    """What is said of the point under the mouse."""


def triangles(regular: Regular, switch: Switch | None) -> Panel:
    """Periodic events, one triangle each, stacked; the simulated switch; the closed form's peak."""
    times, stack = stacked_events(regular.event, regular.arrivals_s, regular.until_s)
    curves = [Curve(times * 1e3, stack[-1] / 1e6, "formula: their sum", style.BLACK, 1.1)]
    if regular.result is not None:
        instants, held = most_held(regular.result)
        name = "simulation, packet by packet"
        curves.insert(0, Curve(instants * 1e3, held / 1e6, name, style.BLUE, 4, 0.5))
    text = f"exact peak: {style.megabytes(regular.peak_bytes)}"
    peak = regular.peak_bytes / 1e6
    return Panel(
        "Regular events, initially empty switch",
        "Each layer is one event: filled by all sources at once, drained by one builder's link. "
        "Their sum is the closed form.",
        Axis("time", "ms", (0.0, regular.until_s * 1e3)),
        _held(1.27 * peak),  # above the peak there is room for words
        curves,
        [Limit(peak, text, style.BLACK), *_buffer(switch)],
        layers=list(stack / 1e6),
    )


def whole_run(runs: Sequence[Run], switch: Switch | None) -> Panel:
    """Most bytes held, bin by bin."""
    curves = _of_runs(runs, 0.8, [most_held(run.result) for run in runs], 1, 1e-6)
    filled = [curve for curve in curves if curve.x.size]
    first = min((float(curve.x[0]) for curve in filled), default=0.0)
    last = max((float(curve.x[-1]) for curve in filled), default=1.0)
    if last == first:  # a run that ended at its first sample
        last = first + 1e-3
    top = max((float(curve.y.max()) for curve in filled), default=0.0)
    return Panel(
        "Buffer of the top-of-rack switch",
        "Peak occupancy in each interval, over the whole run. Click a name in the legend to hide "
        "its curve.",
        Axis("time", "s", (first, last)),
        _held(1.1 * top or 1.0),
        curves,
        _buffer(switch),
        is_binned=True,
    )


def latency(runs: Sequence[Run]) -> Panel:
    """Share of the events that took longer, on two logarithmic axes."""
    curves = _of_runs(runs, 1.8, [share_slower(run.result) for run in runs], 1e3, 100)
    filled = [curve for curve in curves if curve.x.size]
    rarest = min((float(curve.y[curve.y > 0].min()) for curve in filled), default=0.1)
    fastest = min((float(curve.x[0]) for curve in filled), default=1.0)
    text = f"smallest TCP RTO, {RTO_S * 1e3:g} ms"
    rto = Limit(RTO_S * 1e3, text, style.GREY, is_upright=True)
    slowest = max([rto.at, *(float(curve.x[-1]) for curve in filled)])
    return Panel(
        "Event-building latency",
        "Share of events with a longer latency. An event that loses the tail of a reply waits for "
        "a TCP retransmission timeout.",
        Axis("event-building latency", "ms", (fastest / 1.5, slowest * 1.6)),
        Axis("share of events with a longer latency", "%", (rarest / 2, 150.0)),
        curves,
        [rto],
        is_log=True,
        hover="%{y:.3g} % longer than %{x:.4g} ms",
    )


def _of_runs(
    runs: Sequence[Run], width: float, found: Sequence[Any], x_scale: float, y_scale: float
) -> list[Curve]:
    """The first of several curves is broad and pale: others may lie on it."""
    look = [(3 * width, 0.4) if len(runs) > 1 else (width, 1.0)] + [(width, 1.0)] * len(runs)
    return [
        Curve(x * x_scale, y * y_scale, run.switch.label, run.switch.colour, *how)
        for run, (x, y), how in zip(runs, found, look, strict=False)
    ]


def _held(top: float) -> Axis:
    return Axis("held by the switch", "MB", (0.0, top))


def _buffer(switch: Switch | None) -> list[Limit]:
    if switch is None or switch.buffer_bytes is None:
        return []
    size = switch.buffer_bytes / 1e6
    return [Limit(size, f"buffer of the {switch.label}: {size:g} MB", switch.colour, "dot")]


def share_slower(result: Result) -> XY:
    """(latency in s, share of events that took longer), from the latency histogram. Both have shape
    (n,), the share falls from 1 to 0. Empty where no event was built."""
    histogram = result.series.get("collection_latency", {})
    counts = np.asarray(histogram.get("count", ()), dtype=np.float64)
    filled = counts > 0
    if not filled.any():
        return np.empty(0), np.empty(0)
    lowest = np.asarray(histogram["lowest_s"], dtype=np.float64)[filled]
    highest = lowest + np.asarray(histogram["width_s"], dtype=np.float64)[filled]
    slower = 1.0 - np.cumsum(counts[filled]) / counts.sum()
    slower[-1] = 0.0
    return np.concatenate([lowest[:1], highest]), np.concatenate([[1.0], slower])


def most_held(result: Result) -> XY:
    """(time in s, most bytes that the ToR held in the bin that starts there), shape (n,) each."""
    series = result.series.get("tor_occupancy", {})
    return (
        np.asarray(series.get("time_s", ()), dtype=np.float64),
        np.asarray(series.get("max_bytes", ()), dtype=np.float64),
    )


def stacked_events(event: Triangle, arrivals_s: Sequence[float], until_s: float) -> XY:
    """(time in s, bytes of the first, the first two, … all events), up to `until_s`. Shapes (n,)
    and (arrivals, n). The last row is the occupancy of the switch."""
    from daqloom.analyse.triangles import occupancy

    singles = [occupancy(event, [arrival]) for arrival in arrivals_s]
    corners = np.unique(np.concatenate([[0.0, until_s], *(times for times, _ in singles)]))
    corners = corners[corners <= until_s]
    heights = [np.interp(corners, times, held, left=0, right=0) for times, held in singles]
    return corners, np.cumsum(heights, axis=0)
