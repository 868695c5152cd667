"""A study's results as a labelled array: `daqloom.open_study(path)`."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from daqloom.base import lazy
from daqloom.base.words import key_in_words
from daqloom.results.metrics import flatten, label, unit_of
from daqloom.scenario import ScenarioError
from daqloom.scenario.document import look
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.switches import DEFAULTS
from daqloom.simulate.slices import SLICE_METRICS, SLICES
from daqloom.study.file.axis import dimension_of_key
from daqloom.study.file.kinds import operating_point
from daqloom.study.file.load import load_study
from daqloom.study.file.study import Study
from daqloom.study.run.program import Outcome, Run, Task
from daqloom.study.run.runner import replay
from daqloom.study.store.store import Store

with lazy.imports():
    import pyarrow
    import xarray
    from pyarrow import parquet

COURSE = "course."
MODEL, COST = "network.switch.tor.model", "network.switch.tor.cost"
SHARED = "shared part of the buffer"


def open_study(
    path: str | PathLike[str],
    *,
    store: str | PathLike[str] = "daqloom-store",
    quick: bool = False,
    course: bool = False,
) -> xarray.Dataset:
    """Return the results in `store` for the study in the file `path`.

    Dimensions: `by` (the method: `dataset.sel(by="simulate")`), one for each axis (named by its
    key, or `variant`; further keys of the axis are coordinates along it), `seed`. Variables: every
    metric of the results, under its dotted name. A search adds `boundary` (in the key's unit) and
    `boundary_status`. A search for the buffer of the ToR switch also adds `boundary_shared`, which
    excludes the part dedicated to ports. Each variable has `long_name` and `units` in `attrs`.
    Values that were not computed, or that a method does not provide, are NaN. Methods without
    random numbers have the same value for every seed.

    `attrs["assumed"]` contains the guessed defaults as the text of a JSON object: see
    `Scenario.assumptions`. `Dataset.to_netcdf` keeps all attributes.

    `saturated` is true if the offered rate of a point exceeds the capacity (its run is shortened,
    and fits leave it out). `equilibrium` is "stationary" or "drifting" if the study has the table
    [equilibrium], else empty. `run_s` is the simulated time after the warm-up.

    `course=True` adds variables `course.NAME` for the metrics of `daqloom.simulate.slices`: the
    metric in each of equal time slices of `run_s`, along the further dimension `slice`.

    Warns of a damaged store. Raises StudyError.
    """
    study = load_study(Path(path), quick=quick)
    with Store.open(Path(store), create=False) as opened:
        dataset = to_dataset(study, replay(study, opened), course=course)
        for sentence in opened.damage:
            warnings.warn(sentence, stacklevel=2)
    return dataset


def to_dataset(
    study: Study, outcomes: Iterable[tuple[Task, Outcome | None]], *, course: bool = False
) -> xarray.Dataset:
    """Return the outcomes of a study's tasks as one dataset; see `open_study`."""
    dims = ("by", *(axis.name for axis in study.axes), "seed")
    shape = (len(study.methods), *study.shape, len(study.seeds))
    table = _Table(study, shape, course)
    for task, outcome in outcomes:
        table.add(task, outcome)
    variables = {
        name: (dims, values, _about(label(name), unit_of(name)))
        for name, values in table.metrics.items()
    }
    variables |= {
        COURSE + name: ((*dims, "slice"), values, _about(f"{label(name)} over time", unit_of(name)))
        for name, values in table.courses.items()
    }
    offered = "saturated: more events offered than the system can carry"
    variables["saturated"] = (dims, table.saturated, _about(offered))
    variables["equilibrium"] = (dims, table.equilibrium, _about("whether the run is stationary"))
    variables["run_s"] = (dims, table.run_s, _about("simulated time after the warm-up", "s"))
    if study.search:
        dimension = dimension_of_key(study.search.key)
        about: dict[str, Any] = {
            "key": study.search.key,
            "find": study.search.find,
            "where": study.search.where,
            "bounds": list(study.search.range),
        }
        unit = dimension.unit if dimension else ""
        end = f"{study.search.find} {key_in_words(study.search.key)}"
        variables["boundary"] = (dims, table.boundary, about | _about(end, unit))
        variables["boundary_status"] = (dims, table.status, _about("how the search ended"))
        if study.search.key == "network.switch.tor.buffer":
            shared = table.boundary - _dedicated_buffer(study)[None, ..., None]
            variables["boundary_shared"] = (dims, shared, _about(SHARED, unit))
    return xarray.Dataset(
        variables,
        coords=_coordinates(study),
        attrs={
            "study": study.name,
            "title": study.title,
            "scenario": study.base.name,
            "show": json.dumps(study.show),
            "bars": study.bars,
            "operating_point": json.dumps(operating_point(study.base)),
            "assumed": json.dumps(study.assumptions()),
        },
    )


class _Table:
    """Arrays of a dataset, which `add` fills task by task."""

    def __init__(self, study: Study, shape: tuple[int, ...], course: bool) -> None:
        self.study, self.shape, self.course = study, shape, course
        self.metrics: dict[str, Any] = {}
        self.courses: dict[str, Any] = {}
        self.saturated = np.zeros(shape, dtype=bool)
        self.equilibrium = np.full(shape, "", dtype="<U10")
        self.run_s = np.full(shape, np.nan)
        self.boundary = np.full(shape, np.nan)
        self.status = np.full(shape, "", dtype="<U8")
        self._methods = {name: place for place, name in enumerate(study.methods)}
        self._seeds = {seed: place for place, seed in enumerate(study.seeds)}

    def add(self, task: Task, outcome: Outcome | None) -> None:
        if outcome is None:
            return
        seed = self._seeds[task.seed] if self.study.is_seeded(task.method) else slice(None)
        place = (self._methods[task.method], *task.index, seed)
        if outcome.run is not None:
            self._add_run(place, outcome.run)
        if outcome.boundary is not None:
            if outcome.boundary.value is not None:
                self.boundary[place] = outcome.boundary.value
            self.status[place] = outcome.boundary.status

    def _add_run(self, place: tuple[Any, ...], run: Run) -> None:
        for name, value in flatten(_totals(run.result.metrics)).items():
            if name not in self.metrics:
                self.metrics[name] = np.full(self.shape, np.nan)
            self.metrics[name][place] = value
        self.saturated[place] = run.saturated
        self.equilibrium[place] = run.equilibrium
        if (course := run.result.series.get("course")) is None:
            return
        times = course["time_s"]
        self.run_s[place] = (times[1] - times[0]) * len(times)
        for name in (name for name in SLICE_METRICS if self.course and name in course):
            if name not in self.courses:
                self.courses[name] = np.full((*self.shape, SLICES), np.nan)
            self.courses[name][place] = course[name]


def _dedicated_buffer(study: Study) -> Any:
    """Return the buffer (B) that the ToR switch dedicates to ports; shape: the axes."""
    parts = np.full(study.shape, np.nan)
    for index in study.indices():
        with suppress(ScenarioError):  # points without a valid system have no result
            rack = study.scenario(index)
            parts[index] = rack.network.switch.tor.dedicated
    return parts


def _totals(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics without those of single links and ports (thousands of columns)."""
    kept = {name: value for name, value in metrics.items() if name != "drops_by_port"}
    links = kept.get("link_utilisation")
    if isinstance(links, Mapping):
        kept["link_utilisation"] = {n: v for n, v in links.items() if n.count(".") < 2}
    return kept


def _coordinates(study: Study) -> dict[str, Any]:
    coordinates: dict[str, Any] = {
        "by": ("by", list(study.methods), _about("method")),
        "seed": ("seed", list(study.seeds), _about("seed of the random streams")),
    }
    for axis in study.axes:
        if axis.labels:
            coordinates[axis.name] = (axis.name, list(axis.labels), _about(axis.name))
        for key in axis.keys:
            dimension = dimension_of_key(key)
            about = _about(key_in_words(key), dimension.unit if dimension else "")
            coordinates[key] = (axis.name, axis.coordinates(key, study.base), about)
        if {MODEL, COST} & set(axis.keys):
            costs = [_cost(step, study.base) for step in axis.steps]
            coordinates[COST] = (axis.name, costs, _about("cost"))
    return coordinates


def _cost(changed: Mapping[str, object], base: Scenario) -> float:
    """Return the price of the top-of-rack switch at a step of an axis: as the step gives it, else
    that of its product relative to the shallow switch (ATLAS HL-LHC buffer benchmarking, section
    3.1); NaN for another model."""
    if COST in changed:
        return float(str(changed[COST]))
    model = changed.get(MODEL, look(base.content(), MODEL))
    return float(DEFAULTS.get(str(model), {}).get("cost", math.nan))


def _about(long_name: str, units: str = "") -> dict[str, str]:
    """Return the attributes of a variable; text and plain counts have no unit."""
    return {"long_name": long_name, "units": units}


def to_parquet(dataset: xarray.Dataset, path: Path) -> None:
    """Write a Parquet file: a row per method, point and seed, without time slices; units as
    metadata."""
    frame = dataset.drop_dims("slice", errors="ignore").to_dataframe().reset_index()
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    fields = [
        field.with_metadata({"units": str(dataset[field.name].attrs.get("units", ""))})
        for field in table.schema
    ]
    parquet.write_table(table.cast(pyarrow.schema(fields, metadata=table.schema.metadata)), path)
