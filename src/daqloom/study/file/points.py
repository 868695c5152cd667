"""The points of a study's dataset: axes, methods, variables, and which values count."""

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
RATE, SIZE = "event.rate", "event.size"
EVENT_KEYS = (RATE, SIZE)
USUAL = ("boundary", PEAK, "event_rate_hz")
"""Variables shown by default, the first that a study has."""
BOUNDARIES = ("boundary", "boundary_shared")
"""Variables with the end of a search."""
ABOVE = "above the limit"
"""Reason for leaving out a point whose value exceeds the given limit."""
COUNTERPARTS = {"network.switch.tor.buffer": PEAK, RATE: BOUND}
"""Variables that correspond to the searched key, of methods that search nothing."""
UNBOUNDED = {
    "below": "below the bounds",
    "above": "above the bounds",
    "never": "never satisfied",
    "reversed": "reversed",
}
"""Reasons for leaving out a search's point, by the status of its boundary."""
LINKS = ("link_utilisation.access.down", "link_utilisation.uplink.down")
NO_AXES = ("by", "seed", "slice")
"""Dimensions that are no axes."""


def attribute(dataset: Dataset, name: str, default: Any) -> Any:
    """Return the list or table of an attribute, `default` without it. It is a JSON text, since
    NetCDF has no tables; one that a user set to a list or a table is returned as it is."""
    value = dataset.attrs.get(name, default)
    return json.loads(value) if isinstance(value, str) else value


def axes_of(dataset: Dataset) -> list[str]:
    """Return the study's axes, in the order of its file."""
    first = next((v for v in dataset.data_vars.values() if "by" in v.dims), None)
    dims = dataset.sizes if first is None else first.dims
    return [str(dim) for dim in dims if dim not in NO_AXES]


def is_numeric(dataset: Dataset, axis: str) -> bool:
    """Whether an axis' steps are numbers, not names, such as models of switches."""
    return dataset[axis].dtype.kind in "iuf"


def dimension_of(values: DataArray) -> Dimension | None:
    """Return the kind of quantity of an axis or a variable, by its unit; None for plain numbers
    and names."""
    units = {dimension.unit: dimension for dimension in (BYTES, BIT_RATE, TIME, FREQUENCY)}
    return units.get(str(values.attrs.get("units", "")))


def plane_of(dataset: Dataset) -> tuple[str, str] | None:
    """Return the first two numeric axes with two steps or more."""
    axes = [a for a in axes_of(dataset) if is_numeric(dataset, a) and dataset.sizes[a] > 1]
    return (axes[0], axes[1]) if len(axes) > 1 else None


def shown_variable(dataset: Dataset, show: str | None = None) -> str:
    """Return the main variable of a study: `show`, else the first in its [report], else `boundary`
    after a search, else the peak of the top-of-rack switch, else the event rate, else the first
    metric. Raises StudyError where there is no such variable, or none at all."""
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
    filled = [name for name in known if bool(_filled(dataset, name).any())]
    named = [name for name in attribute(dataset, "show", ()) if name in filled]
    usual = [name for name in USUAL if name in filled] or filled
    if named or usual:
        return named or usual[:1]
    raise StudyError(
        "there is no result of this study yet; compute some with `daqloom study run FILE`"
    )


def _check_dimensions(dataset: Dataset, variable: str) -> None:
    """Raise StudyError for a variable without one of the dimensions, which a user computed."""
    expected = {"by", "seed", *axes_of(dataset)}
    found = set(map(str, dataset[variable].dims))
    if found != expected:
        raise StudyError(
            f'the variable "{variable[:80]}" has the dimensions {", ".join(sorted(found))}; '
            f"expected {', '.join(sorted(expected))}: compute it from other variables of the "
            "dataset, without taking a mean or one step"
        )


def _filled(dataset: Dataset, variable: str) -> DataArray:
    if variable in BOUNDARIES and "boundary_status" in dataset:
        return dataset["boundary_status"] != ""
    return cast("DataArray", np.isfinite(dataset[variable]))


def methods_of(dataset: Dataset, variable: str) -> list[str]:
    """Return the methods with any value of `variable`; a search without a boundary has a status."""
    filled = _filled(dataset, variable)
    return [str(m) for m in dataset["by"].values if bool(filled.sel({"by": m}).any())]


def operating_point(dataset: Dataset) -> dict[str, float]:
    """Return event rate and size of the study's own scenario, SI numbers, as far as known."""
    point = attribute(dataset, "operating_point", {})
    return {key: float(point[key]) for key in EVENT_KEYS if key in point}


def steps(dataset: Dataset, axis: str, chosen: Sequence[Any] | None) -> list[int]:
    """Return the places of the chosen steps of an axis, of all if None. Raises StudyError."""
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
    """Return the values of the steps at a place along some axes."""
    return {axis: dataset[axis].values[step].item() for axis, step in place}


def at_steps(dataset: Dataset, place: Mapping[str, Any]) -> Dataset:
    """Return a study's part at one step of some axes, which keep their place. Raises StudyError."""
    return dataset.isel({axis: steps(dataset, axis, [step]) for axis, step in place.items()})


def searches(dataset: Dataset, key: str) -> bool:
    """Whether the study searches this key of the scenario."""
    return "boundary" in dataset and dataset["boundary"].attrs.get("key") == key


def saturated(dataset: Dataset) -> DataArray:
    """Whether any method flags a point as offered more than it can carry; the dims are the axes.
    No buffer helps there: results depend on the length of the run. False everywhere if the rate
    itself is searched, and so never offered beyond its boundary."""
    if "saturated" not in dataset or searches(dataset, RATE):
        return _by_axes(dataset, False)
    return _by_axes(dataset, dataset["saturated"].any(["by", "seed"]))


def drifting(dataset: Dataset, method: str) -> DataArray:
    """Whether a run of `method` had not settled when it ended; the dims are the axes."""
    if "equilibrium" not in dataset:
        return _by_axes(dataset, False)
    return _by_axes(dataset, (dataset["equilibrium"].sel({"by": method}) == "drifting").any("seed"))


def load(dataset: Dataset) -> DataArray | None:
    """Return the offered rate over the bound of the first full link, host or builder, by the axes.
    Where the bound is not known, it is the higher utilisation of the links into the rack and to its
    builders; None where neither is known, and where the rate is searched."""
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
    """Return `values`, or one value, by all axes in their order, without coordinates."""
    known = xarray.DataArray(values)
    bare = known.drop_vars(list(known.coords))
    axes = axes_of(dataset)
    full = bare.expand_dims({a: dataset.sizes[a] for a in axes if a not in bare.dims})
    return full.transpose(*axes)


@dataclass(frozen=True)
class Spread:
    """Mean over seeds and their standard deviation; 0 where fewer than two seeds are known."""

    mean: DataArray
    deviation: DataArray
    lowest: DataArray
    highest: DataArray


def spread(values: DataArray) -> Spread:
    """Return the spread over the dimension `seed`, without values that are not known."""
    count = values.notnull().sum("seed")
    total = values.fillna(0).sum("seed")
    mean = (total / count.where(count > 0)).rename("mean")
    squares = ((values - mean) ** 2).sum("seed", skipna=True)
    variance = squares / (count - 1).where(count > 1)
    lowest, highest = values.min("seed"), values.max("seed")
    alike = highest == lowest  # their mean may be off by the last bit
    return Spread(mean, (variance**0.5).fillna(0).where(~alike, 0), lowest, highest)


@dataclass(frozen=True)
class MethodMeans:
    """Means over seeds of `variable` by one method; NaN at the points that are left out. The dims
    of `values` are the axes; `left_out` counts these points by reason."""

    method: str
    variable: str
    values: DataArray
    left_out: Counter[str]


def means_by_method(dataset: Dataset, variable: str | None = None) -> list[MethodMeans]:
    """Return the means of `variable` (by default `shown_variable`) by each method, for fits.

    Saturated points are left out, and so are boundaries that a search did not find. A method that
    searches nothing has its own value of the searched key, if any: the peak for a buffer, the bound
    of the links for a rate.
    """
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
    full = saturated(dataset)
    reasons["saturated"] = int(full.sum())
    missing = ~full.values & ~computed.any("seed").transpose(*full.dims)
    reasons["not computed"] = int(missing.sum())
    return MethodMeans(method, variable, mean.where(~full), +reasons)


def _count_statuses(reasons: Counter[str], status: Any) -> None:
    """Count each point of which no seed found the boundary."""
    for point in status.reshape(status.shape[0], -1).T:
        ended = [str(each) for each in point if each]
        if ended and "found" not in ended:
            reasons[UNBOUNDED[ended[0]]] += 1
