"""The buffer's peak: exact for periodic events, as published, and for events back to back."""

import math
from dataclasses import dataclass

from daqloom.analyse.answer import Condition
from daqloom.analyse.triangles import Triangle


@dataclass(frozen=True, slots=True)
class Peak:
    """`peak_bytes` with the number of events that add to it."""

    peak_bytes: float
    events: int
    conditions: tuple[Condition, ...]


def exact(event: Triangle, rate_hz: float, builders: int) -> Peak:
    """Peak of the sum of triangles that start every 1/f.

    The sum is highest when the youngest event has just come in. The j-th before it has been
    draining for j/f longer, so it still holds h − j·O/f, with h = S·(I − O)/I. Adding the terms
    that are not negative,

        B = N·h − N·(N − 1)/2·O/f    with N = ⌊h·f/O⌋ + 1 = ⌊S·f/O·(I − O)/I⌋ + 1.

    Derived here from the triangles of ATLAS HL-LHC buffer benchmarking, section 3.3; the printed
    formula (`published`) differs in N only.

    Exact if every event fills as its triangle says: no two come in at once (f·S < I), and no two
    leave on one link, which asks for as many builders as events at once (f·S ≤ builders·O) and
    events given to them in turn. `rate_hz` is f, positive.
    """
    height = event.height_bytes
    drained = event.output_bps / 8 / rate_hz
    n = math.floor(height / drained) + 1
    load_bps, at_once = 8 * event.size_bytes * rate_hz, event.length_s * rate_hz
    return Peak(
        peak_bytes=n * (height - (n - 1) / 2 * drained),
        events=n,
        conditions=(
            Condition(
                "f·S < I",
                load_bps < event.input_bps,
                f"the load, {load_bps / 1e9:.4g} Gb/s, has to stay below the input rate, "
                f"{event.input_bps / 1e9:.4g} Gb/s",
            ),
            Condition(
                "overlapping events ≤ builders",
                at_once <= builders * (1 + 1e-12),
                f"{at_once:.4g} events overlap, which requires as many builders, and there are "
                f"{builders}",
            ),
        ),
    )


def published(event: Triangle, rate_hz: float) -> Peak:
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
    out_bps = (n - 1) * event.output_bps
    rise = (event.input_bps - event.output_bps) / event.input_bps * event.size_bytes
    return Peak(
        peak_bytes=n * (rise - (n - 1) / 2 * drained),
        events=n,
        conditions=(
            Condition(
                "I > (N-1)·O",
                event.input_bps > out_bps,
                f"the input, {event.input_bps / 1e9:.4g} Gb/s, has to exceed the {n - 1} builder "
                f"links that the formula takes as busy, {out_bps / 1e9:.4g} Gb/s",
            ),
        ),
    )


def back_to_back(event: Triangle, builders: int, in_turn: bool) -> Peak:
    """Peak of triangles that follow each other as fast as the input allows, every S/I.

    However events arrive, the input carries them one after the other, so their triangles start at
    least S/I apart, and a triangle holds the less the older it is: no arrivals give a higher sum
    than `exact` at f = I/S. Where I/O is a whole number this is S/2·(I/O − 1).

    Derived here. Holds if the builders together drain what the input brings (I ≤ builders·O) and
    events are given to them in turn, so that no two leave on one link.
    """
    answer = exact(event, event.input_bps / (8 * event.size_bytes), builders)
    drain_bps = builders * event.output_bps
    return Peak(
        peak_bytes=answer.peak_bytes,
        events=answer.events,
        conditions=(
            Condition(
                "I ≤ builders·O",
                event.input_bps <= drain_bps * (1 + 1e-12),
                f"the input rate, {event.input_bps / 1e9:.4g} Gb/s, exceeds the rate at which all "
                f"builders drain, {drain_bps / 1e9:.4g} Gb/s: the occupancy grows with the length "
                "of a burst of events",
            ),
            Condition(
                "events in turn",
                in_turn,
                "events have to be assigned to the builders in turn: two events for one builder "
                "share its link",
            ),
        ),
    )
