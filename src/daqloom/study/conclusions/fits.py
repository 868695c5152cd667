"""Least-squares surfaces of a study: one for each method, over event rate and size."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daqloom.study import StudyError
from daqloom.study.file import points
from daqloom.study.statistics.gev import Array
from daqloom.study.statistics.surface import RATE_AND_SIZE, Surface, fit_surface

if TYPE_CHECKING:
    from xarray import Dataset

POLYNOMIALS = {
    "rate-and-size": RATE_AND_SIZE,
    "plane": "1 + x + y",
    "bilinear": "1 + x + y + x*y",
    "quadratic": "1 + x + y + x**2 + x*y + y**2",
}
"""Terms by name; x is the event rate, y the event size."""


@dataclass(frozen=True)
class Predicted:
    """The surface at one place, with the interval (95 %) of a new point; in the variable's unit."""

    at: dict[str, float]
    value: float
    low: float
    high: float
    extrapolated: bool
    """Whether the place lies outside of all that was fitted."""
    known: float | None
    """What the method itself gave there, fitted or not; None where it was not asked."""


@dataclass(frozen=True, eq=False)
class Fit:
    """The surface of one method. `held` are the steps of the axes besides x and y."""

    method: str
    variable: str
    axes: tuple[str, str]
    held: dict[str, Any]
    surface: Surface
    x: Array
    y: Array
    z: Array
    """What was fitted, shape (n,) each."""
    table: Array
    """All values that can be trusted, fitted or not: by the steps of x and y, else NaN."""
    steps: tuple[Array, Array]
    left_out: Counter[str]
    drifting: int
    """Fitted points whose runs had not settled."""

    @property
    def leave_one_out(self) -> float | None:
        """Root mean square of each point less the surface fitted to all others. None where a term
        rests on one point alone."""
        return self._left_out(np.arange(self.z.size))

    def leave_step_out(self, axis: int) -> float | None:
        """The same with all points of a step of x (0) or y (1) left out at a time."""
        return self._left_out((self.x, self.y)[axis])

    def _left_out(self, groups: Array | NDArray[np.int_]) -> float | None:
        try:
            return _rms(self.surface.leave_group_out(groups))
        except StudyError:
            return None

    def predict(self, at: Mapping[str, float]) -> Predicted:
        """What a new point gives at `at`, SI numbers by axis. Raises StudyError."""
        lacking = [axis for axis in self.axes if axis not in at]
        if lacking:
            raise StudyError(f"the surface runs over {' and '.join(self.axes)}; give {lacking[0]}")
        x, y = (float(at[axis]) for axis in self.axes)
        found = self.surface.predict(x, y)
        place = [np.isclose(step, value) for step, value in zip(self.steps, (x, y), strict=True)]
        known = self.table[np.ix_(*place)].ravel()
        return Predicted(
            at=dict(zip(self.axes, (x, y), strict=True)),
            value=float(found.value),
            low=float(found.low),
            high=float(found.high),
            extrapolated=bool(self.surface.extrapolates(x, y)),
            known=float(known[0]) if known.size and np.isfinite(known[0]) else None,
        )


def fits(
    dataset: Dataset,
    variable: str | None = None,
    *,
    terms: str = RATE_AND_SIZE,
    below: float | None = None,
) -> list[Fit]:
    """A surface for each method that gives `variable`, and each combination of further axes.

    The surface runs over event rate (x) and event size (y), or over the first two axes of numbers;
    its points are means over seeds. `terms` is one of POLYNOMIALS or a sum such as "1 + x + x*y".
    Left out are saturated points, boundaries that a search did not find, and with `below` (in the
    variable's unit) what is above it, as where a switch in the laboratory cannot hold more.
    Raises StudyError where there are no two axes, and where points do not determine the terms.
    """
    axes = fitted_axes(dataset)
    if axes is None:
        raise StudyError(
            "a surface requires two numeric axes with at least two steps each, such as event.rate "
            "and event.size; add them to [grid]"
        )
    terms = POLYNOMIALS.get(terms, terms)
    others = [axis for axis in points.axes_of(dataset) if axis not in axes]
    found = []
    for answer in points.answers(dataset, variable):
        unsettled = points.drifting(dataset, answer.method)
        for index in itertools.product(*(range(dataset.sizes[axis]) for axis in others)):
            held = dict(zip(others, index, strict=True))
            table = answer.values.isel(held).transpose(*axes).values
            if not np.isfinite(table).any():
                continue
            names = {axis: dataset[axis].values[step].item() for axis, step in held.items()}
            late = unsettled.isel(held).transpose(*axes).values
            steps = tuple(dataset[axis].values.astype(np.float64) for axis in axes)
            found.append(_fit(answer, (axes, steps), names, table, late, terms, below))
    if not found:
        raise StudyError("no point of this study can be fitted: all are saturated or not computed")
    return found


def fitted_axes(dataset: Dataset) -> tuple[str, str] | None:
    """Event rate and size where both are axes, else the first two axes of numbers, if any."""
    axes = [
        a for a in points.axes_of(dataset) if points.is_numeric(dataset, a) and dataset.sizes[a] > 1
    ]
    return points.EVENT_KEYS if set(points.EVENT_KEYS) <= set(axes) else points.plane_of(dataset)


def _fit(
    answer: points.Answer,
    along: tuple[tuple[str, str], tuple[Array, ...]],
    held: dict[str, Any],
    table: Array,
    unsettled: Any,
    terms: str,
    below: float | None,
) -> Fit:
    axes, steps = along
    kept = np.isfinite(table)
    left_out = Counter(answer.left_out)
    if below is not None:
        above = kept & (table > below)
        left_out[points.ABOVE] = int(above.sum())
        kept &= ~above
    x, y = np.meshgrid(*steps, indexing="ij")
    try:
        surface = fit_surface(x[kept], y[kept], table[kept], terms)
    except StudyError as error:
        raise StudyError(f"{answer.method}: {error}") from None
    return Fit(
        method=answer.method,
        variable=answer.variable,
        axes=axes,
        held=held,
        surface=surface,
        x=x[kept],
        y=y[kept],
        z=table[kept],
        table=table,
        steps=(steps[0], steps[1]),
        left_out=+left_out,
        drifting=int((unsettled & kept).sum()),
    )


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))
