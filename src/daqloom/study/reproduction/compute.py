"""Computation of a published number: the studies of its terms, restricted to the points needed, and
the expression of their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.base import lazy
from daqloom.base.words import did_you_mean
from daqloom.scenario import ScenarioError
from daqloom.study import StudyError
from daqloom.study.file import points
from daqloom.study.file.axis import Axis, dimension_of_key, flatten
from daqloom.study.file.load import find_study, merge, quick_form, read_document, study_of_document
from daqloom.study.file.study import Study
from daqloom.study.reproduction import expression
from daqloom.study.reproduction.record import Numbers, Record, Term, Values

with lazy.imports():
    import xarray

    from daqloom.study.conclusions import agreement, fits

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

Datasets = Callable[[Study], "Dataset"]
"""Computes what a store lacks of a study, and returns its dataset."""


@dataclass(frozen=True)
class _Value:
    """Value of a term: by seed and free axes, or a single one with its interval."""

    values: DataArray
    seeds: int = 0
    interval: tuple[float, float] | None = None


def studies(path: Path, record: Record, *, quick: bool) -> Iterator[tuple[str, Term, Study]]:
    """Yield each term of a record with its name, and its study restricted to the points needed.
    Raises StudyError."""
    for name, term in record.ours.named_terms.items() if record.ours else ():
        with _place(path, name):
            study = _study(path, term, quick=quick)
        yield name, term, study


@contextmanager
def _place(path: Path, term: str) -> Iterator[None]:
    """Add the place of a term in its file to the sentences of an error."""
    try:
        yield
    except ScenarioError as error:
        where = f"{path}: ours.terms.{term}: " if term else f"{path}: ours: "
        raise StudyError(*(where + each for each in error.mistakes)) from None


def compute(path: Path, record: Record, datasets: Datasets, *, quick: bool) -> Values:
    """Return the values of a record, in its unit. Raises StudyError."""
    assert record.ours is not None
    found = {}
    for name, term, study in studies(path, record, quick=quick):
        dataset = datasets(study)
        with _place(path, name):
            found[name] = _value(term, study, dataset)
    if not record.ours.value:
        result = found[""]
    else:
        values = {name: each.values for name, each in found.items()}
        try:
            combined = expression.evaluate(record.ours.value, values, _FUNCTIONS)
        except ArithmeticError as error:
            raise StudyError(f"{path}: ours.value has no value: {error}") from None
        seeds = min((each.seeds for each in found.values() if each.seeds), default=0)
        result = _Value(xarray.DataArray(combined), seeds)
    return _statistics(record, result, str(path))


def _reduction(how: str) -> Callable[[Any], Any]:
    def over_axes(values: Any) -> Any:
        known = xarray.DataArray(values)
        return getattr(known, how)([dim for dim in known.dims if dim != "seed"])

    return over_axes


_FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "abs": abs,
    "min": _reduction("min"),
    "max": _reduction("max"),
}


def _study(path: Path, term: Term, *, quick: bool) -> Study:
    source = find_study(term.study) if term.study else path
    document = merge(read_document(source) if term.study else {}, term.tables)
    if quick:
        document = merge(quick_form(document), term.quick)
    study = study_of_document(source, document)
    by = ("analyse", "simulate") if term.factor else (term.method,)
    if missing := [method for method in by if method not in study.methods]:
        raise StudyError(f"{study.name} has no results of {missing[0]}; add it to methods")
    return replace(study, axes=_narrow_axes(study, term.at), methods=by)


def _narrow_axes(study: Study, at: Mapping[str, Any]) -> tuple[Axis, ...]:
    """Return the axes of a study, with only the steps in `at`. Raises StudyError."""
    places = flatten(at)
    mistakes, axes = [], []
    for axis in study.axes:
        key = next((key for key in places if key in (axis.name, *axis.keys)), None)
        if key is None:
            axes.append(axis)
            continue
        steps = (
            list(axis.labels)
            if key == axis.name and axis.labels
            else axis.coordinates(key, study.base)
        )
        texts = [_step_text(key, step) for step in steps]
        target = _si(key, places.pop(key))
        if target not in steps:
            hint = did_you_mean(str(target), texts, f"its steps are {', '.join(texts)}")
            mistakes.append(
                f'at: {key} = "{_step_text(key, target)}" is no step of {study.name}; {hint}'
            )
            continue
        place = steps.index(target)
        axes.append(Axis(axis.name, (axis.steps[place],), axis.labels[place : place + 1]))
    known = ", ".join(axis.name for axis in study.axes) or "none"
    mistakes += [f"at: {key} is no axis of {study.name}; its axes are {known}" for key in places]
    if mistakes:
        raise StudyError(*mistakes)
    return tuple(axes)


def _si(key: str, value: Any) -> Any:
    """Return the value of a key as a number in SI units, if it is a quantity."""
    dimension = dimension_of_key(key)
    if dimension is None or not isinstance(value, str):
        return value
    try:
        return dimension.parse(value)
    except ValueError as error:
        raise StudyError(f'at: {key} = "{value[:80]}" {error}') from None


def _step_text(key: str, step: Any) -> str:
    dimension = dimension_of_key(key)
    return dimension.format(step) if dimension and not isinstance(step, str) else str(step)


def _value(term: Term, study: Study, dataset: Dataset) -> _Value:
    if term.factor is not None:
        limit = _limit(term.factor.below, dataset, term.metric)
        [found] = agreement.agreements(dataset, term.metric or None, below=limit)
        return _Value(xarray.DataArray(found.scale.k), 0, found.scale.interval())
    if term.metric not in dataset:
        known = ", ".join(map(str, dataset.data_vars))
        hint = did_you_mean(term.metric, map(str, dataset.data_vars), f"there are {known}")
        raise StudyError(f"{study.name} has no {term.metric}; {hint}")
    if term.fit is not None:
        return _fit_value(term, dataset)
    fixed = {axis: 0 for axis in points.axes_of(dataset) if dataset.sizes[axis] == 1}
    values = dataset[term.metric]
    if term.metric in points.BOUNDARIES:
        values = values.where(dataset["boundary_status"] == "found")
    values = values.sel({"by": term.method}).isel(fixed, drop=True)
    seeds = len(study.seeds) if study.is_seeded(term.method) else 0
    return _Value(values.drop_vars("by"), seeds)


def _fit_value(term: Term, dataset: Dataset) -> _Value:
    assert term.fit is not None
    limit = _limit(term.fit.below, dataset, term.metric)
    [found] = fits.fits(dataset, term.metric, terms=term.fit.terms, below=limit)
    if term.fit.result == "r_squared":
        return _Value(xarray.DataArray(found.surface.r_squared))
    place = {key: _si(key, value) for key, value in flatten(term.fit.at).items()}
    there = found.predict(place)
    return _Value(xarray.DataArray(there.value), 0, (there.low, there.high))


def _limit(text: str, dataset: Dataset, metric: str) -> float:
    return points.limit(dataset, metric or None, text, "below =") if text else float("inf")


def _statistics(record: Record, result: _Value, where: str) -> Values:
    """Return mean and interval over seeds, by the steps of the free axis. Raises StudyError."""
    values = result.values / record.scale
    if result.interval is not None:
        low, high = (each / record.scale for each in result.interval)
        return Values(value=float(values), low=low, high=high)
    free = [str(dim) for dim in values.dims if dim != "seed"]
    if len(free) > 1:
        raise StudyError(f"{where}: ours: {' and '.join(free)} are free; give all but one in at")
    mean = values.mean("seed", skipna=False) if "seed" in values.dims else values
    if not free and not np.isfinite(float(mean)):
        raise StudyError(
            f"{where}: ours has no value: a run gave none, or a search found no boundary"
        )
    found = Values(value=_numbers(mean, free), seeds=result.seeds)
    if result.seeds < 2:
        return found
    ends = {"low": values.min("seed"), "high": values.max("seed")}
    return found.model_copy(update={name: _numbers(end, free) for name, end in ends.items()})


def _numbers(values: DataArray, free: list[str]) -> Numbers:
    if not free:
        return float(values)
    [axis] = free
    steps = [_step_text(axis, step) for step in values[axis].values.tolist()]
    found = dict(zip(steps, map(float, values.values), strict=True))
    return {step: value for step, value in found.items() if np.isfinite(value)}
