"""The picture behind the formulas: an event fills the buffer as a triangle.

    bytes
      h |     /\\              h = S·(I − O)/I
        |    /   \\            rises at I − O for S/I, falls at O until S/O
        |   /      \
        |  /         \
        +-/------------\\---> time
          0   S/I      S/O

All replies of an event enter the switch at I, its input bandwidth, and leave at O, the rate of one
builder's link. The occupancy of the switch is the sum over the events in it.

Source: ATLAS HL-LHC buffer benchmarking, section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from daqloom.base import lazy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

with lazy.imports():
    import numpy as np


@dataclass(frozen=True, slots=True)
class Triangle:
    """One event in the buffer. `size_bytes` is S, an event's bytes in the switch; `input_bps` is I
    and `output_bps` is O, the rates at which these bytes arrive and leave. All are positive."""

    size_bytes: float
    input_bps: float
    output_bps: float

    @property
    def rise_s(self) -> float:
        """S/I, the time until the last byte has arrived."""
        return 8 * self.size_bytes / self.input_bps

    @property
    def length_s(self) -> float:
        """Time until the last byte has left: S/O, or S/I where the input is the slower one."""
        return 8 * self.size_bytes / min(self.input_bps, self.output_bps)

    @property
    def height_bytes(self) -> float:
        """S·(I − O)/I, the peak occupancy of one event; 0 where I ≤ O."""
        return self.size_bytes * max(0.0, (self.input_bps - self.output_bps) / self.input_bps)


def occupancy(
    event: Triangle, arrivals_s: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return corners (time in s, occupancy in bytes) of the sum of triangles that start at
    `arrivals_s`.

    The sum is linear between two corners, so `numpy.interp` is exact. Each arrival has three
    corners, which are sorted by time. `arrivals_s` has shape (n,) in any order, both returned
    arrays have shape (3·n,). The occupancy is 0 before the first corner and after the last.

    The triangles are independent, as in ATLAS HL-LHC buffer benchmarking, section 3.3. Events less
    than S/I apart (size over input rate) would exceed the input rate; `in_turn` delays them.
    """
    arrivals = np.asarray(arrivals_s, dtype=np.float64).ravel()
    rise, fall = event.rise_s, event.length_s
    up = event.height_bytes / rise if rise > 0 else 0.0
    down = event.height_bytes / (fall - rise) if fall > rise else 0.0

    times = np.concatenate([arrivals, arrivals + rise, arrivals + fall])
    bends = np.repeat([up, -up - down, down], arrivals.size)
    order = np.argsort(times, kind="stable")
    times, slopes = times[order], np.cumsum(bends[order])
    grown = np.cumsum(slopes[:-1] * np.diff(times))
    return times, np.maximum(np.concatenate([np.zeros(min(1, times.size)), grown]), 0.0)


def periodic(event: Triangle, rate_hz: float, until_s: float) -> NDArray[np.float64]:
    """Return the arrival times (s) of events every 1/`rate_hz` from 0 to `until_s`, shape (n,)."""
    return np.arange(int(until_s * rate_hz) + 1, dtype=np.float64) / rate_hz


def in_turn(event: Triangle, arrivals_s: ArrayLike) -> NDArray[np.float64]:
    """Return the times at which events begin to arrive if the input carries one after the other.
    `arrivals_s` and the result have shape (n,) and are sorted. An event starts at the later of its
    arrival and the end of the previous event (Lindley's recursion)."""
    arrivals = np.asarray(arrivals_s, dtype=np.float64)
    busy = np.arange(arrivals.size) * event.rise_s
    starts: NDArray[np.float64] = np.maximum.accumulate(arrivals - busy) + busy
    return starts
