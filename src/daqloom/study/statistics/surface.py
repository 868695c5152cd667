"""A least-squares surface z(x, y) over named polynomial terms, with errors and intervals.

The paper on ATLAS buffers (section 4, fig. 6) extrapolates the minimum buffer over event rate x and
event size y by "a first order polynomial for a given event size and a second order one for a given
event rate", and prints no coefficients. That is every product of {1, x} and {1, y, y²}. The product
x·y² is needed: with N = S·f/O + 1 the paper's formula is B = (S·f/O + 1)·(1/2 − O/I)·S, whose terms
are y and x·y² (size S = y, rate f = x; I and O are input and output rate).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daqloom.base import lazy
from daqloom.study import StudyError

with lazy.imports():
    from scipy import stats

Array = NDArray[np.float64]
Term = tuple[int, int]
"""A term of the surface: powers of x and of y."""

RATE_AND_SIZE = "1 + x + y + x*y + y**2 + x*y**2"
"""Default terms: order 1 in the event rate x and order 2 in the event size y."""

DEPENDENT = 1e-10
"""Ratio of the smallest to the largest singular value below which terms count as dependent."""

_FACTOR = re.compile(r"(?P<name>[xy])(?:\*\*(?P<power>[1-9]))?|1")


class Coefficient(NamedTuple):
    """Coefficient of a term and its standard error, in the unit of z over that of the term."""

    value: float
    error: float


class Prediction(NamedTuple):
    """Predicted values and intervals in the unit of z, in the shape of the points."""

    value: Array
    low: Array
    high: Array


def parse_terms(text: str) -> tuple[Term, ...]:
    """Parse "1 + x + x*y**2" → ((0, 0), (1, 0), (1, 2)). Powers up to 9; ^ means **. Raises
    StudyError for anything but sums of products of x, y and 1, and for a repeated term."""
    terms: list[Term] = []
    for part in text.replace("^", "**").split("+"):
        term = _term("".join(part.split()), text)
        if term in terms:
            raise StudyError(f'terms "{text}": {term_name(term)} occurs twice; leave one out')
        terms.append(term)
    return tuple(terms)


def _term(part: str, text: str) -> Term:
    powers = {"x": 0, "y": 0}
    for factor in re.split(r"(?<!\*)\*(?!\*)", part):
        match = _FACTOR.fullmatch(factor)
        if match is None:
            raise StudyError(
                f'terms "{text}": cannot read "{part}"; write a sum of products of x and y without'
                f' coefficients, such as "{RATE_AND_SIZE}"'
            )
        if match["name"]:
            powers[match["name"]] += int(match["power"] or 1)
    return powers["x"], powers["y"]


def term_name(term: Term) -> str:
    """Return the name of a term: that of (1, 2) is "x*y**2"."""
    named = [
        name if power == 1 else f"{name}**{power}"
        for name, power in zip("xy", term, strict=True)
        if power
    ]
    return "*".join(named) or "1"


@dataclass(frozen=True, eq=False)
class Surface:
    """A fitted surface. n points, p terms."""

    terms: tuple[Term, ...]
    coefficients: Mapping[str, Coefficient]
    """Coefficients by name of the term, in the order given."""
    r_squared: float
    """1 - residual / total sum of squares; the total is about the mean if there is a constant
    term."""
    residual_sd: float
    """Standard deviation of points about the surface, in the unit of z."""
    residuals: Array
    """Measured minus fitted, shape (n,)."""
    _basis: Array
    """Orthonormal columns that span the design, shape (n, p)."""
    _solve: Array
    """Matrix that maps a row of the design to coordinates in the basis, shape (p, p)."""
    _coordinates: Array
    """Coordinates of z in the basis, shape (p,)."""

    def predict(self, x: ArrayLike, y: ArrayLike) -> Prediction:
        """Return the value and the 95 % prediction interval of one new measurement at (x, y). x and
        y are broadcast. Half of the interval is Student's t with n - p degrees of freedom times
        sqrt(s² + variance of the surface) (Montgomery, Peck, Vining, Introduction to Linear
        Regression Analysis, eq. 3.54)."""
        value, leverage = self._evaluate(x, y)
        student = float(stats.t.ppf(0.975, self.residuals.size - len(self.terms)))
        half = student * self.residual_sd * np.sqrt(1 + leverage)
        return Prediction(value, value - half, value + half)

    def value(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Return the surface at (x, y), which are broadcast."""
        return self._evaluate(x, y)[0]

    def extrapolates(self, x: ArrayLike, y: ArrayLike) -> NDArray[np.bool_]:
        """Return whether (x, y) lies outside the fitted points: its leverage exceeds that of every
        fitted point (hidden extrapolation; Montgomery, Peck, Vining, section 3.8)."""
        _, leverage = self._evaluate(x, y)
        inside = np.max(np.sum(self._basis * self._basis, axis=1))
        return cast(NDArray[np.bool_], leverage > inside * (1 + 1e-9))

    def _evaluate(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        """Return the surface, and its variance divided by the variance of a point (leverage)."""
        at_x, at_y = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
        rows = _design(self.terms, at_x, at_y) @ self._solve
        return rows @ self._coordinates, np.sum(rows * rows, axis=-1)

    def leave_group_out(self, groups: Sequence[Any] | NDArray[Any]) -> Array:
        """Return each point minus the surface fitted without the point's group, shape (n,).
        `groups`, length n, contains the group of each point, such as its event size. Solves (1 -
        H_gg) r_g = e_g for each group, with hat matrix H and residuals e. Raises StudyError if the
        other groups do not determine a term."""
        labels = np.asarray(groups)
        left_out = np.empty_like(self.residuals)
        for label in np.unique(labels):
            inside = labels == label
            basis = self._basis[inside]
            others = np.eye(len(basis)) - basis @ basis.T
            if np.linalg.eigvalsh(others)[0] < DEPENDENT:
                raise StudyError(
                    f"surface: without {label}, the other points do not determine all terms;"
                    " use fewer terms or more points"
                )
            left_out[inside] = np.linalg.solve(others, self.residuals[inside])
        return left_out


def fit_surface(x: Array, y: Array, z: Array, terms: str = RATE_AND_SIZE) -> Surface:
    """Fit z(x, y) by least squares over `terms`. x, y, z have shape (n,), with n larger than the
    number of terms. Columns of the design are scaled to unit length. Raises StudyError."""
    powers = parse_terms(terms)
    if z.size <= len(powers):
        raise StudyError(
            f"surface: {z.size} points are too few for {len(powers)} terms and an error; use"
            f" at least {len(powers) + 1} points or fewer terms"
        )
    design = _design(powers, x, y)
    lengths = np.linalg.norm(design, axis=0)
    if np.all(lengths > 0):
        basis, singular, turn = np.linalg.svd(design / lengths, full_matrices=False)
    if not np.all(lengths > 0) or singular[-1] <= DEPENDENT * singular[0]:
        names = " + ".join(map(term_name, powers))
        raise StudyError(
            f"surface: the points do not determine the terms {names} separately; use more values of"
            " x and of y than their highest powers, or use fewer terms"
        )
    solve = (turn.T / singular) / lengths[:, None]
    coordinates = basis.T @ z
    residuals = z - design @ (solve @ coordinates)
    squares = float(np.sum(residuals**2))
    residual_sd = float(np.sqrt(squares / (z.size - len(powers))))
    errors = residual_sd * np.sqrt(np.sum(solve * solve, axis=1))
    centre = float(np.mean(z)) if (0, 0) in powers else 0.0
    total = float(np.sum((z - centre) ** 2))
    return Surface(
        terms=powers,
        coefficients={
            term_name(term): Coefficient(float(value), float(error))
            for term, value, error in zip(powers, solve @ coordinates, errors, strict=True)
        },
        r_squared=1 - squares / total if total > 0 else 1.0,
        residual_sd=residual_sd,
        residuals=residuals,
        _basis=basis,
        _solve=solve,
        _coordinates=coordinates,
    )


def _design(terms: Sequence[Term], x: Array, y: Array) -> Array:
    """Return the design matrix, in the shape of x with a further axis for the terms."""
    return np.stack([x**in_x * y**in_y for in_x, in_y in terms], axis=-1)
