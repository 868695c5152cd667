"""Return levels of a study: buffer occupancy that a point's peak exceeds once an hour, day or fill.

For a switch with shared memory, the peak is the buffer that it would have needed, including cells
and thresholds. For other switches the peak is the occupancy, in bytes, of an ideal shared buffer.

The runs with different seeds are pooled. A run is divided into equal time slices, the blocks of the
fit. Neighbouring slices are merged if shorter blocks are not independent.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.base.words import TIMES_S
from daqloom.simulate.slices import SLICES
from daqloom.study import StudyError
from daqloom.study.file.points import (
    BUFFERS,
    axes_of,
    drifting,
    saturation_flags,
    step_values,
    steps,
)
from daqloom.study.run.dataset import COURSE
from daqloom.study.statistics.gev import Array
from daqloom.study.statistics.return_levels import (
    LEAST_BLOCKS,
    LEAST_REGULAR,
    GevFit,
    Level,
    block_maxima,
    fit_gev,
    return_level,
    too_short_blocks,
)

if TYPE_CHECKING:
    from xarray import Dataset

FILL_S = 36_000.0
"""Default length of a fill of the LHC (s): 10 h of collisions."""

_TIME = re.compile(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(s|min|h|d)\s*")


@dataclass(frozen=True)
class Period:
    """Return period, in which a level is exceeded once. `often` is text such as "once an hour"."""

    name: str
    length_s: float
    often: str


PERIODS = {
    each.name: each
    for each in (
        Period("second", 1.0, "once a second"),
        Period("minute", 60.0, "once a minute"),
        Period("hour", 3600.0, "once an hour"),
        Period("day", 86400.0, "once a day"),
        Period("week", 604800.0, "once a week"),
        Period("year", 365.25 * 86400.0, "once a year"),
    )
}


def period(text: str, fill_s: float = FILL_S) -> Period:
    """Parse "hour", "day", "fill" or another of PERIODS, or a time such as "8 h". Raises
    StudyError."""
    if text == "fill":
        return Period(text, fill_s, f"once a fill of {fill_s / 3600:g} h")
    if text in PERIODS:
        return PERIODS[text]
    return Period(text.strip(), seconds(text), f"once in {text.strip()}")


def seconds(text: str) -> float:
    """Parse a time in s, min, h or d: "8 h" → 28800.0. Raises StudyError."""
    match = _TIME.fullmatch(text[:64])
    if match is None or not float(match[1]) > 0:
        raise StudyError(
            f'"{text[:64]}" is not a period; expected a time such as "8 h" (s, min, h, d), or one '
            f"of fill, {', '.join(PERIODS)}"
        )
    return float(match[1]) * TIMES_S[match[2]]


USUAL = tuple(map(period, ("hour", "fill", "day")))


@dataclass(frozen=True, eq=False)
class PointLevels:
    """Fit and return levels of one point, in the metric's unit. `at`: values of the axes."""

    method: str
    at: dict[str, Any]
    metric: str
    """Buffer needed if the point's switch provides it, else peak of an ideal buffer."""
    fit: GevFit
    block_s: float
    observed_s: float
    """Time observed, all seeds together (s)."""
    levels: tuple[Level, ...]
    """One for each period, in their order."""

    @property
    def limit(self) -> float | None:
        """Upper limit at which the maxima saturate, else None. Peaks at such a limit are caused by
        the system, not by chance, and do not grow in longer runs."""
        return _limit(self.fit)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of the fit and of all levels, each once."""
        of_levels = itertools.chain.from_iterable(level.warnings for level in self.levels)
        return tuple(dict.fromkeys((*self.fit.warnings, *of_levels)))


def is_needed(metric: str) -> bool:
    """Return whether a metric is the buffer that a switch needs, not the peak of an ideal one."""
    return any(metric == needed for needed, _ in BUFFERS)


def _limit(fit: GevFit) -> float | None:
    if fit.scale == 0:
        return fit.location
    return fit.location - fit.scale / fit.shape if fit.shape < LEAST_REGULAR else None


@dataclass(frozen=True)
class LeftOut:
    """A point without levels, and the reason."""

    method: str
    at: dict[str, Any]
    reason: str


@dataclass(frozen=True)
class Levels:
    """Return levels of the chosen points of a study."""

    periods: tuple[Period, ...]
    points: list[PointLevels]
    left_out: list[LeftOut]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics that the points use: buffers needed first, then peaks."""
        found = {one.metric for one in self.points}
        return tuple(
            metric for both in zip(*BUFFERS, strict=True) for metric in both if metric in found
        )

    @property
    def has_both(self) -> bool:
        """Whether some points have the buffer needed, and others the peak of an ideal one."""
        return len({is_needed(metric) for metric in self.metrics}) > 1


def levels(
    dataset: Dataset,
    periods: Sequence[Period] = USUAL,
    *,
    at: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] = (),
    replicas: int = 0,
    progress: Callable[[float], None] = lambda _: None,
) -> Levels:
    """Return for every point the level that the peak of the top-of-rack switch, or of the only
    switch, exceeds once in each period. The peak is the buffer needed if the point's switch
    provides it, else the occupancy.

    `dataset` comes from `open_study(..., course=True)`. `at` selects steps of axes, such as
    `{"event.rate": [12e3]}`, or is a list of such selections, whose points are united. A point is
    left out and listed if its runs are saturated, still drift, have dropped packets (which limits
    the peaks) or have no time series. See `fit_gev` for `replicas`. Raises StudyError if no point
    has a time series, and for a period not longer than a block.
    """
    _check_course(dataset)
    axes = axes_of(dataset)
    choices = [at] if isinstance(at, Mapping) else list(at) or [{}]
    indices: dict[tuple[int, ...], None] = {}
    for choice in choices:
        places = [steps(dataset, axis, choice.get(axis)) for axis in axes]
        indices |= dict.fromkeys(itertools.product(*places))
    result = Levels(tuple(periods), [], [])
    held = [dataset[each] for each in _peaks(dataset)]
    methods = [
        str(m)
        for m in dataset["by"].values
        if any(bool(each.sel({"by": m}).notnull().any()) for each in held)
    ]
    chosen = [(method, index) for method in methods for index in sorted(indices)]
    for count, (method, index) in enumerate(chosen):
        place = dict(zip(axes, index, strict=True))
        names = step_values(dataset, place.items())
        reason = _level_defect(dataset, method, place)
        if reason:
            result.left_out.append(LeftOut(method, names, reason))
        else:
            metric, series = _course(dataset, method, place)
            run_s = dataset["run_s"].sel({"by": method}).isel(place).values
            known = np.isfinite(series).all(axis=1)
            fit, block_s = fit_blocks(series[known], run_s[known], replicas)
            of_periods = tuple(return_level(fit, block_s, each.length_s) for each in periods)
            observed_s = float(run_s[known].sum())
            result.points.append(
                PointLevels(method, names, metric, fit, block_s, observed_s, of_periods)
            )
        progress((count + 1) / len(chosen))
    return result


def _check_course(dataset: Dataset) -> None:
    """Raise StudyError if no run has peaks over time, or if the study is a search."""
    if "boundary" in dataset:
        raise StudyError(
            "return levels require runs at fixed points, and this study searches "
            f"{dataset['boundary'].attrs.get('key', 'a key')}; give its axes one value each instead"
        )
    if not any(bool(dataset[each].notnull().any()) for each in _peaks(dataset)):
        raise StudyError(
            "return levels require the peak occupancy of a switch over time, which only simulated "
            "pull building over TCP records in a rack or on one switch (network.shape rack or "
            "one-switch), and there is none; give such a shape, or compute the study with "
            "`daqloom study run FILE` if that is not yet done (in Python open it with course=True)"
        )


def _course(dataset: Dataset, method: str, place: Mapping[str, int]) -> tuple[str, Array]:
    """Return the metric of a point, and its peak in each slice, shape (seeds, slices)."""
    for names in BUFFERS:
        needed, held = (
            dataset[COURSE + name].sel({"by": method}).isel(place).values
            if COURSE + name in dataset
            else np.empty((0, 0))
            for name in names
        )
        if np.isfinite(held).any():
            break
    has_needed = needed.size and not (np.isfinite(held) & ~np.isfinite(needed)).any()
    return (names[0], needed) if has_needed else (names[1], held)


def _peaks(dataset: Dataset) -> list[str]:
    """Return the names of the peaks over time that a study has."""
    return [COURSE + peak for _, peak in BUFFERS if COURSE + peak in dataset]


def _level_defect(dataset: Dataset, method: str, place: Mapping[str, int]) -> str:
    """Return the reason why a point has no return level, "" if it has one."""
    if bool(saturation_flags(dataset).isel(place)):
        return "saturated"
    if bool(drifting(dataset, method).isel(place)):
        return "drifting"
    dropped = dataset.get("packets_dropped")
    if dropped is not None and bool((dropped.sel({"by": method}).isel(place) > 0).any()):
        return "dropped packets"
    held = (dataset[each].sel({"by": method}).isel(place) for each in _peaks(dataset))
    is_known = any(bool(each.notnull().all("slice").any()) for each in held)
    return "" if is_known else "not computed"


def fit_blocks(series: Array, run_s: Array, replicas: int = 0) -> tuple[GevFit, float]:
    """Return the fit with the shortest blocks that are long enough, and their length (s). `series`,
    shape (seeds, slices), contains maxima of equal time slices of runs with durations `run_s`,
    shape (seeds,). At least LEAST_BLOCKS blocks remain; if even the longest blocks are too short,
    the fit has a warning. For runs of different duration, blocks have nearly equal length, and the
    returned length is the mean."""
    fit, block_s = None, math.nan
    for maxima, length_s in _blocks(series, run_s):
        fit, block_s = fit_gev(maxima, replicas), length_s
        # Longer blocks saturate more.
        if _limit(fit) is not None or not too_short_blocks(fit):
            break
    assert fit is not None  # 80 slices suffice for one seed
    return fit, block_s


def _blocks(series: Array, run_s: Array) -> Iterator[tuple[Array, float]]:
    """Yield (maxima of blocks from all seeds, mean block length), with increasing block length."""
    slice_s = run_s / SLICES
    for merged in (n for n in range(1, SLICES + 1) if SLICES % n == 0):
        sizes = np.maximum(1, np.rint(merged * slice_s.max() / slice_s)).astype(int)
        counts = SLICES // sizes
        if counts.sum() < LEAST_BLOCKS:
            return
        parts = [block_maxima(run, int(n)) for run, n in zip(series, counts, strict=True)]
        yield np.concatenate(parts), float((sizes * slice_s * counts).sum() / counts.sum())
