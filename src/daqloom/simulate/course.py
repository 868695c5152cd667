"""Metrics of a run as a function of time: the same numbers for each slice of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daqloom._engine import PullReport, PullSystem

SLICES = 80
"""Number of equal slices of the time after the warm-up; it divides the engine's bins of the
occupancy."""

COURSES = (
    "buffer_peak_bytes.tor",
    "buffer_needed_bytes.tor",
    "event_rate_hz",
    "collection_latency_s.mean",
)
"""Metrics that are given for each slice."""


def course(system: PullSystem, counted: PullReport, tor: int) -> dict[str, list[float]]:
    """Return `time_s`, the start of each slice, and each metric of `COURSES` over that slice alone.

    A metric that a slice lacks, such as the mean latency where no event was built, is left
    out. `tor` is the number of the top-of-rack switch.
    """
    occupancy, needed = system.occupancy(tor), system.needed(tor)
    slice_s = counted.window_s / SLICES
    built = [sum(part) for part in _slices(system.built.events.tolist())]
    latency_s = [sum(part) for part in _slices(system.built.latency_s.tolist())]
    columns = {
        "time_s": [part[0] for part in _slices(occupancy.time_s.tolist())],
        "buffer_peak_bytes.tor": [max(part) for part in _slices(occupancy.max_bytes.tolist())],
        "event_rate_hz": [events / slice_s for events in built],
    }
    if len(needed.max_bytes):
        columns["buffer_needed_bytes.tor"] = [
            max(part) for part in _slices(needed.max_bytes.tolist())
        ]
    if all(built):
        columns["collection_latency_s.mean"] = [
            total / events for total, events in zip(latency_s, built, strict=True)
        ]
    return columns


def _slices(bins: Sequence[float]) -> Iterator[Sequence[float]]:
    size = len(bins) // SLICES
    return (bins[i * size : (i + 1) * size] for i in range(SLICES))
