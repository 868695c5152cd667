"""Two methods over all points of a study: one factor between them, and where they part."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.study import StudyError
from daqloom.study.gev import Array
from daqloom.study.points import ABOVE, Answer, answers, axes_of, load
from daqloom.study.scale import Scale, Verdict, fit_scale, verdicts

if TYPE_CHECKING:
    from xarray import Dataset

TOLERANCE = 0.1
"""Relative distance from the factor within which two methods agree."""

METHOD_NAMES = {
    "analyse": "the formula",
    "simulate": "the simulation",
    "measure": "the measurement",
}


@dataclass(frozen=True, eq=False)
class Agreement:
    """How the second method compares with the first: second ≈ k · first."""

    methods: tuple[str, str]
    scale: Scale
    at: list[dict[str, Any]]
    """The steps of each point that both methods give, n of them."""
    first: Array
    second: Array
    """Means over seeds in the variable's unit, shape (n,)."""
    load: Array
    """Offered rate over what the system can carry, shape (n,); NaN where it is not known."""
    verdicts: list[Verdict | None]
    """None where the load is not known."""
    tolerance: float
    left_out: Counter[str]

    @property
    def ratio(self) -> Array:
        """second / first, shape (n,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.second / self.first

    @property
    def parting(self) -> int:
        """Points whose ratio is farther from k than the tolerance."""
        return sum(verdict.parts for verdict in self.verdicts if verdict)


def agreements(
    dataset: Dataset,
    variable: str | None = None,
    *,
    tolerance: float = TOLERANCE,
    below: float = math.inf,
) -> list[Agreement]:
    """Every pair of methods that give `variable`, in the order of the study.

    Left out are saturated points, boundaries that a search did not find, and points at which one
    of the methods gives more than `below`, in the variable's unit. The factor weighs all
    points alike in the variable's unit, so that large values decide; a verdict says of each point
    whether its ratio is within `tolerance` of the factor, and what its load makes likely.
    Raises StudyError where no two methods share two points.
    """
    pairs = itertools.combinations(answers(dataset, variable), 2)
    found = [
        pair for one, other in pairs if (pair := _agreement(dataset, one, other, tolerance, below))
    ]
    if not found:
        raise StudyError(
            "no two methods of this study have two points in common; give both in methods, such as "
            '["analyse", "simulate"]'
        )
    return found


def _agreement(
    dataset: Dataset, one: Answer, other: Answer, tolerance: float, below: float
) -> Agreement | None:
    axes = axes_of(dataset)
    both = np.isfinite(one.values.values) & np.isfinite(other.values.values)
    above = both & (np.fmax(one.values.values, other.values.values) > below)
    both &= ~above
    if both.sum() < 2:
        return None
    places = np.argwhere(both)
    at = [
        {axis: dataset[axis].values[step].item() for axis, step in zip(axes, place, strict=True)}
        for place in places
    ]
    first, second = one.values.values[both], other.values.values[both]
    offered = load(dataset)
    loads = np.full(first.shape, np.nan) if offered is None else offered.values[both]
    scale = fit_scale(first, second)
    names = METHOD_NAMES.get(one.method, one.method), METHOD_NAMES.get(other.method, other.method)
    known = np.isfinite(loads)
    told = iter(
        verdicts(first[known], second[known], loads[known], tolerance, factor=scale.k, names=names)
    )
    return Agreement(
        methods=(one.method, other.method),
        scale=scale,
        at=at,
        first=first,
        second=second,
        load=loads,
        verdicts=[next(told) if is_known else None for is_known in known],
        tolerance=tolerance,
        left_out=+((one.left_out | other.left_out) + Counter({ABOVE: int(above.sum())})),
    )
