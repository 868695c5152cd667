"""Panels of figures of a rack: triangles, occupancy, and latency."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daqloom.analyse.triangles import occupancy
from daqloom.report import style
from daqloom.report.figure import Area, Axis, Legend, Line, Mark, Panel, Rule

if TYPE_CHECKING:
    from daqloom.analyse.triangles import Triangle
    from daqloom.report.system.buffer_question import Regular, Run, Switch
    from daqloom.results.result import Result
    from daqloom.study.methods.same_events import Comparison

XY = tuple[NDArray[np.float64], NDArray[np.float64]]
RTO_S = 0.2
"""Smallest TCP retransmission timeout of Linux (s)."""
LAYERS = ("#d6e6f4", "#eaf2fa")
"""Colours of successive layers in turn; a layer is the bytes of one event."""
LAYER = "one event: filled by all sources, drained by one link"
HELD = "%{y:.2f} MB"


def triangles(regular: Regular, switch: Switch | None) -> Panel:
    """Return a panel of periodic events: stacked triangles, simulation, and exact peak."""
    times, stack = stacked_events(regular.event, regular.arrivals_s, regular.until_s)
    times, stack = times * 1e3, stack / 1e6
    below = [np.zeros_like(times), *stack[:-1]]
    marks: list[Mark] = [
        Area(times, low, high, "" if place else LAYER, LAYERS[place % 2], 1.0)
        for place, (low, high) in enumerate(zip(below, stack, strict=True))
    ]
    if regular.result is not None:
        instants, held = most_held(regular.result)
        name = "simulation, packet by packet"
        marks.append(Line(instants * 1e3, held / 1e6, name, width=4, opacity=0.5, hover=HELD))
    peak = regular.peak_bytes / 1e6
    text = f"exact peak: {style.megabytes(regular.peak_bytes)}"
    return Panel(
        [
            *marks,
            Line(times, stack[-1], "formula: their sum", style.BLACK, 1.1, hover=HELD),
            Rule(peak, text, style.BLACK, dash="longdash"),
            *_buffer(switch),
        ],
        Axis("time (ms)", (0.0, regular.until_s * 1e3)),
        _held_axis(1.27 * peak),  # with space for texts above the peak
        "Regular events, initially empty switch",
        "Each layer is one event: filled by all sources at once, drained by one builder's link. "
        "Their sum is the closed form.",
        Legend("upper left", columns=3),
    )


def whole_run(runs: Sequence[Run], switch: Switch | None) -> Panel:
    """Return a panel of the peak occupancy in each time bin of the runs."""
    found = ((x, held / 1e6) for x, held in (most_held(run.result) for run in runs))
    curves = _of_runs(runs, 0.8, found, step="post", is_peaks=True, hover=HELD)
    filled = [curve for curve in curves if curve.x.size]
    first = min((float(curve.x[0]) for curve in filled), default=0.0)
    last = max((float(curve.x[-1]) for curve in filled), default=1.0)
    last += 1e-3 * (last == first)  # a run that ended at its first sample
    top = max((float(curve.y.max()) for curve in filled), default=0.0)
    return Panel(
        [*curves, *_buffer(switch)],
        Axis("time (s)", (first, last)),
        _held_axis(1.1 * top or 1.0),
        "Buffer of the top-of-rack switch",
        "Peak occupancy in each interval, over the whole run. Click a name in the legend to hide "
        "its curve.",
    )


def latency(runs: Sequence[Run]) -> Panel:
    """Return a panel of the share of events with a longer latency, on two logarithmic axes."""
    hover = "%{y:.3g} % longer than %{x:.4g} ms"
    found = ((1e3 * x, 100 * share) for x, share in (share_slower(run.result) for run in runs))
    curves = _of_runs(runs, 1.8, found, hover=hover)
    filled = [curve for curve in curves if curve.x.size]
    rarest = min((float(curve.y[curve.y > 0].min()) for curve in filled), default=0.1)
    fastest = min((float(curve.x[0]) for curve in filled), default=1.0)
    rto = Rule(RTO_S * 1e3, f"smallest TCP RTO, {RTO_S * 1e3:g} ms", dash="longdash", upright=True)
    slowest = max([rto.at, *(float(curve.x[-1]) for curve in filled)])
    times: dict[str, Any] = {"log": True, "text": lambda value: style.round_seconds(value / 1e3)}
    shares: dict[str, Any] = {"log": True, "text": lambda value: f"{value:g} %"}
    return Panel(
        [*curves, rto],
        Axis("event-building latency", (fastest / 1.5, slowest * 1.6), **times),
        Axis("share of events with a longer latency", (rarest / 2, 150.0), **shares),
        "Event-building latency",
        "Share of events with a longer latency. An event that loses the tail of a reply waits for "
        "a TCP retransmission timeout.",
        Legend("below", columns=2) if len(runs) > 1 else None,  # no free space within the axes
    )


def comparison(found: Comparison) -> Panel:
    """Return a panel of a switch's occupancy by simulation and by formula for the same events."""
    instants, held = most_held(found.simulated)
    formula = found.times_s * 1e3, found.formula_bytes / 1e6
    marks: list[Mark] = [
        Line(instants * 1e3, held / 1e6, "simulation", width=2.2, hover=HELD),
        Line(*formula, "formula, the same events", style.BLACK, 1.0, hover=HELD),
        Rule(found.regular_peak / 1e6, dash="longdash", name="formula, regular events: peak"),
    ]
    x = Axis("time (ms)", (0, float(instants[-1]) * 1e3 if instants.size else None))
    y = Axis("buffer occupancy (MB)", (0, None))
    return Panel(marks, x, y, legend=Legend("below", columns=3))


def _of_runs(runs: Sequence[Run], width: float, found: Iterable[XY], **look: Any) -> list[Line]:
    """Return a curve for each run; if several, the first is broad and pale, below others."""
    looks = [(3 * width, 0.4) if len(runs) > 1 else (width, 1.0)] + [(width, 1.0)] * len(runs)
    return [
        Line(x, y, run.switch.label, run.switch.colour, broad, opacity=opacity, **look)
        for run, (x, y), (broad, opacity) in zip(runs, found, looks, strict=False)
    ]


def _held_axis(top: float) -> Axis:
    return Axis("held by the switch (MB)", (0.0, top))


def _buffer(switch: Switch | None) -> list[Mark]:
    if switch is None or switch.buffer_bytes is None:
        return []
    size = switch.buffer_bytes / 1e6
    return [Rule(size, f"buffer of the {switch.label}: {size:g} MB", switch.colour)]


def share_slower(result: Result) -> XY:
    """Return latencies (s) and the share of events with a longer one, both of shape (n,), from a
    histogram. The share falls from 1 to 0; without events, both are empty."""
    counts, lowest, width = _series(result, "collection_latency", "count", "lowest_s", "width_s")
    filled = counts > 0
    if not filled.any():
        return np.empty(0), np.empty(0)
    lowest, highest = lowest[filled], (lowest + width)[filled]
    slower = 1.0 - np.cumsum(counts[filled]) / counts.sum()
    slower[-1] = 0.0
    return np.concatenate([lowest[:1], highest]), np.concatenate([[1.0], slower])


def most_held(result: Result) -> XY:
    """Return begin (s) and the ToR switch's peak occupancy (B) of each bin, shape (n,)."""
    times, held = _series(result, "tor_occupancy", "time_s", "max_bytes")
    return times, held


def _series(result: Result, series: str, *names: str) -> list[NDArray[np.float64]]:
    columns = result.series.get(series, {})
    return [np.asarray(columns.get(name, ()), dtype=np.float64) for name in names]


def stacked_events(event: Triangle, arrivals_s: Sequence[float], until_s: float) -> XY:
    """Return times (s), shape (n,), and bytes of the first k events for k = 1, 2, …, shape
    (arrivals, n), up to `until_s`. The last row is the occupancy of the switch."""
    singles = [occupancy(event, [arrival]) for arrival in arrivals_s]
    corners = np.unique(np.concatenate([[0.0, until_s], *(times for times, _ in singles)]))
    corners = corners[corners <= until_s]
    heights = [np.interp(corners, times, held, left=0, right=0) for times, held in singles]
    return corners, np.cumsum(heights, axis=0)
