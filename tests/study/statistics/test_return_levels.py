"""Return levels against distributions of the maximum that are known exactly."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.study import StudyError
from daqloom.study.statistics.gev import Gev, cdf, covariance, draw, log_likelihood, quantile
from daqloom.study.statistics.return_levels import (
    GevFit,
    Level,
    block_maxima,
    describe,
    fit_gev,
    return_level,
)

SHAPES = [-0.2, 0.0, 0.2]


def gumbel_fit(location: float, scale: float) -> GevFit:
    """A fit of known parameters to maxima at the quantiles of that Gumbel."""
    ranks = (np.arange(100) + 0.5) / 100
    maxima = location - scale * np.log(-np.log(ranks))
    return GevFit(location, scale, 0.0, np.eye(3), 0.0, maxima, None, ())


def exponential_maxima(n: int, count: int, random: np.random.Generator) -> np.ndarray:
    """Maxima of n exponentials, by inversion of (1 - e^-x)^n."""
    return -np.log(-np.expm1(np.log(random.random(count)) / n))


# --- The distribution ---------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [*SHAPES, 1e-13, 1e-7])
def test_scipy_agrees_with_c_for_minus_xi(shape: float) -> None:
    from scipy.stats import genextreme

    gev = Gev(100.0, 5.0, shape)
    x = np.array([95.0, 100.0, 108.0, 115.0])
    scipys = genextreme(-shape, 100.0, 5.0)
    assert cdf(x, gev) == pytest.approx(scipys.cdf(x))
    assert log_likelihood(x, gev) == pytest.approx(scipys.logpdf(x).sum())
    assert quantile(0.01, gev) == pytest.approx(scipys.isf(0.01))


def test_values_outside_the_support_have_no_likelihood() -> None:
    # xi = -0.5 ends at mu - sigma/xi = 2, xi = 0.5 begins at -2.
    assert log_likelihood(np.array([0.0, 2.1]), Gev(0.0, 1.0, -0.5)) == -math.inf
    assert log_likelihood(np.array([0.0, -2.1]), Gev(0.0, 1.0, 0.5)) == -math.inf


@given(st.floats(1e-9, 0.999), st.floats(-0.9, 0.9))
def test_a_quantile_is_exceeded_with_its_probability(probability: float, shape: float) -> None:
    gev = Gev(3.0, 2.0, shape)
    exceeded = 1 - cdf(np.array([quantile(probability, gev)]), gev)[0]
    assert exceeded == pytest.approx(probability, rel=1e-5, abs=1e-12)


def test_the_covariance_of_a_gumbel_is_the_known_information() -> None:
    # The information of one Gumbel value about (mu, sigma), sigma = 1, g = 0.5772…, is
    # [[1, g - 1], [g - 1, pi²/6 + (1 - g)²]]; a large sample shows it, with xi left aside.
    x = draw(Gev(0.0, 1.0, 0.0), 100_000, np.random.default_rng(3))
    found = covariance(x, Gev(0.0, 1.0, 0.0))
    assert found is not None
    information = np.linalg.inv(found)[:2, :2] / x.size
    g = float(np.euler_gamma)
    expected = [[1, g - 1], [g - 1, math.pi**2 / 6 + (1 - g) ** 2]]
    assert information == pytest.approx(np.array(expected), abs=0.02)


# --- The fit ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_known_parameters_are_recovered(shape: float) -> None:
    known = Gev(90e6, 1e6, shape)
    fit = fit_gev(draw(known, 2000, np.random.default_rng(1)), replicas=0)
    errors = np.sqrt(np.diag(fit.covariance))
    assert np.all(np.abs(np.array(fit.gev) - np.array(known)) < 3 * errors)
    assert errors[2] < 0.03
    # No distribution near by is more likely than the fitted one, nor the true one.
    for other in (known, fit.gev._replace(shape=shape + 0.1)):
        assert log_likelihood(fit.maxima, other) < fit.log_likelihood


def test_scaling_the_data_scales_the_fit() -> None:
    x = draw(Gev(10.0, 1.0, 0.1), 60, np.random.default_rng(4))
    plain, scaled = fit_gev(x, replicas=0), fit_gev(1e6 * x + 3e6, replicas=0)
    assert scaled.location == pytest.approx(1e6 * plain.location + 3e6, rel=1e-4)
    assert scaled.scale == pytest.approx(1e6 * plain.scale, rel=1e-3)
    assert scaled.shape == pytest.approx(plain.shape, abs=1e-3)


def test_a_sample_of_the_distribution_fits_and_one_with_two_humps_does_not() -> None:
    random = np.random.default_rng(2)
    good = fit_gev(draw(Gev(0.0, 1.0, 0.0), 80, random), replicas=99, seed=5)
    assert good.goodness is not None
    assert good.goodness.p_value > 0.05
    assert fit_gev(good.maxima, replicas=99, seed=5).goodness == good.goodness
    humps = np.concatenate([random.normal(0, 1, 40), random.normal(20, 1, 40)])
    bad = fit_gev(humps, replicas=99)
    assert bad.goodness is not None
    assert bad.goodness.p_value == pytest.approx(0.01)  # no replica of 99 is as bad
    assert any("do not follow" in warning for warning in bad.warnings)


def test_the_p_value_is_uniform_where_the_model_holds() -> None:
    random = np.random.default_rng(6)
    fits = [fit_gev(draw(Gev(0.0, 1.0, 0.1), 30, random), replicas=19) for _ in range(25)]
    mean = np.mean([fit.goodness.p_value for fit in fits if fit.goodness])
    # Uniform on 1/20 … 20/20: mean 0.525, standard deviation 0.288 / sqrt(25).
    assert mean == pytest.approx(0.525, abs=3 * 0.288 / math.sqrt(25))


# --- The level ----------------------------------------------------------------------------------


def test_the_level_of_a_gumbel_by_hand_and_for_longer_periods() -> None:
    # Once in 1000 blocks: p = 0.001, x_p = mu - sigma ln(-ln(1 - p)) = 50 + 2 · 6.907255.
    found = return_level(gumbel_fit(50.0, 2.0), block_s=0.5, period_s=500.0)
    assert found.low < 50 - 2 * math.log(-math.log(0.999)) < found.high
    assert found.value == pytest.approx(63.81451, rel=0.03)
    with pytest.raises(StudyError, match="not longer than a block"):
        return_level(gumbel_fit(50.0, 2.0), block_s=1.0, period_s=1.0)
    fit = fit_gev(draw(Gev(100.0, 5.0, 0.0), 50, np.random.default_rng(13)), replicas=0)
    levels = [return_level(fit, 1.0, period) for period in (2.0, 10.0, 100.0, 1000.0)]
    values = [level.value for level in levels]
    assert values == sorted(values)
    widths = [level.high - level.low for level in levels]
    assert widths[1:] == sorted(widths[1:])


def test_a_short_run_foretells_a_long_one_of_exponentials() -> None:
    # 200 blocks of n = 1000 exponentials; the maximum of m blocks is below x with
    # (1 - e^-x)^(n m), so that one block exceeds x with 1/m where x = -ln(1 - (1 - 1/m)^(1/n)).
    n, m = 1000, 2000
    random = np.random.default_rng(11)
    fit = fit_gev(block_maxima(random.standard_exponential(200 * n), 200), replicas=0)
    found = return_level(fit, block_s=1.0, period_s=float(m))
    exact = -math.log(-math.expm1(math.log1p(-1 / m) / n))
    assert found.low < exact < found.high

    # A run of 400 such periods exceeds the exact level 400 ± 20 times, and the interval's ends on
    # either side of that.
    long_run = exponential_maxima(n, 400 * m, random)
    assert np.sum(long_run > exact) == pytest.approx(400, abs=3 * math.sqrt(400))
    assert np.sum(long_run > found.high) < 400 < np.sum(long_run > found.low)


def test_blocks_of_a_correlated_series_give_its_exact_gumbel() -> None:
    # Y_t = max(a Y_{t-1}, (1 - a) Z_t) with Z unit Fréchet is unit Fréchet itself; the maximum of
    # n has P(max <= y) = exp(-(1 + (n - 1)(1 - a)) / y): of ln Y a Gumbel with sigma = 1 and
    # mu = ln(1 + (n - 1)(1 - a)), less than the ln n of independent values.
    a, n, blocks = 0.8, 500, 400
    random = np.random.default_rng(12)
    innovations = (1 - a) / random.standard_exponential(n * blocks)
    series = np.empty(n * blocks)
    now = 1 / random.standard_exponential()
    for i, new in enumerate(innovations):
        now = max(a * now, new)
        series[i] = now
    fit = fit_gev(block_maxima(np.log(series), blocks), replicas=0)
    known = np.array([math.log(1 + (n - 1) * (1 - a)), 1.0, 0.0])
    assert np.all(np.abs(np.array(fit.gev) - known) < 3 * np.sqrt(np.diag(fit.covariance)))
    found = return_level(fit, 1.0, 1e4)
    assert found.low < quantile(1e-4, Gev(*known)) < found.high


# --- Blocks -------------------------------------------------------------------------------------


def test_blocks_are_equal_and_the_oldest_remainder_is_left_out() -> None:
    assert block_maxima([99, 1, 5, 2, 2, 7, 3], 3).tolist() == [5, 2, 7]
    assert block_maxima([1, 5, 2], 3).tolist() == [1, 5, 2]
    with pytest.raises(StudyError, match="cannot cut 3 bins into 4 blocks"):
        block_maxima([1, 2, 3], 4)
    with pytest.raises(StudyError, match="cannot cut"):
        block_maxima([1, 2, 3], 0)
    with pytest.raises(StudyError, match="finite"):
        block_maxima([1, math.nan, 3], 1)
    with pytest.raises(StudyError, match="19 block maxima are too few for a fit, at least 20"):
        fit_gev(np.arange(19.0))


# --- Refusals and warnings ----------------------------------------------------------------------


def test_few_different_maxima_have_a_level_and_a_warning() -> None:
    found = return_level(fit_gev(np.full(30, 32e6)), 1.0, 3600.0)
    assert (found.low, found.value, found.high) == (32e6, 32e6, 32e6)
    assert "all 30 block maxima are equal" in found.warnings[0]
    level = return_level(fit_gev(np.append(np.ones(29), 0.0), replicas=0), 1.0, 3600.0)
    assert math.isnan(level.low)
    assert "29 of 30 block maxima are the same" in level.warnings[0]
    # Rare events: most slices hold none or one. The deviance is flat next to the estimate.
    steps = [(0.0, 35), (576_810.0, 1), (691_470.0, 42), (1_380_600.0, 2)]
    maxima = np.repeat([value for value, _ in steps], [count for _, count in steps])
    found = return_level(fit_gev(maxima, replicas=0), 1.0, 3600.0)
    assert found.low <= found.value <= found.high


def warnings_of(maxima: np.ndarray) -> str:
    return "; ".join(fit_gev(maxima, replicas=0).warnings)


def test_maxima_that_chance_does_not_set_or_bound_are_warned_of() -> None:
    random = np.random.default_rng(14)
    spread = draw(Gev(30e6, 1e6, 0.0), 60, random)
    assert "nearly equal" in warnings_of(32e6 + 1e3 * random.random(30))
    assert "are the same (30 MB)" in warnings_of(np.minimum(spread, 30e6))
    assert "neighbouring blocks are correlated" in warnings_of(np.sort(spread))
    assert "saturate at an upper end" in warnings_of(-random.standard_exponential(200))  # xi = -1
    for sentence in ("equal", "the same", "correlated", "saturate"):
        assert sentence not in warnings_of(spread)
    random = np.random.default_rng(15)
    bounded = fit_gev(draw(Gev(100.0, 5.0, -0.3), 200, random))
    (shape,) = re.findall(
        r"the tail may be bounded \(shape -0.2., (-0.\d\d) to", bounded.warnings[0]
    )
    assert float(shape) <= -0.3  # the interval holds the shape of the data
    assert "bounded" not in warnings_of(draw(Gev(100.0, 5.0, 0.4), 200, random))


def test_data_that_do_not_carry_a_level_have_a_warning_with_the_time_to_simulate() -> None:
    random = np.random.default_rng(21)
    known = Gev(10.0, 2.0, 0.0)
    short = fit_gev(draw(known, 40, random))
    (warning,) = (text for text in return_level(short, 1.0, 3600.0).warnings if "simulate" in text)
    assert "the level of 1 h is uncertain by" in warning
    assert "because it is 90 times the 40 s observed" in warning
    (seconds,) = re.findall(
        r"about (\d+) s, all seeds together, for an uncertainty within 15%", warning
    )
    halves = []
    for _ in range(5):
        level = return_level(fit_gev(draw(known, int(seconds), random)), 1.0, 3600.0)
        halves.append((level.high - level.low) / 2 / level.value)
    assert 0.05 < np.median(halves) < 1.2 * 0.15


# --- The sentence -------------------------------------------------------------------------------


def test_a_level_is_described_in_a_sentence() -> None:
    level = Level(93.1e6, 90.2e6, 97.5e6, 3600.0)
    sentence = "A buffer of 93.1 MB (90.2 to 97.5 MB, 95 %) overflows less than once an hour."
    assert describe(level, "once an hour") == sentence
    assert describe(Level(5.04e6, 4.9e6, math.inf, 7.0), "once in 7 s", "An ideal buffer") == (
        "An ideal buffer of 5.04 MB (at least 4.90 MB, 95 %) overflows less than once in 7 s."
    )
