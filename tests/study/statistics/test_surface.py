"""Least-squares surfaces: known coefficients come back, and intervals cover as they say."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.study import StudyError
from daqloom.study.statistics.surface import Surface, fit_surface, parse_terms, term_name

RATE_HZ, SIZE_BYTES = (
    grid.ravel() for grid in np.meshgrid([1e3, 2e3, 6e3, 12e3, 20e3], [1e6, 2e6, 4e6, 8e6])
)


def triangles(rate: float, size: float) -> float:
    """The paper's formula with N = S f / O + 1, for O = 25 and I = 800 Gb/s."""
    input_bytes, output_bytes = 800e9 / 8, 25e9 / 8
    n = size * rate / output_bytes + 1
    excess = (input_bytes - output_bytes) / input_bytes * size
    return n * (excess - (n - 1) / 2 * output_bytes / rate)


def test_the_papers_formula_is_a_surface_of_two_terms() -> None:
    values = [triangles(f, s) for f, s in zip(RATE_HZ, SIZE_BYTES, strict=True)]
    surface = fit_surface(RATE_HZ, SIZE_BYTES, np.array(values))
    # (S f / O + 1)(1/2 - O/I) S: y with 1/2 - 1/32, and x y² with the same over O = 3.125e9 B/s.
    known = {"y": 15 / 32, "x*y**2": 15 / 32 / 3.125e9}
    for (in_x, in_y), (name, found) in zip(
        surface.terms, surface.coefficients.items(), strict=True
    ):
        largest = 20e3**in_x * 8e6**in_y  # what one unit of the coefficient adds at most
        wrong = abs(found.value - known.get(name, 0.0)) * largest
        assert wrong < 1e-9 * max(values), name
    assert surface.r_squared == pytest.approx(1.0)
    target = surface.predict(12e3, 5e6)
    assert target.value == pytest.approx(triangles(12e3, 5e6), rel=1e-9)
    assert target.high - target.low < 1e-6 * target.value


@given(st.lists(st.floats(-10, 10), min_size=6, max_size=6))
def test_coefficients_come_back_without_noise(known: list[float]) -> None:
    x, y = (grid.ravel() for grid in np.meshgrid([1.0, 2.0, 5.0], [0.0, 1.0, 2.0, 3.0]))
    columns = np.stack([x**0, x, y, x * y, y**2, x * y**2])
    surface = fit_surface(x, y, np.array(known) @ columns)
    found = [coefficient.value for coefficient in surface.coefficients.values()]
    assert found == pytest.approx(known, abs=1e-9)


def through(x: list[float], y: list[float], z: list[float], terms: str) -> Surface:
    return fit_surface(np.array(x), np.array(y), np.array(z), terms)


def test_a_straight_line_has_its_textbook_errors() -> None:
    x, z = np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0, 6.0])
    surface = fit_surface(x, np.zeros(4), z, "1 + x")
    # Means 1.5 and 3; Sxx = 5, Sxz = 7: slope 1.4, intercept 0.9.
    # Residuals 0.1, 0.7, -1.7, 0.9: squares 4.2 over 2 degrees of freedom, s² = 2.1.
    assert surface.residuals == pytest.approx([0.1, 0.7, -1.7, 0.9])
    assert surface.residual_sd == pytest.approx(math.sqrt(2.1))
    assert surface.coefficients["x"] == pytest.approx((1.4, math.sqrt(2.1 / 5)))
    assert surface.coefficients["1"] == pytest.approx((0.9, math.sqrt(2.1 * (1 / 4 + 2.25 / 5))))
    assert surface.r_squared == pytest.approx(1 - 4.2 / 14)
    # At x = 4 a new point has variance 2.1 (1 + 1/4 + 2.5²/5) = 5.25; t(0.975, 2) = 4.302653.
    value, low, high = surface.predict(4, 0)
    assert value == pytest.approx(6.5)
    assert high - value == pytest.approx(4.302653 * math.sqrt(5.25), rel=1e-6)
    assert value - low == pytest.approx(high - value)
    assert surface.value(4, 0) == value


def test_intervals_cover_at_the_nominal_rate() -> None:
    random = np.random.default_rng(20)
    known = np.array([2e6, 300.0, 0.4])
    columns = np.stack([RATE_HZ**0, RATE_HZ, SIZE_BYTES])
    replicas, covered, new = 400, np.zeros(3), 0
    for _ in range(replicas):
        values = known @ columns + random.normal(0, 1e5, RATE_HZ.size)
        surface = fit_surface(RATE_HZ, SIZE_BYTES, values, "1 + x + y")
        # t(0.975, 20 - 3) = 2.109816
        for i, (value, error) in enumerate(surface.coefficients.values()):
            covered[i] += abs(value - known[i]) <= 2.109816 * error
        measured = known @ [1, 12e3, 5e6] + random.normal(0, 1e5)
        _, low, high = surface.predict(12e3, 5e6)
        new += bool(low <= measured <= high)
    band = 3 * math.sqrt(0.05 * 0.95 / replicas)
    assert np.abs(covered / replicas - 0.95) == pytest.approx(0, abs=band)
    assert new / replicas == pytest.approx(0.95, abs=band)


def noisy(seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    values = np.array([triangles(f, s) for f, s in zip(RATE_HZ, SIZE_BYTES, strict=True)])
    return values + random.normal(0, 1e6, values.size)


def test_leaving_points_out_equals_fits_without_them_and_others_are_extrapolated() -> None:
    values = noisy(1)
    surface = fit_surface(RATE_HZ, SIZE_BYTES, values)

    def refitted(out: np.ndarray) -> np.ndarray:
        kept = ~out
        without = fit_surface(RATE_HZ[kept], SIZE_BYTES[kept], values[kept])
        return values[out] - without.predict(RATE_HZ[out], SIZE_BYTES[out]).value

    ones = np.array([refitted(np.arange(values.size) == i)[0] for i in range(values.size)])
    assert surface.leave_group_out(np.arange(values.size)) == pytest.approx(ones, rel=1e-6)
    left_out = surface.leave_group_out(SIZE_BYTES)
    for size in np.unique(SIZE_BYTES):
        of = size == SIZE_BYTES
        assert left_out[of] == pytest.approx(refitted(of), rel=1e-6)
    values = noisy(3)
    surface = fit_surface(RATE_HZ, SIZE_BYTES, values)
    assert not surface.extrapolates(RATE_HZ, SIZE_BYTES).any()
    assert surface.extrapolates([6e3, 40e3], [3e6, 8e6]).tolist() == [False, True]


def test_terms_are_read_once_with_powers_in_either_notation() -> None:
    assert parse_terms("1 + x+ y *x + y^2 + x**3*y") == ((0, 0), (1, 0), (1, 1), (0, 2), (3, 1))
    assert [term_name(term) for term in parse_terms("y*x**2*x + 1")] == ["x**3*y", "1"]
    with pytest.raises(StudyError, match=r"x\*y occurs twice"):
        parse_terms("x*y + 1 + y*x")


@pytest.mark.parametrize(
    "text", ["", "1 +", "2*x", "x - y", "z", "x**0", "x**y", "x***2", "exp(x)", "__import__('os')"]
)
def test_other_texts_than_polynomials_are_refused(text: str) -> None:
    with pytest.raises(StudyError, match="cannot read"):
        parse_terms(text)


def test_too_few_points_groups_and_dependent_terms_are_refused() -> None:
    with pytest.raises(StudyError, match="at least 3 points"):
        through([0, 1], [0, 0], [1, 2], "1 + x")
    with pytest.raises(StudyError, match="do not determine the terms"):
        through([1, 2, 3, 4], [2, 4, 6, 8], [1, 2, 3, 5], "1 + x + y")
    with pytest.raises(StudyError, match="do not determine the terms"):
        through([1, 2, 3, 4], [0, 0, 0, 0], [1, 2, 3, 5], "1 + x + y")
    surface = through([0, 1, 2, 3], [0, 0, 0, 1], [1, 2, 4, 5], "1 + x + y")
    with pytest.raises(StudyError, match="without far"):
        surface.leave_group_out(["near", "near", "near", "far"])
