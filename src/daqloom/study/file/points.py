"""The points of a study's dataset: axes, methods, what is asked, and what can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from daqloom.results.metrics import cost_hint
from daqloom.scenario.quantities import FREQUENCY, TIME, Dimension
from daqloom.scenario.quantities import RATE as BIT_RATE
from daqloom.scenario.quantities import SIZE as BYTES
from daqloom.study import StudyError
from daqloom.study.file.attributes import attribute

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

PEAK, BOUND = "buffer_peak_bytes.tor", "event_rate_bound_hz"
NEEDED = "buffer_needed_bytes.tor"
RATE, SIZE = "event.rate", "event.size"
EVENT_KEYS = (RATE, SIZE)
USUAL = ("boundary", PEAK, "event_rate_hz")
"""What is shown unless a study says so, the first that there is."""
BOUNDARIES = ("boundary", "boundary_shared")
"""Variables that say where a search ended."""
ABOVE = "above the limit"
"""Why a point is left out that has more than was asked for."""
COUNTERPARTS = {"network.switch.tor.buffer": PEAK, RATE: BOUND}
"""What a method that searches nothing says of the searched key."""
UNBOUNDED = {
    "below": "below the bounds",
    "above": "above the bounds",
    "never": "never satisfied",
    "reversed": "reversed",
}
"""Why a search's point is left out, by the status of its boundary."""
LINKS = ("link_utilisation.access.down", "link_utilisation.uplink.down")
BESIDES = ("by", "seed", "slice")
"""Dimensions that are no axes."""


def axes_of(dataset: Dataset) -> list[str]:
    """The study's axes, in the order of its file."""
    first = next((v for v in dataset.data_vars.values() if "by" in v.dims), None)
    dims = dataset.sizes if first is None else first.dims
    return [str(dim) for dim in dims if dim not in BESIDES]


def is_numeric(dataset: Dataset, axis: str) -> bool:
    """Whether an axis' steps are numbers; else they are names, such as models of switches."""
    return dataset[axis].dtype.kind in "iuf"


def dimension_of(values: DataArray) -> Dimension | None:
    """The kind of quantity of an axis or a variable, by its unit; None for plain numbers and
    names."""
    units = {dimension.unit: dimension for dimension in (BYTES, BIT_RATE, TIME, FREQUENCY)}
    return units.get(str(values.attrs.get("units", "")))


def plane_of(dataset: Dataset) -> tuple[str, str] | None:
    """The first two axes of numbers with two steps or more."""
    axes = [a for a in axes_of(dataset) if is_numeric(dataset, a) and dataset.sizes[a] > 1]
    return (axes[0], axes[1]) if len(axes) > 1 else None


def shown_variable(dataset: Dataset, show: str | None = None) -> str:
    """The variable that a study is about. `show`, else the first that the study's [report] names,
    else `boundary` after a search, else the peak of the top-of-rack switch, else the event rate,
    else the first metric. Raises StudyError where there is no such variable, or none at all."""
    return shown_variables(dataset, show)[0]


def shown_variables(dataset: Dataset, show: str | None = None) -> list[str]:
    """The variables that a report draws side by side: `show` alone, else what [report] names."""
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
    filled = [name for name in known if bool(_given(dataset, name).any())]
    named = [name for name in attribute(dataset, "show", ()) if name in filled]
    usual = [name for name in USUAL if name in filled] or filled
    if named or usual:
        return named or usual[:1]
    raise StudyError(
        "there is no result of this study yet; compute some with `daqloom study run FILE`"
    )


def _check_dimensions(dataset: Dataset, variable: str) -> None:
    """A variable that a user computed may have lost one."""
    wanted = {"by", "seed", *axes_of(dataset)}
    found = set(map(str, dataset[variable].dims))
    if found != wanted:
        raise StudyError(
            f'the variable "{variable[:80]}" has the dimensions {", ".join(sorted(found))}; '
            f"expected {', '.join(sorted(wanted))}: compute it from other variables of the "
            "dataset, without taking a mean or one step"
        )


def _given(dataset: Dataset, variable: str) -> DataArray:
    if variable in BOUNDARIES and "boundary_status" in dataset:
        return dataset["boundary_status"] != ""
    return cast("DataArray", np.isfinite(dataset[variable]))


def methods_of(dataset: Dataset, variable: str) -> list[str]:
    """The methods that give `variable` anywhere; a search that found nothing gives its status."""
    given = _given(dataset, variable)
    return [str(m) for m in dataset["by"].values if bool(given.sel({"by": m}).any())]


def operating_point(dataset: Dataset) -> dict[str, float]:
    """Event rate and size of the study's own scenario, SI numbers, as far as they are known."""
    given = attribute(dataset, "operating_point", {})
    return {key: float(given[key]) for key in EVENT_KEYS if key in given}


def steps(dataset: Dataset, axis: str, wanted: Sequence[Any] | None) -> list[int]:
    """Places of some steps of an axis; of all where none is named. Raises StudyError."""
    values = dataset[axis].values.tolist()
    if wanted is None:
        return list(range(len(values)))
    missing = [value for value in wanted if value not in values]
    if missing:
        dimension = dimension_of(dataset[axis])
        first, *known = [
            str(value) if dimension is None else dimension.format(value)
            for value in (missing[0], *values)
        ]
        raise StudyError(
            f"{axis} = {first} is not a step of this study; its steps are {', '.join(known)}"
        )
    return [values.index(value) for value in wanted]


def at_steps(dataset: Dataset, place: Mapping[str, Any]) -> Dataset:
    """The part of a study at one step of some axes, which keep their place. Raises StudyError."""
    return dataset.isel({axis: steps(dataset, axis, [step]) for axis, step in place.items()})


def searches(dataset: Dataset, key: str) -> bool:
    """Whether the study searches this key of the scenario."""
    return "boundary" in dataset and dataset["boundary"].attrs.get("key") == key


def saturated(dataset: Dataset) -> DataArray:
    """Where any method flags a point as offered more than it can carry; the dims are the axes. No
    buffer helps there: what such a point shows depends on how long it ran. False everywhere if the
    rate itself is searched, and so never offered beyond its boundary."""
    if "saturated" not in dataset or searches(dataset, RATE):
        return _by_axes(dataset, False)
    return _by_axes(dataset, dataset["saturated"].any(["by", "seed"]))


def drifting(dataset: Dataset, method: str) -> DataArray:
    """Where a run of `method` had not settled when it ended; the dims are the axes."""
    if "equilibrium" not in dataset:
        return _by_axes(dataset, False)
    return _by_axes(dataset, (dataset["equilibrium"].sel({"by": method}) == "drifting").any("seed"))


def load(dataset: Dataset) -> DataArray | None:
    """Offered rate over the bound of the first link, host or builder to be full, by the axes. Where
    the bound is not known, the utilisation of the links into the rack or to its builders, whichever
    is higher; None where neither is, and where the rate is searched."""
    import xarray

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
    """`values`, or one value, by all axes in their order, without coordinates."""
    import xarray

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
    """Over the dimension `seed`; what is not known is left out."""
    count = values.notnull().sum("seed")
    total = values.fillna(0).sum("seed")
    mean = (total / count.where(count > 0)).rename("mean")
    squares = ((values - mean) ** 2).sum("seed", skipna=True)
    variance = squares / (count - 1).where(count > 1)
    lowest, highest = values.min("seed"), values.max("seed")
    alike = highest == lowest  # their mean may be off by the last bit
    return Spread(mean, (variance**0.5).fillna(0).where(~alike, 0), lowest, highest)


@dataclass(frozen=True)
class Answer:
    """What one method says of `variable`: the mean over seeds where it can be trusted, else NaN.
    The dims of `values` are the axes. `left_out` says why the others are left out, and how many."""

    method: str
    variable: str
    values: DataArray
    left_out: Counter[str]


def answers(dataset: Dataset, variable: str | None = None) -> list[Answer]:
    """What the methods say of `variable` (by default that of `shown_variable`), for fits.

    Saturated points are left out, and so are boundaries that a search did not find. A method that
    searches nothing answers with its own value of the searched key, where it has one: the peak for
    a buffer, the bound of the links for a rate.
    """
    variable = shown_variable(dataset, variable)
    methods = methods_of(dataset, variable)
    found = [_answer(dataset, variable, method) for method in methods]
    if variable in BOUNDARIES:
        other = COUNTERPARTS.get(str(dataset["boundary"].attrs.get("key")), "")
        if other in dataset:
            rest = [method for method in methods_of(dataset, other) if method not in methods]
            found += [_answer(dataset, other, method) for method in rest]
    order = [str(method) for method in dataset["by"].values]
    return sorted(found, key=lambda answer: order.index(answer.method))


def _answer(dataset: Dataset, variable: str, method: str) -> Answer:
    values = dataset[variable].sel({"by": method}, drop=True)
    given = values.notnull()
    reasons: Counter[str] = Counter()
    if variable in BOUNDARIES:
        status = dataset["boundary_status"].sel({"by": method}, drop=True)
        values = values.where(status == "found")
        _count_statuses(reasons, status.transpose("seed", ...).values)
        given = status != ""
    mean = spread(values).mean.transpose(*axes_of(dataset))
    full = saturated(dataset)
    reasons["saturated"] = int(full.sum())
    reasons["not computed"] = int((~full.values & ~given.any("seed").transpose(*full.dims)).sum())
    return Answer(method, variable, mean.where(~full), +reasons)


def _count_statuses(reasons: Counter[str], status: Any) -> None:
    """A point counts if no seed found its boundary."""
    for point in status.reshape(status.shape[0], -1).T:
        ended = [str(each) for each in point if each]
        if ended and "found" not in ended:
            reasons[UNBOUNDED[ended[0]]] += 1
