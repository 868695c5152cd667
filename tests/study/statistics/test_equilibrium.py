"""Stationarity: the share of false alarms is nominal, drifts and transients are found."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.study import StudyError
from daqloom.study.statistics.equilibrium import extend, stationary

SERIES = 400
LENGTH = 4000


def autoregressive(rho: float, seed: int, length: int = LENGTH) -> Any:
    """`SERIES` stationary series of unit variance, shape (SERIES, length)."""
    rng = np.random.default_rng(seed)
    values = np.empty((length, SERIES))
    values[0] = rng.standard_normal(SERIES)
    innovation = math.sqrt(1 - rho**2)
    for step in range(1, length):
        values[step] = rho * values[step - 1] + innovation * rng.standard_normal(SERIES)
    return values.T


def likely(share: float, doubt: float = 1e-3) -> tuple[int, int]:
    """Counts out of `SERIES` with a binomial tail of `doubt` left out on either side."""
    mass = [
        math.comb(SERIES, k) * share**k * (1 - share) ** (SERIES - k) for k in range(SERIES + 1)
    ]
    fewest = next(k for k in range(SERIES) if sum(mass[: k + 1]) > doubt)
    most = next(k for k in range(SERIES, 0, -1) if sum(mass[k:]) > doubt)
    return fewest, most


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_false_alarms_have_the_nominal_share(rho: float, confidence: float) -> None:
    """Correlation makes the variance too small by 190 / n at ρ = 0.9.

    The statistic is then wider than Student's with nine degrees of freedom by 1 / √(1 - 190 / n),
    2.5 %: its level lies between the nominal one and that of a quantile lower by as much.
    """
    from scipy.special import stdtr, stdtrit

    alarms = sum(
        not stationary(values, confidence=confidence).is_stationary
        for values in autoregressive(rho, seed=1)
    )
    too_small = 2 * rho / (1 - rho**2) * 20 / LENGTH
    lower_quantile = stdtrit(9, (1 + confidence) / 2) * math.sqrt(1 - too_small)
    fewest, _ = likely(1 - confidence)
    _, most = likely(2 * (1 - stdtr(9, lower_quantile)))
    assert fewest <= alarms <= most


@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_a_linear_drift_is_found(rho: float) -> None:
    """The means of early tenth and late half differ by 0.7 of the drift.

    At ρ = 0.9 the long-run variance is (1 + ρ) / (1 - ρ) = 19, that of a batch of 200 values
    19 / 200 = 0.095. A drift of 6 is 0.3 per batch and adds 0.3² times the variance of 0, 1, … 9,
    0.09 · 9.17 = 0.825. The statistic is about 4.2 / √((0.095 + 0.825) · 0.6) = 5.7; the quantile
    is 3.25.
    """
    drift = np.linspace(0, 6, LENGTH)
    answers = [stationary(values + drift) for values in autoregressive(rho, seed=2)]
    assert not any(answer.is_stationary for answer in answers)
    assert np.mean([answer.drift for answer in answers]) == pytest.approx(0.7 * 6, abs=0.05)


@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_a_decaying_transient_is_found(rho: float) -> None:
    """a exp(-t / τ), τ = n / 20: its mean over the first tenth is a (1 - exp(-2)) / 2 = 0.43 a.

    The last half keeps a / 10 · exp(-10) of it, nothing. With a = 5 the drift is 2.16: at ρ = 0.9
    nine standard errors (0.24), against a quantile of 3.25.
    """
    transient = 5 * np.exp(-np.arange(LENGTH) / (LENGTH / 20))
    answers = [stationary(values + transient) for values in autoregressive(rho, seed=3)]
    found = sum(not answer.is_stationary for answer in answers)
    assert found >= 0.97 * SERIES
    expected = -5 * (1 - math.exp(-2)) / 2
    assert np.mean([answer.drift for answer in answers]) == pytest.approx(expected, abs=0.05)


def test_the_drift_and_the_interval_by_hand() -> None:
    # 40 values in batches of two: the first tenth is four values, the last half twenty.
    values = [8.0] * 4 + [100.0] * 16 + [1.0, 3.0] * 10
    answer = stationary(values)
    assert answer.drift == 2 - 8  # the batches of the last half all have the mean 2
    assert not answer.is_stationary
    assert answer.interval == pytest.approx((-6, -6))
    # Batch means 0 and 2 in turn: variance 10 / 9, standard error √(10 / 9 · 0.6); t(9) = 3.2498.
    answer = stationary([1.0] * 20 + [0.0, 0.0, 2.0, 2.0] * 5)
    margin = 3.2498 * math.sqrt(10 / 9 * 0.6)
    assert answer.drift == 0
    assert answer.interval == pytest.approx((-margin, margin), rel=1e-4)
    assert answer.is_stationary


@given(st.floats(-1e12, 1e12), st.integers(40, 500))
def test_a_constant_is_stationary(value: float, length: int) -> None:
    assert stationary([value] * length).is_stationary


@given(st.lists(st.integers(0, 10**9), min_size=40, max_size=80), st.integers(-30, 30))
def test_the_verdict_does_not_depend_on_the_unit(values: list[int], power: int) -> None:
    first, second = stationary(values), stationary(np.array(values) * 2.0**power)
    assert first.is_stationary == second.is_stationary
    assert second.drift == 2.0**power * first.drift  # powers of two round nothing


@pytest.mark.parametrize(
    ("values", "sentence"),
    [([1.0] * 39, "40 values or more"), (np.ones((40, 2)), "one row"), ([math.nan] * 40, "finite")],
)
def test_series_that_cannot_be_tested_are_refused(values: Any, sentence: str) -> None:
    with pytest.raises(StudyError, match=sentence):
        stationary(values)


def durations(duration_s: float, most_s: float, settles_at_s: float) -> tuple[list[float], bool]:
    search = extend(duration_s, most_s)
    tried = [next(search)]
    try:
        while True:
            tried.append(search.send(tried[-1] >= settles_at_s))
    except StopIteration as end:
        return tried, end.value


@pytest.mark.parametrize(
    ("most_s", "settles_at_s", "tried", "settled"),
    [
        (8, 0.5, [1], True),
        (8, 3, [1, 2, 4], True),
        (8, 8, [1, 2, 4, 8], True),
        (8, 9, [1, 2, 4, 8], False),
        (5, 9, [1, 2, 4, 5], False),
        (1, 9, [1], False),
    ],
)
def test_a_run_is_doubled_until_it_is_stationary_or_long_enough(
    most_s: float, settles_at_s: float, tried: list[float], settled: bool
) -> None:
    assert durations(1, most_s, settles_at_s) == (tried, settled)


@pytest.mark.parametrize(
    ("duration_s", "most_s"), [(0, 1), (-1, 1), (2, 1), (1, math.inf), (1, math.nan)]
)
def test_durations_that_make_no_sense(duration_s: float, most_s: float) -> None:
    with pytest.raises(StudyError, match="cannot be extended"):
        next(extend(duration_s, most_s))
