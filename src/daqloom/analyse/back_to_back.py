"""The buffer's peak when events arrive back to back: an upper bound for all arrival processes."""

from dataclasses import dataclass

from daqloom.analyse.condition import Condition
from daqloom.analyse.exact import exact
from daqloom.analyse.triangles import Triangle


@dataclass(frozen=True, slots=True)
class BackToBack:
    """`peak_bytes` with the number of events that add to it."""

    peak_bytes: float
    events: int
    conditions: tuple[Condition, ...]


def back_to_back(event: Triangle, builders: int, in_turn: bool) -> BackToBack:
    """Peak of triangles that follow each other as fast as the input allows, every S/I.

    However events arrive, the input carries them one after the other, so their triangles start at
    least S/I apart, and a triangle holds the less the older it is: no arrivals give a higher sum
    than `exact` at f = I/S. Where I/O is a whole number this is S/2·(I/O − 1).

    Derived here. Holds if the builders together drain what the input brings (I ≤ builders·O) and
    events are given to them in turn, so that no two leave on one link.
    """
    answer = exact(event, event.input_bps / (8 * event.size_bytes), builders)
    drain_bps = builders * event.output_bps
    return BackToBack(
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
