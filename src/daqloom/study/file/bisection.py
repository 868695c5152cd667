"""The smallest or the largest value at which a condition holds, in as few questions as can be.

Nothing is computed here: the searches are generators that yield what to test and are sent the
outcome, so that a value may come from a store, a simulation or a formula.
"""

import math
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Find = Literal["smallest", "largest"]
Grid = Literal["linear", "log"]
Status = Literal["found", "below", "above", "never", "reversed"]


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where a condition begins or ceases to hold.

    `value` is a tested value at which it holds: the smallest or the largest known; None if there
    is none. The boundary lies between `lower` and `upper`, both tested; None is an open side.

    `status`: `found`; `below` (searching the smallest, it holds in the whole range: the boundary
    is below it); `above` (the same, searching the largest); `never` (it holds at neither end);
    `reversed` (it holds at the end where it should not and fails at the other: `smallest` was
    taken for `largest`, or the condition has no one boundary).
    """

    value: float | None
    lower: float | None
    upper: float | None
    status: Status


def most_evaluations(low: float, high: float, tolerance: float, grid: Grid = "linear") -> int:
    """How many values `bisect` tests at most: ⌈log2(range / tolerance)⌉ + 2, both ends included.
    With the logarithmic grid, range and tolerance are ln(high / low) and ln(1 + tolerance)."""
    return _halvings(low, high, tolerance, grid) + 2


def bisect(
    low: float,
    high: float,
    tolerance: float,
    *,
    find: Find = "smallest",
    grid: Grid = "linear",
    whole: bool = False,
) -> Generator[float, bool, Boundary]:
    """Yields values between `low` and `high` and is sent whether the condition holds there.

    A condition that holds from one value on (`smallest`) or up to one value (`largest`) is found
    within `tolerance`: upper - lower ≤ tolerance on the linear grid, upper ≤ lower · (1 +
    tolerance) on the logarithmic one. Values of a `whole` quantity are integers; the ends of the
    interval are then rounded to them, each by half a unit at most, and on the linear grid
    upper - lower ≤ ⌈tolerance⌉. Any other condition ends the search after as many questions, at
    some place where its answer changes.

    No value is asked for twice and none after `most_evaluations`. Bounds and tolerance are those
    of a study's [search], which has checked them.
    """
    if whole:
        low, high = int(low), int(high)
    holds_low = yield low
    holds_high = (yield high) if high > low else holds_low
    if holds_low == holds_high or holds_low == (find == "smallest"):
        return _outside(low, high, holds_low, holds_high, find)
    lower, upper = low, high  # tested
    left, right = low, high  # the same before they were rounded
    for _ in range(_halvings(low, high, tolerance, grid)):
        middle = _middle(left, right, grid)
        value = math.floor(middle + 0.5) if whole else middle
        if value <= lower:
            left = middle
        elif value >= upper:
            right = middle
        elif (yield value) == holds_low:
            left, lower = middle, value
        else:
            right, upper = middle, value
    return Boundary(upper if find == "smallest" else lower, lower, upper, "found")


def vote(outcomes: Iterable[bool], of: int) -> bool | None:
    """What more than half of `of` voters say, as soon as it is certain; None before. A tie is no
    majority: the condition does not hold."""
    cast = list(outcomes)
    yes = sum(cast)
    if 2 * yes > of:
        return True
    return False if 2 * (len(cast) - yes) >= of else None


def bisect_by_vote(
    low: float,
    high: float,
    tolerance: float,
    seeds: Sequence[int],
    *,
    find: Find = "smallest",
    grid: Grid = "linear",
    whole: bool = False,
) -> Generator[tuple[float, int], bool, Boundary]:
    """`bisect` for a noisy condition: yields (value, seed) and takes the majority of the seeds. The
    seeds of a value are asked in their order and no further than the majority is open; every value
    meets the same seeds, so that neighbours differ by their value only."""
    search = bisect(low, high, tolerance, find=find, grid=grid, whole=whole)
    try:
        value = next(search)
        while True:
            holds = yield from _majority(value, seeds)
            value = search.send(holds)
    except StopIteration as end:
        boundary: Boundary = end.value
        return boundary


def _majority(value: float, seeds: Sequence[int]) -> Generator[tuple[float, int], bool, bool]:
    outcomes: list[bool] = []
    while (decided := vote(outcomes, len(seeds))) is None:
        outcomes.append((yield value, seeds[len(outcomes)]))
    return decided


def _outside(low: float, high: float, at_low: bool, at_high: bool, find: Find) -> Boundary:
    """No boundary of the kind sought lies between the ends."""
    if at_low != at_high:
        return Boundary(None, low, high, "reversed")
    if find == "smallest":
        below, beyond = Boundary(low, None, low, "below"), Boundary(None, high, None, "never")
        return below if at_low else beyond
    above, beyond = Boundary(high, high, None, "above"), Boundary(None, None, low, "never")
    return above if at_low else beyond


def _middle(left: float, right: float, grid: Grid) -> float:
    """Never outside [left, right], whatever is rounded."""
    middle = left + (right - left) / 2 if grid == "linear" else left * math.sqrt(right / left)
    return min(max(middle, left), right)


def tolerances(low: float, high: float, tolerance: float, grid: Grid) -> float:
    """How often the tolerance fits into the range."""
    if grid == "linear":
        return (high - low) / tolerance
    return math.log(high / low) / math.log1p(tolerance)


def _halvings(low: float, high: float, tolerance: float, grid: Grid) -> int:
    ratio = tolerances(low, high, tolerance, grid)
    return math.ceil(math.log2(ratio)) if ratio > 1 else 0
