"""Study files: scenario, methods, axes of varied keys, and searches."""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from daqloom.base import lazy
from daqloom.base.words import did_you_mean
from daqloom.deployment.scenarios import load, override
from daqloom.scenario import ScenarioError
from daqloom.scenario.file.explain import mistakes_of
from daqloom.scenario.files import read_text
from daqloom.scenario.package_files import package_files
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.part import meanings
from daqloom.scenario.schema.parts import Parts
from daqloom.scenario.toml import parse_toml
from daqloom.simulate.slices import SLICE_METRICS
from daqloom.study import StudyError
from daqloom.study.file import kinds
from daqloom.study.file.axis import (
    Axis,
    cartesian,
    dimension_of_key,
    flatten,
    parallel_axis,
    require_key,
    variants,
)
from daqloom.study.file.bisection import tolerances
from daqloom.study.file.cell import SEEDED
from daqloom.study.file.common_keys import CommonKeys, load_common
from daqloom.study.file.condition import Condition, require_metric
from daqloom.study.file.hasher import ScenarioHasher
from daqloom.study.file.saturation import Saturation
from daqloom.study.methods.all_methods import Method

with lazy.imports():
    from daqloom.measure import check

LARGEST_STUDY_BYTES = 1 << 20
MOST_SEEDS = 10_000
CHOICES = {"building.protocol", "transport.kind", "network.technology", "network.shape"}
"""Scenario keys that determine the parts of a system, by which metrics are declared."""
SEEDS_END = 1 << 53
"""Upper limit of seeds, so that they are exact as coordinates of a dataset (double precision)."""
MOST_ANSWERS = 10_000_000
USUAL_COURSE = "buffer_peak_bytes.tor"


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Search(_Table):
    """[search]: the smallest or largest value of a key at which a condition holds."""

    key: str
    """Key of the scenario whose value is searched."""
    find: Literal["smallest", "largest"]
    """Result: the smallest or the largest value that satisfies `where`."""
    where: str
    """Condition on metrics, such as "packets_dropped == 0"."""
    bounds: tuple[str | int | float, str | int | float]
    """Lowest and highest value to try."""
    tolerance: str | int | float
    """Precision of the result, in the key's unit; with log spacing, the ratio of neighbouring
    values minus 1."""
    spacing: Literal["linear", "log"] = "linear"
    """Steps of the bisection: differences (linear) or ratios (log)."""
    method: Method | Annotated[tuple[Method, ...], Field(min_length=1, max_length=3)] = "simulate"
    """Method that provides the metrics in `where`; each of several methods runs its own search."""
    votes: int = Field(default=1, ge=1, le=99)
    """Number of runs with different seeds at each value; the majority decides."""

    @property
    def methods(self) -> tuple[Method, ...]:
        """Return the methods that search."""
        return (self.method,) if isinstance(self.method, str) else self.method

    @cached_property
    def range(self) -> tuple[float, float]:
        """Return lowest and highest value as SI numbers."""
        low, high = (_si(self.key, value, "search.bounds") for value in self.bounds)
        return low, high

    @cached_property
    def precision(self) -> float:
        """Return the tolerance in the SI unit of the key; with log spacing a ratio minus 1."""
        if self.spacing == "linear":
            return _si(self.key, self.tolerance, "search.tolerance")
        if isinstance(self.tolerance, str):
            raise StudyError(
                f'search.tolerance = "{self.tolerance}": with log spacing it is a bare number, '
                "such as 0.05"
            )
        return float(self.tolerance)

    @cached_property
    def is_whole(self) -> bool:
        """Whether the key takes whole numbers only."""
        dimension = dimension_of_key(self.key)
        values = (*self.bounds, self.tolerance)
        return dimension.whole if dimension else all(isinstance(value, int) for value in values)

    def value(self, number: float) -> str | int | float:
        """Return the SI number of a value of the key in the notation of a scenario."""
        dimension = dimension_of_key(self.key)
        if dimension is None:
            return int(number) if float(number).is_integer() else number
        return dimension.format(round(number) if dimension.whole else number)


class Equilibrium(_Table):
    """[equilibrium]: the duration of runs is doubled until a metric is stationary over time."""

    metric: str = Field(
        default=USUAL_COURSE,
        description="metric that has to be "
        "stationary: " + ", ".join(f"`{name}`" for name in SLICE_METRICS),
    )
    longest: str
    """Longest run.duration; runs that are still not stationary are flagged as drifting."""
    confidence: float = Field(default=0.99, gt=0.5, lt=1)
    """Confidence of the test: of the stationary runs, a share of 1 - confidence is extended
    unnecessarily."""

    @cached_property
    def longest_s(self) -> float:
        """Return `longest` in seconds."""
        return _si("run.duration", self.longest, "equilibrium.longest")


class Repeat(_Table):
    """[repeat]: repetitions of the study with other random numbers."""

    seeds: int | tuple[int, ...] = 1
    """Number n of seeds, which are 1 to n, or a list of seeds."""
    sets: tuple[str, ...] = ()
    """Further keys of the scenario that are set to each seed, such as "faults.seed"; then every
    method, also analyse, runs once per seed."""


class Report(_Table):
    """[report]: contents of a report of the study."""

    show: tuple[str, ...] = ()
    """Metrics to draw, side by side; maps and tables show the first one. Default: the boundary of a
    search, else the peak occupancy of the top-of-rack switch, and on a fabric the event rate."""
    bars: Literal["deviation", "range"] = "deviation"
    """Error bars of means over seeds: one standard deviation, or the range from lowest to
    highest."""


TABLES: dict[str, type[_Table]] = {
    "search": Search,
    "equilibrium": Equilibrium,
    "repeat": Repeat,
    "report": Report,
}
"""Tables of a study file with fixed keys, by name."""


class StudyFile(_Table):
    """The tables of a study's file."""

    title: str = Field(default="", max_length=200)
    """One line for lists and reports."""
    description: str = Field(default="", max_length=10_000)
    """Purpose of the study."""
    figure: str = Field(default="", max_length=100)
    """Published figure that the study reproduces, such as "ATLAS study, fig. 3"."""
    scenario: str
    """Name of a scenario, or the path of its file, relative to the study's folder."""
    methods: tuple[Method, ...] = Field(default=("simulate",), min_length=1)
    """Methods for each point; measurements run on this machine one at a time, and nothing else is
    computed meanwhile."""
    set: dict[str, Any] = {}
    """Keys of the scenario that are set at all points where they apply."""
    grid: dict[str, Any] = {}
    """Axes: all combinations of their values."""
    zip: tuple[dict[str, Any], ...] = ()
    """Axes of several keys whose values change together."""
    variants: dict[str, dict[str, Any]] = {}
    """An axis of named steps, each with keys of its own."""
    search: Search | None = None
    """See [search]."""
    equilibrium: Equilibrium | None = None
    """See [equilibrium]."""
    repeat: Repeat = Field(default_factory=Repeat)
    """See [repeat]."""
    report: Report = Field(default_factory=Report)
    """See [report]."""
    quick: dict[str, Any] = {}
    """Tables that replace those of this file in the quick form."""

    @model_validator(mode="after")
    def _methods_once(self) -> Self:
        if len(set(self.methods)) < len(self.methods):
            raise ValueError("methods has a method twice")
        for method in self.search.methods if self.search else ():
            if method not in self.methods:
                raise ValueError(f'methods lacks "{method}", the method of search.method')
        return self


@dataclass(frozen=True)
class Study:
    """A validated study: all keys are known and all values parsed."""

    name: str
    title: str
    description: str
    figure: str
    base: Scenario
    """The scenario with the keys of [set] that are valid without the axes."""
    methods: tuple[str, ...]
    axes: tuple[Axis, ...]
    search: Search | None
    equilibrium: Equilibrium | None
    seeds: tuple[int, ...]
    common: CommonKeys
    """Keys of [set] that apply at only some points."""
    show: tuple[str, ...] = ()
    bars: str = "deviation"
    seed_sets: tuple[str, ...] = ()
    """Keys that are set to each seed, in addition to run.seed."""
    notes: tuple[str, ...] = ()
    """Sentences on keys of [set] that are left out at some points."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of steps of each axis."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def points(self) -> int:
        """Return the number of combinations of the axes."""
        return math.prod(self.shape)

    def indices(self) -> Iterator[tuple[int, ...]]:
        """Return all combinations of steps; the last axis changes fastest."""
        return itertools.product(*(range(len(axis)) for axis in self.axes))

    def is_seeded(self, method: str) -> bool:
        """Return whether a method has an answer for each seed, or one answer for all seeds."""
        return method in SEEDED or bool(self.seed_sets)

    def steps(self, index: tuple[int, ...]) -> dict[str, Any]:
        """Return the keys that the axes set at a point, and their values."""
        changes: dict[str, Any] = {}
        for axis, step in zip(self.axes, index, strict=True):
            changes |= axis.overrides(step)
        return changes

    def overrides(self, index: tuple[int, ...]) -> dict[str, Any]:
        """Return all keys that a point sets in `base`, also those of [set], and their values."""
        changes = self.steps(index)
        return self.common.additions(changes) | changes

    def scenario(self, index: tuple[int, ...]) -> Scenario:
        """Return the system at a point. Raises ScenarioError."""
        return override(self.base, self.overrides(index))

    @cached_property
    def hasher(self) -> ScenarioHasher:
        """Object that computes the scenario hashes of points."""
        return ScenarioHasher(self.base)

    @cached_property
    def saturation(self) -> Saturation | None:
        """Finds saturated points, whose offered rate exceeds the capacity; None on a fabric."""
        return kinds.saturation(self.base)

    @cached_property
    def condition(self) -> Condition:
        """Condition of the search, which all methods of the search can evaluate."""
        assert self.search is not None
        where, methods = self.search.where, self.search.methods
        first, *_ = [Condition.parse(where, method, self.parts) for method in methods]
        return first

    @property
    def parts(self) -> Parts:
        """Parts that the study's systems may have, for checks of metric names."""
        return ~Parts.NONE if CHOICES & set(self.keys) else self.base.parts

    @property
    def keys(self) -> list[str]:
        """Return the keys that axes and the search set."""
        keys = [key for axis in self.axes for key in axis.keys]
        return [*keys, self.search.key] if self.search else keys

    def assumptions(self) -> dict[str, str]:
        """Return `Scenario.assumptions` at the first point, without varied keys."""
        own = self.keys
        first = self.scenario((0,) * len(self.axes))
        return {key: value for key, value in first.assumptions().items() if key not in own}


def shipped_studies() -> dict[str, Path]:
    """Return the studies that come with daqloom, by name."""
    return package_files("studies")


def find_study(study: str | PathLike[str]) -> Path:
    """Return the file of a study by its name or path. Raises StudyError for an unknown name."""
    path = Path(study)
    if "/" in str(study) or path.suffix == ".toml" or path.exists():
        return path
    known = shipped_studies()
    if str(study) in known:
        return known[str(study)]
    hint = did_you_mean(str(study), known, "known are " + ", ".join(known))
    raise StudyError(
        f'there is no study "{str(study)[:80]}"; {hint} (a file is a path that ends in .toml)'
    )


def load_study(study: str | PathLike[str], *, quick: bool = False) -> Study:
    """Read a study by name or path; `quick` selects the quick form. Raises StudyError."""
    path = find_study(study)
    try:
        text = read_text(path, LARGEST_STUDY_BYTES)
    except ValueError as error:
        raise StudyError(str(error)) from None
    try:
        document = parse_toml(text)
        return _study(path, StudyFile.model_validate(_quick(document) if quick else document))
    except ValidationError as error:
        raise StudyError(*(f"{path}: {each}" for each in sentences_of(error))) from None
    except ScenarioError as error:
        raise StudyError(*(f"{path}: {each}" for each in error.mistakes)) from None
    except RecursionError:
        raise StudyError(f"{path} is nested too deeply; expected tables of keys") from None
    except ValueError as error:  # TomlError is one
        raise StudyError(f"{path} {error}") from None


def _quick(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the quick form: tables in [quick] are merged by key, variants and other values
    replaced."""
    quick = document.get("quick", {})
    if not isinstance(quick, dict):
        return dict(document)
    merged = dict(document)
    for name, value in quick.items():
        old = merged.get(name)
        if isinstance(old, dict) and isinstance(value, dict) and name != "variants":
            merged[name] = flatten(old) | flatten(value)
        else:
            merged[name] = value
    return merged


def _study(path: Path, file: StudyFile) -> Study:
    named = file.scenario
    if named.endswith(".toml") or "/" in named:
        named = str(path.parent / named)
    try:
        axes = _axes(file)
    except StudyError as error:
        raise StudyError(*error.mistakes, *_mistakes_of_set(named, flatten(file.set))) from None
    common = load_common(named, flatten(file.set), axes)
    return _create_study(common, file, path.stem)


def _mistakes_of_set(scenario: str, values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the mistakes in the scenario with [set], ignoring the axes."""
    try:
        load(scenario, values)
    except ScenarioError as error:
        return error.mistakes
    return ()


def study_of(base: Scenario, file: StudyFile, name: str) -> Study:
    """Return the study of `file` with `base` instead of the file's scenario and [set]. Raises
    StudyError, ScenarioError."""
    return _create_study(CommonKeys(base, {}, _axes(file)), file, name)


def _axes(file: StudyFile) -> tuple[Axis, ...]:
    """Return the axes of a study. Raises StudyError with the mistakes of all axes."""
    makers = [partial(cartesian, key, values) for key, values in flatten(file.grid).items()]
    makers += [partial(parallel_axis, flatten(table)) for table in file.zip if table]
    makers += [partial(variants, file.variants)] if file.variants else []
    axes: list[Axis] = []
    mistakes: list[str] = []
    for make in makers:
        try:
            axes.append(make())
        except StudyError as error:
            mistakes += error.mistakes
    if mistakes:
        raise StudyError(*mistakes)
    return tuple(axes)


def _create_study(common: CommonKeys, file: StudyFile, name: str) -> Study:
    study = Study(
        name=name,
        title=file.title or name,
        description=file.description,
        figure=file.figure,
        base=common.base,
        methods=file.methods,
        axes=tuple(common.axes),
        search=file.search,
        equilibrium=file.equilibrium,
        seeds=_seeds(file.repeat.seeds),
        show=file.report.show,
        bars=file.report.bars,
        seed_sets=file.repeat.sets,
        common=common,
        notes=tuple(common.notes()),
    )
    _check(study)
    return study


def _seeds(seeds: int | tuple[int, ...]) -> tuple[int, ...]:
    number = seeds if isinstance(seeds, int) else len(seeds)
    if 1 <= number <= MOST_SEEDS:
        chosen = tuple(range(1, seeds + 1)) if isinstance(seeds, int) else seeds
        if len(set(chosen)) == number and min(chosen) >= 0 and max(chosen) < SEEDS_END:
            return chosen
    raise StudyError(
        f"repeat.seeds = {str(seeds)[:80]}: expected a number of seeds, 1 to {MOST_SEEDS}, or a "
        f"list of at most {MOST_SEEDS} different numbers from 0 to {SEEDS_END - 1}"
    )


def _check(study: Study) -> None:
    answers = study.points * len(study.seeds) * len(study.methods)
    if answers > MOST_ANSWERS:
        raise StudyError(
            f"{' × '.join(str(n) for n in study.shape)} points, {len(study.seeds)} seeds: "
            f"at most {MOST_ANSWERS} answers are allowed"
        )
    if "measure" in study.methods:
        check.check_measurable(study.base)
    keys = study.keys
    if study.search:
        _check_search(study, study.search)
    if study.equilibrium:
        _check_equilibrium(study, study.equilibrium)
    for name in study.show:
        require_metric(name, study.methods, study.parts)
    for key in study.seed_sets:
        require_key(key, "repeat.sets: ")
    for key in {"run.seed", *study.seed_sets} & set(keys):
        raise StudyError(f"{key} is set by [repeat], not by an axis")
    for key in keys:
        if keys.count(key) > 1:
            raise StudyError(f"{key} is set twice")
    for index in _checked_points(study):  # the others are checked when they are computed
        study.scenario(index)


def _checked_points(study: Study) -> set[tuple[int, ...]]:
    """Return the points that are validated on load: first, last, and one for each variant."""
    first = tuple(0 for _ in study.shape)
    points = {first, tuple(n - 1 for n in study.shape)}
    for place, axis in enumerate(study.axes):
        if axis.labels:
            points |= {(*first[:place], step, *first[place + 1 :]) for step in range(len(axis))}
    return points


def _check_search(study: Study, search: Search) -> None:
    require_key(search.key, "search.key: ")
    _ = study.condition  # parsing now reports mistakes before any run
    low, high = search.range
    if not -math.inf < low < high < math.inf:
        raise StudyError(f"search.bounds = {list(search.bounds)}: expected a low and a high value")
    if not 0 < search.precision < math.inf:
        raise StudyError(f"search.tolerance = {search.tolerance!r} must be a number above 0")
    if search.spacing == "log" and low <= 0:
        raise StudyError("search.bounds: log spacing requires bounds above 0")
    if not math.isfinite(tolerances(low, high, search.precision, search.spacing)):
        raise StudyError(f"search.tolerance = {search.tolerance!r} is too small for the bounds")


def _check_equilibrium(study: Study, equilibrium: Equilibrium) -> None:
    courses = kinds.kind_of(study.base).courses
    if not courses:
        raise StudyError(
            f"equilibrium: a fabric such as {study.base.name} records no course over time; leave "
            "[equilibrium] out, and set run.warmup to when event building is stationary"
        )
    if equilibrium.metric not in courses:
        raise StudyError(
            f'equilibrium.metric: "{equilibrium.metric[:80]}" is not recorded over time; '
            f"use one of {', '.join(courses)}"
        )
    if equilibrium.longest_s < study.base.run.duration:
        raise StudyError(
            f'equilibrium.longest = "{equilibrium.longest}" is shorter than '
            f'run.duration = "{study.base.run.duration:g} s"; expected as long or longer'
        )


def _si(key: str, value: str | int | float, where: str) -> float:
    dimension = dimension_of_key(key)
    if dimension is None:
        if isinstance(value, str):
            raise StudyError(f'{where}: "{value}" is not a number, which {key} requires')
        return value
    try:
        return dimension.parse(value)
    except ValueError as error:
        raise StudyError(f'{where}: "{value}" {error}') from None


def sentences_of(error: ValidationError) -> list[str]:
    """Return a sentence on each invalid key of a `StudyFile`."""
    mistakes = mistakes_of(error)
    inside = {each["loc"][:-1] for each in mistakes}  # invalid entries count as absent
    kept = [e for e in mistakes if e["type"] != "too_short" or e["loc"] not in inside]
    of_keys = {each["loc"][:2]: each for each in reversed(kept)}
    return [_sentence(each) for each in reversed(of_keys.values())]


def _sentence(mistake: ErrorDetails) -> str:
    table = TABLES.get(str(next(iter(mistake["loc"]), "")), StudyFile)  # default: the whole file
    place = mistake["loc"] if table is StudyFile else mistake["loc"][:2]  # no type of value
    path = ".".join(str(part) for part in place)
    if mistake["type"] == "extra_forbidden":
        return f'unknown key "{path[:80]}"; known are {", ".join(table.model_fields)}'
    if mistake["type"] == "value_error":
        return str(mistake["ctx"]["error"])
    if mistake["type"] == "missing":
        meaning = meanings(table).get(str(mistake["loc"][-1]), "")
        expected = f"; expected the {meaning[:1].lower()}{meaning[1:]}" if meaning else ""
        return f"{path} is missing{expected}"
    message = mistake["msg"]
    return f"{path} = {str(mistake['input'])[:80]!r}: {message[:1].lower()}{message[1:]}"
