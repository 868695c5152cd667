"""One factor between two methods, and sentences on where they part."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.study import StudyError
from daqloom.study.scale import Load, fit_scale, verdicts


@given(st.floats(-1e3, 1e3), st.lists(st.floats(0.1, 1e3), min_size=2, max_size=20))
def test_a_known_factor_comes_back(k: float, a: list[float]) -> None:
    found = fit_scale(a, k * np.array(a))
    assert found.k == pytest.approx(k, rel=1e-12, abs=1e-300)
    assert found.residuals == pytest.approx(0, abs=1e-9 * max(1, abs(k)) * max(a))


def test_the_factor_and_its_error_by_hand() -> None:
    # Σ a b = 1·1 + 2·4 = 9, Σ a² = 5: k = 1.8; residuals -0.8, 0.4: s² = 0.8 over 1.
    plain = fit_scale([1, 2], [1, 4])
    assert (plain.k, plain.error) == pytest.approx((1.8, math.sqrt(0.8 / 5)))
    assert plain.residuals == pytest.approx([-0.8, 0.4])
    assert plain.chi2_per_dof is None
    # Errors 1 and 2: weights 1 and 1/4, Σ w a b = 1 + 2 = 3, Σ w a² = 2: k = 1.5, error 1/√2;
    # residuals -0.5 and 1: chi² = 0.25 + 0.25.
    weighted = fit_scale([1, 2], [1, 4], sigma_b=[1, 2])
    assert (weighted.k, weighted.error) == pytest.approx((1.5, math.sqrt(0.5)))
    assert weighted.chi2_per_dof == pytest.approx(0.5)


@pytest.mark.parametrize("known_errors", [False, True])
def test_the_interval_covers_at_the_nominal_rate(known_errors: bool) -> None:
    random = np.random.default_rng(5)
    a = np.linspace(5e6, 50e6, 8)
    sigma = np.linspace(1e6, 3e6, 8) if known_errors else np.full(8, 2e6)
    replicas, covered, chi2 = 1000, 0, 0.0
    for _ in range(replicas):
        found = fit_scale(a, 1.5 * a + random.normal(0, sigma), sigma if known_errors else None)
        low, high = found.interval()
        covered += low <= 1.5 <= high
        chi2 += (found.chi2_per_dof or 0.0) / replicas
    assert covered / replicas == pytest.approx(0.95, abs=3 * math.sqrt(0.05 * 0.95 / replicas))
    if known_errors:  # chi²/7 has mean 1 and variance 2/7
        assert chi2 == pytest.approx(1, abs=3 * math.sqrt(2 / 7 / replicas))


def test_one_error_for_all_points_is_enough() -> None:
    assert fit_scale([1, 2], [1, 4], sigma_b=2.0).error == pytest.approx(2 / math.sqrt(5))


def test_verdicts_name_the_load_at_which_methods_part() -> None:
    found = verdicts(
        a=[10, 10, 10, 10, 10, 0],
        b=[30, 10.4, 13, 25, 99, 0],
        utilisation=[0.1, 0.5, 0.5, 0.95, 1.2, 0.0],
        tolerance=0.05,
        names=("the formula", "the simulation"),
    )
    assert [verdict.parts for verdict in found] == [True, False, True, True, True, False]
    assert [verdict.ratio for verdict in found] == pytest.approx([3, 1.04, 1.3, 2.5, 9.9, 1])
    assert [verdict.load for verdict in found] == [
        Load.LOW,
        Load.MEDIUM,
        Load.MEDIUM,
        Load.SATURATED,
        Load.SATURATED,
        Load.LOW,
    ]
    for verdict, why in zip(
        found,
        [
            "At 10 % of capacity the simulation gives 3 times the value of the formula: at low load"
            " bursts seldom overlap",
            "they agree within 5 %.",
            "the load does not explain it",
            "near saturation queues grow with the length of the run",
            "above capacity",
            "they agree",
        ],
        strict=True,
    ):
        assert why in verdict.sentence


def test_a_known_factor_between_methods_does_not_part_them() -> None:
    (usual,) = verdicts([10], [15.2], [0.5], 0.05, factor=1.5)
    assert not usual.parts
    assert "gives 1.52 times" in usual.sentence
    assert "where 1.5 is usual" in usual.sentence
    (unusual,) = verdicts([10], [10], [0.5], 0.05, factor=1.5)
    assert unusual.parts


def test_a_value_against_zero_parts_without_end() -> None:
    (verdict,) = verdicts([0], [3], [0.5], 0.05)
    assert verdict.parts
    assert verdict.ratio == math.inf


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(StudyError, match="differ in their points"):
        fit_scale([1, 2], [1])
    with pytest.raises(StudyError, match="at least two points"):
        fit_scale([1], [1])
    with pytest.raises(StudyError, match="at least two points"):
        fit_scale([0, 0], [1, 2])
    with pytest.raises(StudyError, match="not finite"):
        fit_scale([1, math.nan], [1, 2])
    with pytest.raises(StudyError, match="error above zero"):
        fit_scale([1, 2], [1, 2], sigma_b=[1, 0])
    with pytest.raises(StudyError, match="utilisation"):
        verdicts([1], [1], [-0.1], 0.1)
    with pytest.raises(StudyError, match="negative"):
        verdicts([1], [1], [0.1], -0.1)
