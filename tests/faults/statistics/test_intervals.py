"""Fits of the intervals between failures, for samples of known distributions."""

import numpy as np
import pytest

from daqloom.faults.statistics.intervals import _fit, intervals


@pytest.mark.parametrize("shape", [0.5, 1.0, 1.8])
def test_intervals_are_fitted(shape: float) -> None:
    """Within four standard errors of the truth: shape ± 0.78 shape / √n (Bain 1978)."""
    random = np.random.default_rng(2)
    found = intervals(np.cumsum(100 * random.weibull(shape, 3000)))
    exponential, weibull = found.fits
    assert weibull.shape == pytest.approx(shape, abs=4 * 0.78 * shape / np.sqrt(3000))
    assert weibull.scale_s == pytest.approx(100, rel=4 * 1.05 / shape / np.sqrt(3000))
    assert weibull.p_value > 0.01
    assert exponential.scale_s == pytest.approx(found.interval_s.mean())
    assert (exponential.p_value > 0.01) == (found.burst_p_value > 0.01) == (shape == 1)


def test_p_values_of_a_fit_of_the_right_kind_are_uniform() -> None:
    """One in ten of 200 exponential logs has a p-value below 0.1 (± 4 σ).

    Four are fitted whole: the Weibull's samples, which have no part in it, take the time.
    """
    random = np.random.default_rng(3)
    low = 0
    for seed in range(200):
        begin_s = np.cumsum(random.exponential(size=50))
        fit = _fit("exponential", np.sort(np.diff(begin_s)), False, np.random.default_rng(seed))
        assert seed % 50 or fit == intervals(begin_s, seed).fits[0]
        low += fit.p_value <= 0.1
    assert abs(low / 200 - 0.1) <= 4 * np.sqrt(0.1 * 0.9 / 200)


def test_few_or_simultaneous_failures_have_no_fit() -> None:
    assert intervals(np.array([])).fits == ()
    assert intervals(np.array([1.0, 2.0, 3.0])).fits == ()
    assert intervals(np.zeros(100)).fits == ()
