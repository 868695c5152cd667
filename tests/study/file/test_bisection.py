"""Searches for a boundary against conditions whose boundary is known."""

import math
import random
from collections.abc import Callable, Generator
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.study.file.bisection import Boundary, bisect, bisect_by_vote, most_evaluations, vote


def drive(search: Generator[Any, bool, Boundary], holds: Callable[..., bool]) -> Any:
    """The boundary and every question tested on the way."""
    tested = []
    try:
        question = next(search)
        while True:
            tested.append(question)
            question = search.send(holds(question))
    except StopIteration as end:
        assert len(set(tested)) == len(tested), "a question was tested twice"
        return end.value, tested


def condition(find: str, boundary: float) -> Callable[[float], bool]:
    return (lambda x: x >= boundary) if find == "smallest" else (lambda x: x <= boundary)


FIND = st.sampled_from(["smallest", "largest"])


@pytest.mark.parametrize("find", ["smallest", "largest"])
@pytest.mark.parametrize("high", [0, 1, 2, 3, 7, 8, 9, 20])
def test_every_boundary_between_whole_numbers_is_found_exactly(find: str, high: int) -> None:
    for boundary in range(-1, high + 2):
        found, tested = drive(bisect(0, high, 1, find=find, whole=True), condition(find, boundary))
        smallest = find == "smallest"
        outside = "below" if smallest else "above"
        holding = [x for x in range(high + 1) if condition(find, boundary)(x)]
        if not holding:
            assert found.status == "never"
            assert found.value is None
        elif len(holding) == high + 1:
            assert found.status == outside
            assert found.value == (0 if smallest else high)
        else:
            assert found.status == "found"
            assert found.value == boundary
            other = (found.lower, found.upper)[not smallest]
            assert abs(other - found.value) == 1
        assert len(tested) <= most_evaluations(0, high, 1)


@pytest.mark.parametrize("tolerance", [0.01, 0.5, 1, 1.5, 2, 3, 4])
def test_whole_ends_lie_no_further_apart_than_the_tolerance_rounded_up(tolerance: float) -> None:
    for low, high in product(range(3), range(3, 25)):
        for boundary in range(low + 1, high + 1):
            search = bisect(low, high, tolerance, whole=True)
            found, tested = drive(search, condition("smallest", boundary))
            assert found.lower < boundary <= found.upper
            assert found.upper - found.lower <= math.ceil(tolerance)
            assert len(tested) <= most_evaluations(low, high, tolerance)


@st.composite
def linear(draw: st.DrawFn) -> tuple[float, float, float, float]:
    low = draw(st.floats(-1e6, 1e6))
    width = draw(st.floats(1e-3, 1e6))
    boundary = low + width * draw(st.floats(0.0, 1.0))
    return low, low + width, width * draw(st.floats(1e-6, 2.0)), boundary


@given(linear(), FIND)
def test_a_boundary_on_the_linear_grid(case: tuple[float, float, float, float], find: str) -> None:
    low, high, tolerance, boundary = case
    found, tested = drive(bisect(low, high, tolerance, find=find), condition(find, boundary))
    assert all(low <= value <= high for value in tested)
    if found.status == "found":
        assert found.lower <= boundary <= found.upper
        # Each end carries one rounding of a midpoint: half a unit in the last place.
        assert found.upper - found.lower <= tolerance + 4 * math.ulp(max(abs(low), abs(high)))
        assert condition(find, boundary)(found.value)
    else:
        assert boundary in (low, high)


@given(st.floats(1e-9, 1e9), st.floats(1.0, 1e6), st.floats(1e-4, 2.0), st.floats(0.0, 1.0), FIND)
def test_a_boundary_on_the_logarithmic_grid(
    low: float, factor: float, tolerance: float, place: float, find: str
) -> None:
    high = low * factor
    boundary = min(low * factor**place, high)
    search = bisect(low, high, tolerance, find=find, grid="log")
    found, tested = drive(search, condition(find, boundary))
    assert len(tested) <= most_evaluations(low, high, tolerance, "log")
    if found.status == "found":
        assert found.lower <= boundary <= found.upper
        # 64 halvings with three roundings each, of a part in 2^53.
        assert found.upper / found.lower <= (1 + tolerance) * (1 + 1e-13)
    else:
        assert found.status == ("below" if find == "smallest" else "above")


@given(
    st.integers(1, 10**9),
    st.integers(0, 10**12),
    st.floats(0.0, 1.0),
    st.floats(1e-4, 1.0),
    st.sampled_from(["linear", "log"]),
    FIND,
)
def test_whole_quantities_have_whole_values(
    low: int, width: int, place: float, tolerance: float, grid: str, find: str
) -> None:
    high = low + width
    boundary = low + round(place * width)
    width_allowed = tolerance if grid == "log" else max(1.0, tolerance * width)
    search = bisect(low, high, width_allowed, find=find, grid=grid, whole=True)
    found, tested = drive(search, condition(find, boundary))
    assert all(isinstance(value, int) and low <= value <= high for value in tested)
    if found.status != "found":
        assert boundary in (low, high)
        return
    assert found.lower <= boundary <= found.upper
    if grid == "linear":
        assert found.upper - found.lower <= math.ceil(width_allowed)
    else:  # |rounded - true| ≤ ½ at both ends: U + ½ ≤ (1 + t) (L + ½) + ½
        most = (1 + tolerance) * (found.lower + 0.5) + 0.5
        assert found.upper <= most * (1 + 1e-12)


@given(
    st.floats(1e-3, 1e9),
    st.one_of(st.floats(0.0, 100.0), st.floats(0.0, 1e9)),
    st.one_of(st.floats(1e-6, 1.0), st.floats(1.0, 1e3)),
    st.sampled_from(["linear", "log"]),
    st.booleans(),
    FIND,
    st.randoms(use_true_random=False),
)
def test_no_answers_make_a_search_longer_than_its_bound(
    low: float, width: float, tolerance: float, grid: str, whole: bool, find: str, chance: Any
) -> None:
    """Answers at random: monotone, non-monotone, reversed: ⌈log2(range / tolerance)⌉ + 2."""
    high = low + width
    if whole:
        low, high = math.ceil(low), math.ceil(low) + int(width)
    answers: dict[float, bool] = {}

    def holds(value: float) -> bool:
        assert value not in answers, "tested twice"
        answers[value] = chance.random() < 0.5
        return answers[value]

    search = bisect(low, high, tolerance, find=find, grid=grid, whole=whole)
    found, tested = drive(search, holds)
    wide, fine = (
        (high - low, tolerance)
        if grid == "linear"
        else (math.log(high / low), math.log1p(tolerance))
    )
    assert len(tested) <= max(0, math.ceil(math.log2(wide / fine)) if wide > 0 else 0) + 2
    if found.value is not None:
        assert answers[found.value]
    if found.status == "found":  # the answer changes between the ends
        assert answers[found.lower] != answers[found.upper]


def test_the_wrong_direction_open_sides_and_one_value_are_reported() -> None:
    found, _ = drive(bisect(0, 8, 1, find="smallest"), lambda x: x <= 3)
    assert found == Boundary(None, 0, 8, "reversed")
    found, _ = drive(bisect(0, 8, 1, find="largest"), lambda x: x >= 3)
    assert found == Boundary(None, 0, 8, "reversed")
    never, always = (lambda _: False), (lambda _: True)
    assert drive(bisect(1, 9, 1), never)[0] == Boundary(None, 9, None, "never")
    assert drive(bisect(1, 9, 1), always)[0] == Boundary(1, None, 1, "below")
    assert drive(bisect(1, 9, 1, find="largest"), never)[0] == Boundary(None, None, 1, "never")
    assert drive(bisect(1, 9, 1, find="largest"), always)[0] == Boundary(9, 9, None, "above")
    assert drive(bisect(5, 5, 1), lambda _: True) == (Boundary(5, None, 5, "below"), [5])
    found, tested = drive(bisect(0.0, 8.0, 1, whole=True), lambda x: x >= 3)
    assert found == Boundary(3, 2, 3, "found")
    assert all(isinstance(value, int) for value in tested)


@pytest.mark.parametrize("of", [1, 2, 3, 4, 5])
def test_a_vote_is_decided_when_no_further_voter_can_change_it(of: int) -> None:
    for outcomes in product([False, True], repeat=of):
        for cast in range(of + 1):
            rest = product([False, True], repeat=of - cast)
            ends = {2 * sum((*outcomes[:cast], *tail)) > of for tail in rest}
            assert vote(outcomes[:cast], of) == (ends.pop() if len(ends) == 1 else None)


def test_seeds_vote_until_the_majority_is_certain() -> None:
    found, tested = drive(bisect_by_vote(0, 4, 1, [7, 8, 9], whole=True), lambda q: q[0] >= 3)
    assert found == Boundary(3, 2, 3, "found")
    # Two of three agree at once everywhere; the third is never needed.
    assert tested == [(v, s) for v in (0, 4, 2, 3) for s in (7, 8)]
    found, tested = drive(
        bisect_by_vote(0, 1, 1, [1, 2, 3], whole=True), lambda q: q[0] == 1 and q[1] != 2
    )
    assert found == Boundary(1, 0, 1, "found")
    assert tested == [(0, 1), (0, 2), (1, 1), (1, 2), (1, 3)]


@given(st.integers(0, 10**6), st.integers(1, 100_000), st.integers(0, 2**32), FIND)
def test_a_noisy_boundary_is_found_within_its_band(
    boundary: int, band: int, noise: int, find: str
) -> None:
    """Each seed has its own boundary at each value, at most `band` away from the true one."""

    def holds(question: tuple[float, int]) -> bool:
        value, seed = question
        shift = random.Random(f"{noise} {value} {seed}").uniform(-band, band)
        return condition(find, boundary + shift)(value)

    low, high, tolerance = -200_000, 1_200_000, 100
    search = bisect_by_vote(low, high, tolerance, [1, 2, 3, 4, 5], find=find, whole=True)
    found, tested = drive(search, holds)
    assert len(tested) <= 5 * most_evaluations(low, high, tolerance)
    assert found.status == "found"
    # The answer changes between the ends: neither lies a whole band beyond the boundary.
    assert found.lower <= boundary + band
    assert found.upper >= boundary - band
    assert boundary - band - tolerance <= found.value <= boundary + band + tolerance
