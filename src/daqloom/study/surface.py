"""A least-squares surface z(x, y) over named polynomial terms, with errors and intervals.

The paper on ATLAS buffers (section 4, fig. 6) extrapolates the minimum buffer over event rate x and
event size y by "a first order polynomial for a given event size and a second order one for a given
event rate", and prints no coefficients. Taken as it is said, that is every product of {1, x} and
{1, y, y²}. The last, x·y², is needed: with N = S·f/O + 1 the paper's formula is
B = (S·f/O + 1)·(1/2 − O/I)·S, whose terms are y and x·y².
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daqloom.study import StudyError

Array = NDArray[np.float64]
Term = tuple[int, int]
"""A term of the surface: powers of x and of y."""

RATE_AND_SIZE = "1 + x + y + x*y + y**2 + x*y**2"
"""Order 1 in the rate x and order 2 in the size y."""

DEPENDENT = 1e-10
"""Smallest over largest singular value below which terms cannot be told apart."""

_FACTOR = re.compile(r"(?P<name>[xy])(?:\*\*(?P<power>[1-9]))?|1")


class Coefficient(NamedTuple):
    """Of one term: its value and standard error, in units of z over those of the term."""

    value: float
    error: float


class Prediction(NamedTuple):
    """Value and interval, in units of z, each of the shape of the points asked for."""

    value: Array
    low: Array
    high: Array


def parse_terms(text: str) -> tuple[Term, ...]:
    """ "1 + x + x*y**2" → ((0, 0), (1, 0), (1, 2)). Powers up to 9; ^ and ** mean the same. Raises
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
    """A fitted surface. n points, p terms; weights have a mean of 1."""

    terms: tuple[Term, ...]
    coefficients: Mapping[str, Coefficient]
    """By the name of the term, in the order given."""
    r_squared: float
    """1 - residual / total sum of squares; the total is about the mean if there is a term 1."""
    residual_sd: float
    """Standard deviation of a point of weight 1 about the surface, in units of z."""
    residuals: Array
    """Measured minus fitted, shape (n,)."""
    _weights: Array
    _basis: Array
    """Orthonormal columns that span the weighted design, shape (n, p)."""
    _solve: Array
    """From a row of the design to its coordinates in the basis, shape (p, p)."""
    _coordinates: Array
    """Of z in the basis, shape (p,)."""

    @property
    def degrees_of_freedom(self) -> int:
        """Points less terms."""
        return self.residuals.size - len(self.terms)

    def predict(self, x: ArrayLike, y: ArrayLike, level: float = 0.95) -> Prediction:
        """Where one new measurement of weight 1 at (x, y) falls with probability `level`.

        x and y broadcast. Student's t with n - p degrees of freedom times
        sqrt(s² + variance of the surface) (Montgomery, Peck, Vining, Introduction to Linear
        Regression Analysis, eq. 3.54).
        """
        return self._interval(x, y, level, scatter=1.0)

    def mean(self, x: ArrayLike, y: ArrayLike, level: float = 0.95) -> Prediction:
        """Where the surface itself lies at (x, y): narrower than `predict` (eq. 3.49)."""
        return self._interval(x, y, level, scatter=0.0)

    def extrapolates(self, x: ArrayLike, y: ArrayLike) -> NDArray[np.bool_]:
        """Whether (x, y) lies outside what was fitted: its leverage exceeds that of every point.
        Hidden extrapolation, Montgomery, Peck, Vining, section 3.8."""
        _, leverage = self._at(x, y)
        inside = np.max(self._leverage / self._weights)
        return leverage > inside * (1 + 1e-9)

    def _interval(self, x: ArrayLike, y: ArrayLike, level: float, scatter: float) -> Prediction:
        from scipy.stats import t

        if not 0 < level < 1:
            raise StudyError(
                f"surface: a level of {level:g} is not a probability; use for example 0.95"
            )
        value, leverage = self._at(x, y)
        student = float(t.ppf((1 + level) / 2, self.degrees_of_freedom))
        half = student * self.residual_sd * np.sqrt(scatter + leverage)
        return Prediction(value, value - half, value + half)

    def _at(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        """The surface and its variance over that of a point of weight 1."""
        at_x, at_y = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
        rows = _design(self.terms, at_x, at_y) @ self._solve
        return rows @ self._coordinates, np.sum(rows * rows, axis=-1)

    @property
    def _leverage(self) -> Array:
        """Diagonal of the hat matrix, shape (n,)."""
        return cast(Array, np.sum(self._basis * self._basis, axis=1))

    def leave_one_out(self) -> Array:
        """Each point less the surface fitted to all others, shape (n,), without refitting. e / (1 -
        h) with h the diagonal of the hat matrix (Allen 1974). Raises StudyError if a term rests on
        one point alone."""
        return self.leave_group_out(range(self.residuals.size))

    @property
    def press(self) -> float:
        """Weighted sum of squares of the leave-one-out residuals, in units of z²."""
        return float(np.sum(self._weights * self.leave_one_out() ** 2))

    def leave_group_out(self, groups: Sequence[Any] | NDArray[Any]) -> Array:
        """Each point less the surface fitted without its group, shape (n,). `groups`, length n,
        names the group of each point, such as its event size. Solves (1 - H_gg) r_g = e_g per
        group. Raises StudyError if the other groups leave a term open."""
        labels = np.asarray(groups)
        if labels.shape != self.residuals.shape:
            raise StudyError(
                f"surface: {labels.shape} groups for {self.residuals.size} points; name one each"
            )
        left_out = np.empty_like(self.residuals)
        root = np.sqrt(self._weights)
        for label in np.unique(labels):
            of = labels == label
            basis = self._basis[of]
            others = np.eye(len(basis)) - basis @ basis.T
            if np.linalg.eigvalsh(others)[0] < DEPENDENT:
                raise StudyError(
                    f"surface: without {label}, the other points do not determine all terms;"
                    " use fewer terms or more points"
                )
            left_out[of] = np.linalg.solve(others, (root * self.residuals)[of]) / root[of]
        return left_out


def fit_surface(
    x: ArrayLike,
    y: ArrayLike,
    z: ArrayLike,
    terms: str = RATE_AND_SIZE,
    weights: ArrayLike | None = None,
) -> Surface:
    """Fits z(x, y) by least squares over `terms`; x, y, z have shape (n,), n above the terms.
    `weights`, shape (n,), are 1/variance up to a factor, which the scatter about the surface sets.
    The columns are scaled to unit length within. Raises StudyError."""
    powers = parse_terms(terms)
    at_x, at_y, values = (_column(name, a) for name, a in (("x", x), ("y", y), ("z", z)))
    weight = np.ones(values.size) if weights is None else _column("weights", weights)
    if not at_x.size == at_y.size == values.size == weight.size:
        raise StudyError("surface: x, y, z and weights differ in length; give one of each a point")
    if values.size <= len(powers):
        raise StudyError(
            f"surface: {values.size} points are too few for {len(powers)} terms and an error; use"
            f" at least {len(powers) + 1} points or fewer terms"
        )
    if np.any(weight <= 0):
        raise StudyError("surface: a weight is not above zero; leave such points out")
    return _fit(powers, at_x, at_y, values, weight / weight.mean())


def _column(name: str, values: ArrayLike) -> Array:
    column = np.asarray(values, dtype=np.float64)
    if column.ndim != 1 or not np.all(np.isfinite(column)):
        raise StudyError(f"surface: {name} is not a series of finite numbers; leave gaps out")
    return column


def _design(terms: Sequence[Term], x: Array, y: Array) -> Array:
    """Shape of x plus one axis of terms."""
    return np.stack([x**in_x * y**in_y for in_x, in_y in terms], axis=-1)


def _fit(terms: tuple[Term, ...], x: Array, y: Array, z: Array, weights: Array) -> Surface:
    root = np.sqrt(weights)
    design = _design(terms, x, y)
    weighted = design * root[:, None]
    lengths = np.linalg.norm(weighted, axis=0)
    _refuse_dependent(terms, weighted, lengths)
    basis, singular, turn = np.linalg.svd(weighted / lengths, full_matrices=False)
    solve = (turn.T / singular) / lengths[:, None]
    coordinates = basis.T @ (root * z)
    residuals = z - design @ (solve @ coordinates)
    squares = float(np.sum(weights * residuals**2))
    residual_sd = float(np.sqrt(squares / (z.size - len(terms))))
    errors = residual_sd * np.sqrt(np.sum(solve * solve, axis=1))
    centre = float(np.average(z, weights=weights)) if (0, 0) in terms else 0.0
    total = float(np.sum(weights * (z - centre) ** 2))
    return Surface(
        terms=terms,
        coefficients={
            term_name(term): Coefficient(float(value), float(error))
            for term, value, error in zip(terms, solve @ coordinates, errors, strict=True)
        },
        r_squared=1 - squares / total if total > 0 else 1.0,
        residual_sd=residual_sd,
        residuals=residuals,
        _weights=weights,
        _basis=basis,
        _solve=solve,
        _coordinates=coordinates,
    )


def _refuse_dependent(terms: Sequence[Term], weighted: Array, lengths: Array) -> None:
    if np.all(lengths > 0):
        singular = np.linalg.svd(weighted / lengths, compute_uv=False)
        if singular[-1] > DEPENDENT * singular[0]:
            return
    names = " + ".join(term_name(term) for term in terms)
    raise StudyError(
        f"surface: the points do not determine the terms {names} separately; use more values of x "
        "and of y than their highest powers, or use fewer terms"
    )
