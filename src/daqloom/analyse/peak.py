"""Peak occupancy of a switch buffer: exact for periodic events, as published, and back to back."""

import math
from dataclasses import dataclass, replace

from daqloom.analyse.answer import Condition
from daqloom.analyse.triangles import Triangle

PUBLISHED_TOLERANCE = 0.05
"""Largest relative difference from the exact peak up to which the published formula is valid."""


@dataclass(frozen=True, slots=True)
class Peak:
    """Peak occupancy of the buffer, and the number of events that contribute to it."""

    peak_bytes: float
    events: int
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Stack:
    """Occupancies of the ports when the last byte of the youngest event arrives: its port then
    holds `height_bytes`. The port of the j-th event before it holds the lower of `height_bytes` and
    `fall_bytes` − j·`drained_bytes`."""

    height_bytes: float
    fall_bytes: float
    drained_bytes: float

    def above(self, level_bytes: float) -> tuple[float, int]:
        """Return the occupancy above a level (B), summed over ports, and the number of events."""
        height, fall = self.height_bytes - level_bytes, self.fall_bytes - level_bytes
        if height <= 0:
            return 0.0, 1
        n = math.floor(fall / self.drained_bytes) + 1
        cut = min(n, math.ceil((fall - height) / self.drained_bytes))
        return cut * height + (n - cut) * (fall - (n + cut - 1) / 2 * self.drained_bytes), n


def stack_ports(event: Triangle, rate_hz: float, port_cap_bytes: float = math.inf) -> Stack:
    """Return the ports for events every 1/f, each capped at `port_cap_bytes`: see `exact`."""
    height = min(event.height_bytes, port_cap_bytes)
    rise_bps = event.input_bps - event.output_bps  # above 0 if the height is
    fall = event.size_bytes - event.output_bps * (height / rise_bps) if height else 0.0
    return Stack(height, fall, event.output_bps / 8 / rate_hz)


def exact(event: Triangle, rate_hz: float, builders: int, port_cap_bytes: float = math.inf) -> Peak:
    """Return the peak of the summed occupancies of events that start every 1/f. `port_cap_bytes` is
    the most that windows let one port hold (`bottleneck.Incast.peak_bytes`), at least 0.

    S is the size of an event, I and O the input and output rate. The sum is highest when the last
    byte of the youngest event arrives. The j-th event before it has drained for j/f longer, so it
    still holds h − j·O/f, with h = S·(I − O)/I. Adding the terms that are not negative,

        B = N·h − N·(N − 1)/2·O/f    with N = ⌊h·f/O⌋ + 1 = ⌊S·f/O·(I − O)/I⌋ + 1.

    Derived here from the triangular occupancy in ATLAS HL-LHC buffer benchmarking, section 3.3,
    whose printed formula (`published`) differs only in N.

    Exact if no two events arrive at the same time (f·S < I) and no two leave on one link. The
    latter requires f·S ≤ builders·O and events assigned in turn. `rate_hz` is f, positive.

    With a cap c < h, an event rises to c in c/(I − O), stays there while its senders send at O, and
    still ends after S/O. When the youngest event reaches c, the j-th event before it holds the
    lower of c and S − c·O/(I − O) − j·O/f, which is h − j·O/f for c = h. The value is exact for one
    event at a time. The ports of several events need not be full at one time, so their sum is an
    upper bound.
    """
    peak_bytes, n = stack_ports(event, rate_hz, port_cap_bytes).above(0.0)
    load_bps, at_once = 8 * event.size_bytes * rate_hz, event.length_s * rate_hz
    return Peak(
        peak_bytes=min(peak_bytes, builders * port_cap_bytes),
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
            Condition(
                "one event in capped ports",
                n == 1 or event.height_bytes <= port_cap_bytes,
                f"windows or requests cap the port of a builder at {port_cap_bytes / 1e3:.4g} kB; "
                f"the {n} ports that are in use need not be full together, so the sum is an upper "
                "bound",
            ),
        ),
    )


def published_peak(event: Triangle, rate_hz: float, exact_bytes: float) -> Peak:
    """B_N = N·[(I − O)/I·S − (N − 1)/2·O/f] with N = ⌈S·f/O⌉ + 1, for I > (N − 1)·O.

    Source: ATLAS HL-LHC buffer benchmarking, section 3.3, the displayed equation.

    S is the size of an event, I and O the input and output rate. This N is one or two too large: it
    includes events that have already left at the instant of the peak. Their terms are negative, so
    the value never exceeds the exact peak. At low load it is far below: 1 MB at 1 kHz gives −1.19
    MB (exact: +0.97 MB, see `exact`).

    `rate_hz` is f, positive; `exact_bytes` is the exact peak. A negative value is returned
    unchanged. The formula counts as valid within 5 % of the exact peak.
    """
    busy = 8 * event.size_bytes * rate_hz / event.output_bps
    n = math.ceil(busy) + 1
    drained = event.output_bps / 8 / rate_hz
    out_bps = (n - 1) * event.output_bps
    rise = (event.input_bps - event.output_bps) / event.input_bps * event.size_bytes
    peak_bytes = n * (rise - (n - 1) / 2 * drained)
    return Peak(
        peak_bytes=peak_bytes,
        events=n,
        conditions=(
            Condition(
                "I > (N-1)·O",
                event.input_bps > out_bps,
                f"the input, {event.input_bps / 1e9:.4g} Gb/s, has to exceed the {n - 1} builder "
                f"links that the formula takes as busy, {out_bps / 1e9:.4g} Gb/s",
            ),
            Condition(
                "within 5 % of exact",
                abs(peak_bytes - exact_bytes) <= PUBLISHED_TOLERANCE * exact_bytes,
                f"the published formula gives {peak_bytes / 1e6:.4g} MB, more than 5 % away from "
                f"the exact peak, {exact_bytes / 1e6:.4g} MB: it counts events that have left, and "
                "ignores limits by windows and requests",
            ),
        ),
    )


def back_to_back(
    event: Triangle, builders: int, in_turn: bool, port_cap_bytes: float = math.inf
) -> Peak:
    """Return the peak for events that follow each other as fast as the input allows, every S/I
    (size over input rate).

    The input carries events one after the other, so they start at least S/I apart, and the
    occupancy of an event falls with its age. Therefore no arrivals give a higher sum than `exact`
    at f = I/S. If I/O is a whole number (O: output rate), the peak is S/2·(I/O − 1).

    Derived here. Valid if builders together drain the input (I ≤ builders·O) and receive events in
    turn, so that no two events leave on one link. If all ports are at `port_cap_bytes`, the peak is
    valid without conditions, because no port holds more.
    """
    rate_hz = event.input_bps / (8 * event.size_bytes)
    answer = exact(event, rate_hz, builders, port_cap_bytes)
    if answer.peak_bytes >= builders * port_cap_bytes:
        return replace(answer, conditions=())
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
