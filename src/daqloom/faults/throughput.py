"""Throughput by the number of cables that are broken at once."""

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
    """Found for some numbers of broken cables; between two of them linear, beyond the largest as
    for that."""

    found_bps: Mapping[int, tuple[float, ...]]
    """By number of broken cables, of each draw of them (bit/s); 0 has one."""
    event_rate_hz: float = 0.0
    """With none broken."""

    @property
    def full_bps(self) -> float:
        """With none broken."""
        return self.found_bps[0][0]

    @property
    def numbers(self) -> list[int]:
        """Numbers of broken cables for which it was found, ascending."""
        return sorted(self.found_bps)

    @property
    def means_bps(self) -> Array:
        """Mean over draws, by `numbers`."""
        return np.array([float(np.mean(self.found_bps[number])) for number in self.numbers])

    def weights(self, most: int) -> Array:
        """Return how much each of `numbers` counts for 0 to `most` broken cables: (most + 1,
        numbers)."""
        wanted, unit = np.arange(most + 1), np.eye(len(self.numbers))
        return np.stack([np.interp(wanted, self.numbers, row) for row in unit], axis=1)

    def of(self, most: int) -> Array:
        """Return the throughput with 0 to `most` broken cables (bit/s)."""
        return np.asarray(self.weights(most) @ self.means_bps)

    def origin(self, broken: int) -> Origin:
        """Return where the throughput with so many broken cables comes from."""
        if broken in self.found_bps:
            return "simulated"
        return "clamped" if broken > self.numbers[-1] else "interpolated"

    def while_whole(self, other: Throughput) -> Throughput:
        """Return this one with any cable broken, and the other as long as none is."""
        return replace(
            self,
            found_bps=dict(self.found_bps) | {0: other.found_bps[0]},
            event_rate_hz=other.event_rate_hz,
        )
