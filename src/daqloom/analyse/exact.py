"""The exact peak of the buffer occupancy for periodic events."""

import math
from dataclasses import dataclass

from daqloom.analyse.condition import Condition
from daqloom.analyse.triangles import Triangle


@dataclass(frozen=True, slots=True)
class Exact:
    """`peak_bytes` with the number of events that add to it."""

    peak_bytes: float
    events: int
    conditions: tuple[Condition, ...]


def exact(event: Triangle, rate_hz: float, builders: int) -> Exact:
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
    return Exact(
        peak_bytes=n * (height - (n - 1) / 2 * drained),
        events=n,
        conditions=(
            _one_event_comes_in_at_a_time(event, rate_hz),
            _every_event_has_its_own_link(event, rate_hz, builders),
        ),
    )


def _one_event_comes_in_at_a_time(event: Triangle, rate_hz: float) -> Condition:
    load_bps = 8 * event.size_bytes * rate_hz
    return Condition(
        "f·S < I",
        load_bps < event.input_bps,
        f"the load, {load_bps / 1e9:.4g} Gb/s, has to stay below the input rate, "
        f"{event.input_bps / 1e9:.4g} Gb/s",
    )


def _every_event_has_its_own_link(event: Triangle, rate_hz: float, builders: int) -> Condition:
    at_once = event.length_s * rate_hz
    return Condition(
        "overlapping events ≤ builders",
        at_once <= builders * (1 + 1e-12),
        f"{at_once:.4g} events overlap, which requires as many builders, and there are {builders}",
    )
