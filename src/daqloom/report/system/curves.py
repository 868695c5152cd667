"""From a result's series, and from triangles, to the curves of a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from daqloom.analyse.triangles import Triangle
from daqloom.result import Result

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Curve = tuple[NDArray[np.float64], NDArray[np.float64]]


def share_slower(result: Result) -> Curve:
    """(latency in s, share of events that took longer), from the latency histogram. Both have shape
    (n,), the share falls from 1 to 0. Empty where no event was built."""
    import numpy as np

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


def most_held(result: Result) -> Curve:
    """(time in s, most bytes that the ToR held in the bin that starts there), shape (n,) each."""
    import numpy as np

    series = result.series.get("tor_occupancy", {})
    return (
        np.asarray(series.get("time_s", ()), dtype=np.float64),
        np.asarray(series.get("max_bytes", ()), dtype=np.float64),
    )


def thinned(times: NDArray[np.float64], most: NDArray[np.float64]) -> Curve:
    """The same maxima in fewer, wider bins: at most 400, what a printed panel shows."""
    import numpy as np

    step = -(-times.size // 400) or 1
    starts = np.arange(0, times.size, step)
    return times[starts], np.maximum.reduceat(most, starts) if starts.size else most


def stacked_events(event: Triangle, arrivals_s: Sequence[float], until_s: float) -> Curve:
    """(time in s, bytes of the first, the first two, … all events), up to `until_s`. Shapes (n,)
    and (arrivals, n). The last row is the occupancy of the switch."""
    import numpy as np

    from daqloom.analyse.triangles import occupancy

    singles = [occupancy(event, [arrival]) for arrival in arrivals_s]
    corners = np.unique(np.concatenate([[0.0, until_s], *(times for times, _ in singles)]))
    corners = corners[corners <= until_s]
    heights = [np.interp(corners, times, held, left=0, right=0) for times, held in singles]
    return corners, np.cumsum(heights, axis=0)
