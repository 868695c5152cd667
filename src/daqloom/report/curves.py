"""From a result's series to the curves of a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daqloom.result import Result

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Curve = tuple[NDArray[np.float64], NDArray[np.float64]]


def share_slower(result: Result) -> Curve:
    """(latency in s, share of events that took longer), from the latency histogram.

    Both have shape (n,), the share falls from 1 to 0. Empty where no event was built.
    """
    import numpy as np

    histogram = result.series.get("collection_latency", {})
    edges = np.asarray(histogram.get("edges_s", ()), dtype=np.float64)
    counts = np.asarray(histogram.get("counts", ()), dtype=np.float64)
    filled = np.flatnonzero(counts)
    if filled.size == 0:
        return np.empty(0), np.empty(0)
    first, last = filled[0], filled[-1]
    slower = 1.0 - np.cumsum(counts[first : last + 1]) / counts.sum()
    return edges[first : last + 2], np.concatenate([[1.0], np.maximum(slower, 0.0)])


def most_held(result: Result) -> Curve:
    """(time in s, most bytes that the ToR held in the bin that starts there), shape (n,) each."""
    import numpy as np

    series = result.series.get("tor_occupancy", {})
    return (
        np.asarray(series.get("time_s", ()), dtype=np.float64),
        np.asarray(series.get("max_bytes", ()), dtype=np.float64),
    )
