"""Bisection: the smallest or the largest value at which a condition holds.

The searches are generators that compute nothing: they yield the value to test and are sent the
outcome, so that a value may come from a store, a simulation or a formula.
"""

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
    """Place where a condition begins or ceases to hold.

    `value` is the smallest or the largest tested value at which it holds; None if there is none.
    The boundary lies between `lower` and `upper`, both tested; None is an open side.

    `status`: `found`; `below` (searching the smallest, it holds in the whole range: the boundary
    is below it); `above` (likewise, searching the largest); `never` (it holds at neither end);
    `reversed` (it holds at the end where it should not and fails at the other: `smallest` was
    taken for `largest`, or the condition has no single boundary).
    """

    value: float | None
    lower: float | None
    upper: float | None
    status: Status


def most_evaluations(low: float, high: float, tolerance: float, grid: Grid = "linear") -> int:
    """Return the largest number of values that `bisect` tests: ⌈log2(range / tolerance)⌉ + 2, with
    both ends. With the logarithmic grid, range and tolerance are ln(high / low) and
    ln(1 + tolerance)."""
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
    """Yield values between `low` and `high`; is sent whether the condition holds there.

    A condition that holds from one value on (`smallest`) or up to one value (`largest`) is found
    within `tolerance`: upper - lower ≤ tolerance on the linear grid, upper ≤ lower · (1 +
    tolerance) on the logarithmic one. Values of a `whole` quantity are integers; the ends of the
    interval are then rounded to them, each by half a unit at most, and on the linear grid
    upper - lower ≤ ⌈tolerance⌉. The search for any other condition ends after as many tests, at
    some place where its outcome changes.

    No value is yielded twice and none after `most_evaluations`. Bounds and tolerance are those
    of a study's [search], which has checked them.
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
    """Run a search with the outcome of `test` for each of its values; return its end."""
    try:
        value = next(search)
        while True:
            value = search.send((yield from test(value)))
    except StopIteration as end:
        found: End = end.value
        return found


def vote(outcomes: Iterable[bool], voters: int) -> bool | None:
    """Return the majority of `voters` voters as soon as it is certain, None before. A tie is no
    majority: the condition does not hold."""
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
    """`bisect` for a noisy condition: yields (value, seed) and takes the majority of the seeds. The
    seeds of a value are tested in their order, until the majority is certain; every value has the
    same seeds, so that neighbours differ by their value only."""
    search = bisect(low, high, tolerance, find=find, grid=grid, whole=whole)
    return (yield from driven(search, partial(_majority, seeds)))


def _majority(seeds: Sequence[int], value: float) -> Generator[tuple[float, int], bool, bool]:
    outcomes: list[bool] = []
    while (decided := vote(outcomes, len(seeds))) is None:
        outcomes.append((yield value, seeds[len(outcomes)]))
    return decided


def _outside(low: float, high: float, at_low: bool, at_high: bool, find: Find) -> Boundary:
    """Return the boundary where none of the kind searched for lies between the ends."""
    if at_low != at_high:
        return Boundary(None, low, high, "reversed")
    if find == "smallest":
        below, beyond = Boundary(low, None, low, "below"), Boundary(None, high, None, "never")
        return below if at_low else beyond
    above, beyond = Boundary(high, high, None, "above"), Boundary(None, None, low, "never")
    return above if at_low else beyond


def _middle(left: float, right: float, grid: Grid) -> float:
    """Return the middle, never outside [left, right], whatever is rounded."""
    middle = left + (right - left) / 2 if grid == "linear" else left * math.sqrt(right / left)
    return min(max(middle, left), right)


def tolerances(low: float, high: float, tolerance: float, grid: Grid) -> float:
    """Return how often the tolerance fits into the range."""
    if grid == "linear":
        return (high - low) / tolerance
    return math.log(high / low) / math.log1p(tolerance)


def _halvings(low: float, high: float, tolerance: float, grid: Grid) -> int:
    ratio = tolerances(low, high, tolerance, grid)
    return math.ceil(math.log2(ratio)) if ratio > 1 else 0
