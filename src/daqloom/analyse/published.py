"""The published formula for the buffer's peak."""

import math
from dataclasses import dataclass

from daqloom.analyse.condition import Condition
from daqloom.analyse.triangles import Triangle


@dataclass(frozen=True, slots=True)
class Published:
    """`peak_bytes` with the number of overlapping events that the formula counts."""

    peak_bytes: float
    events: int
    conditions: tuple[Condition, ...]


def published(event: Triangle, rate_hz: float) -> Published:
    """B_N = N·[(I − O)/I·S − (N − 1)/2·O/f] with N = ⌈S·f/O⌉ + 1, for I > (N − 1)·O.

    Source: ATLAS HL-LHC buffer benchmarking, section 3.3, the displayed equation.

    Caveat: this N counts one event too many or two, those that no longer add to the sum at the
    instant of the peak. Their terms are negative, so the value is never above the exact peak, and
    it is far below at low load: 1 MB at 1 kHz gives −1.19 MB (exact: +0.97 MB, see `exact`).

    `rate_hz` is f, positive. The value is returned as printed, even where it is negative.
    """
    busy = 8 * event.size_bytes * rate_hz / event.output_bps
    n = math.ceil(busy) + 1
    drained = event.output_bps / 8 / rate_hz
    rise = (event.input_bps - event.output_bps) / event.input_bps * event.size_bytes
    return Published(
        peak_bytes=n * (rise - (n - 1) / 2 * drained),
        events=n,
        conditions=(_input_exceeds_outputs(event, n),),
    )


def _input_exceeds_outputs(event: Triangle, n: int) -> Condition:
    out_bps = (n - 1) * event.output_bps
    return Condition(
        "I > (N-1)·O",
        event.input_bps > out_bps,
        f"the input, {event.input_bps / 1e9:.4g} Gb/s, has to exceed the {n - 1} builder links "
        f"that the formula takes as busy, {out_bps / 1e9:.4g} Gb/s",
    )
