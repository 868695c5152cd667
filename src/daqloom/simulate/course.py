"""How the metrics of a run went in the course of it: the same numbers, slice by slice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

SLICES = 80
"""Equal parts of the time after the warm-up; the engine's bins of the occupancy divide by it."""

COURSES = ("buffer_peak_bytes.tor", "event_rate_hz", "collection_latency_s.mean")
"""The metrics that have a course."""


def course(counted: Mapping[str, Any]) -> dict[str, list[float]]:
    """`time_s`, where each slice begins, and every one of `COURSES` over that slice alone.

    A metric that some slice does not give, as the mean latency where no event was built, is left
    out. `counted` is the engine's report.
    """
    times: Sequence[float] = counted["tor_occupancy"]["time_s"]
    slice_s = counted["window_s"] / SLICES
    built = [sum(part) for part in _slices(counted["built"]["events"])]
    latency_s = [sum(part) for part in _slices(counted["built"]["latency_s"])]
    columns = {
        "time_s": [part[0] for part in _slices(times)],
        "buffer_peak_bytes.tor": [max(p) for p in _slices(counted["tor_occupancy"]["max_bytes"])],
        "event_rate_hz": [events / slice_s for events in built],
    }
    if all(built):
        columns["collection_latency_s.mean"] = [
            total / events for total, events in zip(latency_s, built, strict=True)
        ]
    return columns


def _slices(bins: Sequence[float]) -> Iterator[Sequence[float]]:
    size = len(bins) // SLICES
    return (bins[i * size : (i + 1) * size] for i in range(SLICES))
