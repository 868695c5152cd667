"""Bisection: the smallest or the largest value at which a condition holds. The searches are
generators: they yield a value to test and receive whether the condition holds. The caller evaluates
the condition by a stored result, a simulation or a formula."""

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

Find = Literal["smallest", "largest"]
Grid = Literal["linear", "log"]
Status = Literal["found", "below", "above", "never", "reversed"]
End = TypeVar("End")


@dataclass(frozen=True, slots=True)
class Boundary:
    """Result of a search: the value at which a condition begins or ceases to hold.

    `value` is the smallest or largest tested value at which the condition holds; None if there is
    none. The boundary lies between the tested values `lower` and `upper`; None means an open side.

    `status`: `found`; `below` (search for the smallest value, and the condition holds at both ends:
    the boundary is below the range); `above` (search for the largest value, and the boundary is
    above the range); `never` (the condition holds at neither end); `reversed` (the condition holds
    only at the opposite end, as if `find` were wrong).
    """

    value: float | None
    lower: float | None
    upper: float | None
    status: Status


def most_evaluations(low: float, high: float, tolerance: float, grid: Grid = "linear") -> int:
    """Return the maximum number of values that `bisect` tests, both ends included: ⌈log2(range /
    tolerance)⌉ + 2. For the logarithmic grid, the range is ln(high / low) and the tolerance ln(1 +
    tolerance)."""
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
    """Yield values between `low` and `high` to test; receive whether the condition holds there.

    A condition that holds from one value on (`smallest`) or up to one value (`largest`) is found
    within `tolerance`: upper - lower ≤ tolerance on the linear grid, upper ≤ lower · (1 +
    tolerance) on the logarithmic one. For a `whole` quantity, values are rounded to integers, and
    on the linear grid upper - lower ≤ ⌈tolerance⌉. For a condition with several boundaries, the
    search finds one of them in as many tests.

    No value is yielded twice, and at most `most_evaluations` values are yielded. The table [search]
    of a study has validated bounds and tolerance.
    """
    if whole:
        low, high = int(low), int(high)
    holds_low = yield low
    holds_high = (yield high) if high > low else holds_low
    if holds_low == holds_high or holds_low == (find == "smallest"):
        return _outside(low, high, holds_low, holds_high, find)
    lower, upper = low, high  # tested
    left, right = low, high  # before rounding
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


def driven(
    search: Generator[Any, Any, End], test: Callable[[Any], Generator[Any, Any, Any]]
) -> Generator[Any, Any, End]:
    """Run a search: send it the outcome of `test` for each value, and return its result."""
    try:
        value = next(search)
        while True:
            value = search.send((yield from test(value)))
    except StopIteration as end:
        found: End = end.value
        return found


def vote(outcomes: Iterable[bool], voters: int) -> bool | None:
    """Return the majority of `voters` votes as soon as it is certain, None before. A tie counts as
    False."""
    cast = list(outcomes)
    yes = sum(cast)
    if 2 * yes > voters:
        return True
    return False if 2 * (len(cast) - yes) >= voters else None


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
    """Bisect a noisy condition: yield (value, seed) to test, and take the majority over seeds. The
    seeds are tested in their order until the majority is certain. All values use the same seeds, so
    that results of neighbouring values differ only by the value."""
    search = bisect(low, high, tolerance, find=find, grid=grid, whole=whole)
    return (yield from driven(search, partial(_majority, seeds)))


def _majority(seeds: Sequence[int], value: float) -> Generator[tuple[float, int], bool, bool]:
    outcomes: list[bool] = []
    while (decided := vote(outcomes, len(seeds))) is None:
        outcomes.append((yield value, seeds[len(outcomes)]))
    return decided


def _outside(low: float, high: float, at_low: bool, at_high: bool, find: Find) -> Boundary:
    """Return the result if the range contains no boundary of the kind searched for."""
    if at_low != at_high:
        return Boundary(None, low, high, "reversed")
    if find == "smallest":
        below, beyond = Boundary(low, None, low, "below"), Boundary(None, high, None, "never")
        return below if at_low else beyond
    above, beyond = Boundary(high, high, None, "above"), Boundary(None, None, low, "never")
    return above if at_low else beyond


def _middle(left: float, right: float, grid: Grid) -> float:
    """Return the middle of the interval, clamped to [left, right] against rounding errors."""
    middle = left + (right - left) / 2 if grid == "linear" else left * math.sqrt(right / left)
    return min(max(middle, left), right)


def tolerances(low: float, high: float, tolerance: float, grid: Grid) -> float:
    """Return the range divided by the tolerance."""
    if grid == "linear":
        return (high - low) / tolerance
    return math.log(high / low) / math.log1p(tolerance)


def _halvings(low: float, high: float, tolerance: float, grid: Grid) -> int:
    ratio = tolerances(low, high, tolerance, grid)
    return math.ceil(math.log2(ratio)) if ratio > 1 else 0
