"""Throughput of a system for each number of broken cables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Origin = Literal["simulated", "interpolated", "clamped"]


@dataclass(frozen=True)
class Throughput:
    """Throughput for some numbers of broken cables: interpolated in between, constant beyond."""

    found_bps: Mapping[int, tuple[float, ...]]
    """Throughput of each draw (bit/s), by number of broken cables; a single value for 0."""
    event_rate_hz: float = 0.0
    """Event rate without broken cables."""

    @property
    def full_bps(self) -> float:
        """Throughput without broken cables."""
        return self.found_bps[0][0]

    @property
    def numbers(self) -> list[int]:
        """Numbers of broken cables in `found_bps`, ascending."""
        return sorted(self.found_bps)

    @property
    def means_bps(self) -> Array:
        """Mean over draws, by `numbers`."""
        return np.array([float(np.mean(self.found_bps[number])) for number in self.numbers])

    def weights(self, most: int) -> Array:
        """(most + 1, numbers): interpolation weights of `numbers`, for 0 to `most` broken
        cables."""
        broken, unit = np.arange(most + 1), np.eye(len(self.numbers))
        return np.stack([np.interp(broken, self.numbers, row) for row in unit], axis=1)

    def rates_bps(self, most: int) -> Array:
        """Return the throughput for each number of broken cables from 0 to `most` (bit/s)."""
        return np.asarray(self.weights(most) @ self.means_bps)

    def origin(self, broken: int) -> Origin:
        """Return how the throughput with `broken` cables was found."""
        if broken in self.found_bps:
            return "simulated"
        return "clamped" if broken > self.numbers[-1] else "interpolated"

    def while_whole(self, other: Throughput) -> Throughput:
        """Return this throughput with broken cables, and the throughput of `other` without any."""
        found_bps = dict(self.found_bps) | {0: other.found_bps[0]}
        return replace(self, found_bps=found_bps, event_rate_hz=other.event_rate_hz)
