"""Least-squares surfaces fitted to a study: one for each method, over event rate and size."""

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
"""Named polynomials; x is the event rate, y the event size."""


@dataclass(frozen=True)
class Prediction:
    """Value of the surface at a place, with 95 % prediction interval, in the variable's unit."""

    at: dict[str, float]
    value: float
    low: float
    high: float
    extrapolated: bool
    """Whether the place is outside the region of the fitted points."""
    known: float | None
    """Value that the method gave at this place, fitted or not; None without a value."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Fitted surface of one method. `held` has the fixed values of axes other than x and y."""

    method: str
    variable: str
    axes: tuple[str, str]
    held: dict[str, Any]
    surface: Surface
    x: Array
    y: Array
    z: Array
    """Fitted points, shape (n,) each."""
    table: Array
    """Values of the method by steps of x and y; NaN where the value was left out."""
    steps: tuple[Array, Array]
    left_out: Counter[str]
    drifting: int
    """Number of fitted points with runs that had not reached equilibrium."""

    @property
    def leave_one_out(self) -> float | None:
        """Root mean square of the cross-validation errors: each point minus the surface fitted to
        all other points. None if a term is determined by one point alone."""
        return self._left_out(np.arange(self.z.size))

    def leave_step_out(self, axis: int) -> float | None:
        """Return the root mean square of the cross-validation errors if all points with one value
        of x (`axis` 0) or y (1) are left out at a time. None if they determine a term alone."""
        return self._left_out((self.x, self.y)[axis])

    def _left_out(self, groups: Array | NDArray[np.int_]) -> float | None:
        try:
            return float(np.sqrt(np.mean(self.surface.leave_group_out(groups) ** 2)))
        except StudyError:
            return None

    def predict(self, at: Mapping[str, float]) -> Prediction:
        """Predict a new point at `at`, which maps axis to SI number. Raises StudyError."""
        lacking = [axis for axis in self.axes if axis not in at]
        if lacking:
            raise StudyError(f"the surface runs over {' and '.join(self.axes)}; give {lacking[0]}")
        x, y = (float(at[axis]) for axis in self.axes)
        found = self.surface.predict(x, y)
        place = [np.isclose(step, value) for step, value in zip(self.steps, (x, y), strict=True)]
        known = self.table[np.ix_(*place)].ravel()
        return Prediction(
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
    """Fit a surface for each method that provides `variable` and each step of the other axes.

    The surface depends on event rate (x) and event size (y), or else on the first two numeric axes.
    The points are means over seeds. `terms` is a name in POLYNOMIALS or a sum such as "1 + x +
    x*y". Left out are saturated points, boundaries that a search did not find, and points above
    `below` (in the variable's unit), such as the buffer size of a switch in a laboratory. Raises
    StudyError without two numeric axes, and if the points do not determine the terms.
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
    steps = tuple(dataset[axis].values.astype(np.float64) for axis in axes)
    for means in points.means_by_method(dataset, variable):
        unsettled = points.drifting(dataset, means.method)
        for index in itertools.product(*(range(dataset.sizes[axis]) for axis in others)):
            held = dict(zip(others, index, strict=True))
            table = means.values.isel(held).transpose(*axes).values
            if not np.isfinite(table).any():
                continue
            late = unsettled.isel(held).transpose(*axes).values
            names = points.step_values(dataset, held.items())
            found.append(_fit(means, (axes, steps), names, table, late, terms, below))
    if not found:
        raise StudyError("no point of this study can be fitted: all are saturated or not computed")
    return found


def fitted_axes(dataset: Dataset) -> tuple[str, str] | None:
    """Return event rate and size if both are axes, else the first two numeric axes, or None."""
    axes = [
        a for a in points.axes_of(dataset) if points.is_numeric(dataset, a) and dataset.sizes[a] > 1
    ]
    return points.EVENT_KEYS if set(points.EVENT_KEYS) <= set(axes) else points.plane_of(dataset)


def _fit(
    means: points.MethodMeans,
    along: tuple[tuple[str, str], tuple[Array, ...]],
    held: dict[str, Any],
    table: Array,
    unsettled: Any,
    terms: str,
    below: float | None,
) -> Fit:
    axes, steps = along
    kept = np.isfinite(table)
    above = kept & (table > (np.inf if below is None else below))
    kept &= ~above
    left_out = means.left_out + Counter({points.ABOVE: int(above.sum())})
    x, y = np.meshgrid(*steps, indexing="ij")
    try:
        surface = fit_surface(x[kept], y[kept], table[kept], terms)
    except StudyError as error:
        raise StudyError(f"{means.method}: {error}") from None
    return Fit(
        method=means.method,
        variable=means.variable,
        axes=axes,
        held=held,
        surface=surface,
        x=x[kept],
        y=y[kept],
        z=table[kept],
        table=table,
        steps=(steps[0], steps[1]),
        left_out=left_out,
        drifting=int((unsettled & kept).sum()),
    )
