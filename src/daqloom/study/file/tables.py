"""Tables of a study file, as pydantic models, and sentences on mistakes in them."""

from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from daqloom.scenario.file.explain import mistakes_of
from daqloom.scenario.schema.part import meanings
from daqloom.simulate.slices import SLICE_METRICS
from daqloom.study import StudyError
from daqloom.study.file.axis import dimension_of_key
from daqloom.study.methods.all_methods import Method


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
        default="buffer_peak_bytes.tor",
        description="metric that has to be stationary: `" + "`, `".join(SLICE_METRICS) + "`",
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


_EXPECTED = dict.fromkeys(("int_parsing", "int_type"), "expected a whole number") | {
    "bool_parsing": "expected true or false",
    "bool_type": "expected true or false",
    "float_parsing": "expected a number",
    "float_type": "expected a number",
}
"""Ends of sentences by type of mistake, in place of those of pydantic."""


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
    message = _EXPECTED.get(mistake["type"], mistake["msg"])
    return f"{path} = {str(mistake['input'])[:80]!r}: {message[:1].lower()}{message[1:]}"
