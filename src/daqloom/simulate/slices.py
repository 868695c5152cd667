"""Time slices of a simulated run, and some metrics for each slice."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from daqloom._engine import PullReport, PullSystem

SLICES = 80
"""Number of equal slices after the warm-up; the engine's number of bins is a multiple of it."""

SLICE_METRICS = (
    "buffer_peak_bytes.tor",
    "buffer_needed_bytes.tor",
    "buffer_peak_bytes.leaf",
    "buffer_needed_bytes.leaf",
    "event_rate_hz",
    "collection_latency_s.mean",
)
"""Metrics that are computed for each slice."""


def slices(
    system: PullSystem, report: PullReport, switch: int, level: str
) -> dict[str, list[float]]:
    """Return `time_s`, the start of each slice, and each metric of `SLICE_METRICS` over that slice
    only; metrics that some slice lacks are left out. `switch`: number of the switch whose buffer is
    shown, `level`: its level."""
    occupancy, needed = system.occupancy(switch), system.needed(switch)
    slice_s = report.window_s / SLICES
    built = [sum(part) for part in _slices(system.built.events)]
    columns = {
        "time_s": [part[0] for part in _slices(occupancy.time_s)],
        f"buffer_peak_bytes.{level}": [max(part) for part in _slices(occupancy.max_bytes)],
        "event_rate_hz": [events / slice_s for events in built],
    }
    if len(needed.max_bytes):
        columns[f"buffer_needed_bytes.{level}"] = [max(part) for part in _slices(needed.max_bytes)]
    if all(built):
        latencies_s = zip(_slices(system.built.latency_s), built, strict=True)
        columns["collection_latency_s.mean"] = [
            math.fsum(part) / count for part, count in latencies_s
        ]
    return columns


def _slices(bins: NDArray[np.generic]) -> list[list[float]]:
    size = len(bins) // SLICES
    rows: list[list[float]] = bins[: SLICES * size].reshape(SLICES, size).tolist()
    return rows
