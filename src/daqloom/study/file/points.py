"""Access to a study's dataset: axes, methods, variables, and the values of valid points."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from daqloom.base import lazy
from daqloom.results.metrics import cost_hint
from daqloom.scenario.quantities import FREQUENCY, TIME, Dimension
from daqloom.scenario.quantities import RATE as BIT_RATE
from daqloom.scenario.quantities import SIZE as BYTES
from daqloom.study import StudyError

with lazy.imports():
    import xarray

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

PEAK, BOUND = "buffer_peak_bytes.tor", "event_rate_bound_hz"
NEEDED = "buffer_needed_bytes.tor"
BUFFERS = ((NEEDED, PEAK), ("buffer_needed_bytes.leaf", "buffer_peak_bytes.leaf"))
"""Buffer needed and peak of an ideal one, of the top-of-rack switch and of a single switch."""
RATE, SIZE = "event.rate", "event.size"
EVENT_KEYS = (RATE, SIZE)
USUAL = ("boundary", PEAK, "event_rate_hz")
"""Default variables; the first one that a study has is shown."""
BOUNDARIES = ("boundary", "boundary_shared")
"""Variables that contain the results of searches."""
ABOVE = "above the limit"
"""Reason for leaving out a point with a value above the limit."""
COUNTERPARTS = {"network.switch.tor.buffer": PEAK, RATE: BOUND}
"""For a searched key, the corresponding variable of methods without a search."""
UNBOUNDED = {
    "below": "below the bounds",
    "above": "above the bounds",
    "never": "never satisfied",
    "reversed": "reversed",
}
"""Reasons for leaving out a point whose search found no boundary, by status."""
LINKS = ("link_utilisation.access.down", "link_utilisation.uplink.down")
NO_AXES = ("by", "seed", "slice")
"""Dimensions of a dataset that are not axes of the study."""


def attribute(dataset: Dataset, name: str, default: Any) -> Any:
    """Return the list or table in an attribute, or `default`. Attributes are JSON text, because
    NetCDF has no tables. A list or table that a user has set directly is returned unchanged."""
    value = dataset.attrs.get(name, default)
    return json.loads(value) if isinstance(value, str) else value


def axes_of(dataset: Dataset) -> list[str]:
    """Return the study's axes, in the order of its file."""
    first = next((v for v in dataset.data_vars.values() if "by" in v.dims), None)
    dims = dataset.sizes if first is None else first.dims
    return [str(dim) for dim in dims if dim not in NO_AXES]


def is_numeric(dataset: Dataset, axis: str) -> bool:
    """Return whether an axis has numbers and not names, such as models of switches."""
    return dataset[axis].dtype.kind in "iuf"


def dimension_of(values: DataArray) -> Dimension | None:
    """Return the dimension of an axis or a variable by its unit; None for plain numbers and
    names."""
    units = {dimension.unit: dimension for dimension in (BYTES, BIT_RATE, TIME, FREQUENCY)}
    return units.get(str(values.attrs.get("units", "")))


def limit(dataset: Dataset, show: str | None, text: str, source: str) -> float:
    """Return a limit on the main variable or on `show`, in its SI unit. Raises StudyError with a
    sentence that begins with `source`."""
    dimension = dimension_of(dataset[shown_variable(dataset, show)])
    try:
        return float(dimension.parse(text) if dimension else text)
    except ValueError as error:
        why = str(error) if dimension else "is no number"
        raise StudyError(f'{source} "{text[:80]}" {why}') from None


def plane_of(dataset: Dataset) -> tuple[str, str] | None:
    """Return the first two numeric axes with at least two steps; None if there are fewer axes."""
    axes = [a for a in axes_of(dataset) if is_numeric(dataset, a) and dataset.sizes[a] > 1]
    return (axes[0], axes[1]) if len(axes) > 1 else None


def shown_variable(dataset: Dataset, show: str | None = None) -> str:
    """Return the main variable of a study: `show`; else the first in [report]; else `boundary`
    after a search; else the peak of the top-of-rack switch; else the event rate; else the first
    metric. Raises StudyError if `show` is unknown or there is no result."""
    return shown_variables(dataset, show)[0]


def shown_variables(dataset: Dataset, show: str | None = None) -> list[str]:
    """Return the variables drawn side by side in a report: `show`, else those of [report]."""
    known = [
        str(name)
        for name, v in dataset.data_vars.items()
        if v.dtype.kind in "iuf" and "slice" not in v.dims
    ]
    if show is not None:
        if show not in known:
            raise StudyError(
                f'there is no metric "{show[:80]}" in this study; {cost_hint(show)}known are '
                f"{', '.join(known)}"
            )
        _check_dimensions(dataset, show)
        return [show]
    filled = [name for name in known if bool(_has_value(dataset, name).any())]
    named = [name for name in attribute(dataset, "show", ()) if name in filled]
    usual = [name for name in USUAL if name in filled] or filled
    if named or usual:
        return named or usual[:1]
    raise StudyError(
        "there is no result of this study yet; compute some with `daqloom study run FILE`"
    )


def _check_dimensions(dataset: Dataset, variable: str) -> None:
    """Raise StudyError for a user's variable that lacks a dimension of the dataset."""
    expected = {"by", "seed", *axes_of(dataset)}
    found = set(map(str, dataset[variable].dims))
    if found != expected:
        raise StudyError(
            f'the variable "{variable[:80]}" has the dimensions {", ".join(sorted(found))}; '
            f"expected {', '.join(sorted(expected))}: compute it from other variables of the "
            "dataset, without taking a mean or one step"
        )


def _has_value(dataset: Dataset, variable: str) -> DataArray:
    if variable in BOUNDARIES and "boundary_status" in dataset:
        return dataset["boundary_status"] != ""
    return cast("DataArray", np.isfinite(dataset[variable]))


def methods_of(dataset: Dataset, variable: str) -> list[str]:
    """Return the methods with any value of `variable`; a search without result counts."""
    filled = _has_value(dataset, variable)
    return [str(m) for m in dataset["by"].values if bool(filled.sel({"by": m}).any())]


def operating_point(dataset: Dataset) -> dict[str, float]:
    """Return the known event rate and size of the study's scenario, as SI numbers by key."""
    point = attribute(dataset, "operating_point", {})
    return {key: float(point[key]) for key in EVENT_KEYS if key in point}


def steps(dataset: Dataset, axis: str, chosen: Sequence[Any] | None) -> list[int]:
    """Return the indices of chosen steps on an axis; all if `chosen` is None. Raises StudyError."""
    values = dataset[axis].values.tolist()
    if chosen is None:
        return list(range(len(values)))
    if missing := [value for value in chosen if value not in values]:
        dimension = dimension_of(dataset[axis])
        first, *known = [
            str(value) if dimension is None else dimension.format(value)
            for value in (missing[0], *values)
        ]
        raise StudyError(
            f"{axis} = {first} is not a step of this study; its steps are {', '.join(known)}"
        )
    return [values.index(value) for value in chosen]


def step_values(dataset: Dataset, place: Iterable[tuple[str, int]]) -> dict[str, Any]:
    """Return the values of axes at a place, given as pairs of axis and step index."""
    return {axis: dataset[axis].values[step].item() for axis, step in place}


def at_steps(dataset: Dataset, place: Mapping[str, Any]) -> Dataset:
    """Return a dataset at one step of some axes, kept with length 1. Raises StudyError."""
    return dataset.isel({axis: steps(dataset, axis, [step]) for axis, step in place.items()})


def searches(dataset: Dataset, key: str) -> bool:
    """Return whether the study searches this key of the scenario."""
    return "boundary" in dataset and dataset["boundary"].attrs.get("key") == key


def saturation_flags(dataset: Dataset) -> DataArray:
    """Return for each point (dimensions: the axes) whether any method flags it as saturated. There
    the offered rate exceeds the capacity, and results depend on the duration of the run. False
    everywhere if the event rate is searched, as results are then at the boundary."""
    if "saturated" not in dataset or searches(dataset, RATE):
        return _by_axes(dataset, False)
    return _by_axes(dataset, dataset["saturated"].any(["by", "seed"]))


def drifting(dataset: Dataset, method: str) -> DataArray:
    """Return for each point (dimensions: the axes) whether a run of `method` did not settle."""
    if "equilibrium" not in dataset:
        return _by_axes(dataset, False)
    return _by_axes(dataset, (dataset["equilibrium"].sel({"by": method}) == "drifting").any("seed"))


def load(dataset: Dataset) -> DataArray | None:
    """Return the load of each point: the offered event rate divided by the bound at which the first
    link, host or builder saturates. If the bound is unknown, the load is the higher utilisation of
    links into the rack and to builders. None if unknown, or if the rate is searched."""
    rate: Any = None
    if searches(dataset, RATE):
        return None
    if RATE in dataset.coords:
        rate = dataset[RATE].drop_vars(RATE)
    elif RATE in (known := operating_point(dataset)):
        rate = known[RATE]
    if BOUND in dataset and rate is not None:
        return _by_axes(dataset, rate / dataset[BOUND].max(["by", "seed"]))
    links = [dataset[link].max(["by", "seed"]) for link in LINKS if link in dataset]
    return _by_axes(dataset, xarray.concat(links, "link").max("link")) if links else None


def _by_axes(dataset: Dataset, values: Any) -> DataArray:
    """Return an array or value expanded to all axes in their order, without coordinates."""
    known = xarray.DataArray(values)
    bare = known.drop_vars(list(known.coords))
    axes = axes_of(dataset)
    full = bare.expand_dims({a: dataset.sizes[a] for a in axes if a not in bare.dims})
    return full.transpose(*axes)


@dataclass(frozen=True)
class Spread:
    """Mean, standard deviation (0 for fewer than two values) and range over seeds."""

    mean: DataArray
    deviation: DataArray
    lowest: DataArray
    highest: DataArray


def spread(values: DataArray) -> Spread:
    """Return the statistics over the dimension `seed`, without unknown values."""
    count = values.notnull().sum("seed")
    total = values.fillna(0).sum("seed")
    mean = (total / count.where(count > 0)).rename("mean")
    squares = ((values - mean) ** 2).sum("seed", skipna=True)
    variance = squares / (count - 1).where(count > 1)
    lowest, highest = values.min("seed"), values.max("seed")
    alike = highest == lowest  # the mean may have a rounding error
    return Spread(mean, (variance**0.5).fillna(0).where(~alike, 0), lowest, highest)


@dataclass(frozen=True)
class MethodMeans:
    """Means of `variable` over seeds for one method. The dimensions of `values` are the axes;
    left-out points are NaN, and `left_out` counts them by reason."""

    method: str
    variable: str
    values: DataArray
    left_out: Counter[str]


def means_by_method(dataset: Dataset, variable: str | None = None) -> list[MethodMeans]:
    """Return the means of `variable` (default: `shown_variable`) for each method, as input of fits.
    Saturated points and boundaries that a search did not find are left out. For a method without
    search, the variable that corresponds to the searched key is used, if any: the peak for a
    buffer, the bound of the event rate for a rate."""
    variable = shown_variable(dataset, variable)
    methods = methods_of(dataset, variable)
    found = [_means(dataset, variable, method) for method in methods]
    if variable in BOUNDARIES:
        other = COUNTERPARTS.get(str(dataset["boundary"].attrs.get("key")), "")
        if other in dataset:
            rest = [method for method in methods_of(dataset, other) if method not in methods]
            found += [_means(dataset, other, method) for method in rest]
    order = [str(method) for method in dataset["by"].values]
    return sorted(found, key=lambda each: order.index(each.method))


def _means(dataset: Dataset, variable: str, method: str) -> MethodMeans:
    values = dataset[variable].sel({"by": method}, drop=True)
    computed = values.notnull()
    reasons: Counter[str] = Counter()
    if variable in BOUNDARIES:
        status = dataset["boundary_status"].sel({"by": method}, drop=True)
        values = values.where(status == "found")
        _count_statuses(reasons, status.transpose("seed", ...).values)
        computed = status != ""
    mean = spread(values).mean.transpose(*axes_of(dataset))
    full = saturation_flags(dataset)
    reasons["saturated"] = int(full.sum())
    missing = ~full.values & ~computed.any("seed").transpose(*full.dims)
    reasons["not computed"] = int(missing.sum())
    return MethodMeans(method, variable, mean.where(~full), +reasons)


def _count_statuses(reasons: Counter[str], status: Any) -> None:
    """Count, by status of its first seed, each point for which no seed found the boundary."""
    for point in status.reshape(status.shape[0], -1).T:
        ended = [str(each) for each in point if each]
        if ended and "found" not in ended:
            reasons[UNBOUNDED[ended[0]]] += 1
