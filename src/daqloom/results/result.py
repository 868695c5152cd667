"""The result that every method returns."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from daqloom.base import notebook
from daqloom.base.version import commit, installed_version
from daqloom.results import metrics as metric_names
from daqloom.results.metrics import find_declaration, flatten, for_people, with_unit

SCHEMA = 1
METHODS = ("analyse", "simulate", "measure")

Number = int | float
Numbers = Mapping[str, Number | Mapping[str, Number]]

_MAX_TEXT = 256 * 1024 * 1024


class ResultError(ValueError):
    """A result is invalid. The message is one sentence."""


class StoppedError(KeyboardInterrupt):
    """Ctrl-C or SIGTERM ended a run early; the message is one sentence. `result` is the partial
    result, with `interrupted` set, or None if counting had not begun."""

    def __init__(self, message: str, result: Result | None = None) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one method for one scenario.

    `metrics` contains the numbers declared in `daqloom.results.metrics`, nested at most one level,
    without unknown numbers. `assumed` maps scenario keys left at a guessed default to their values
    as text; see `Scenario.assumptions`. `analysis` contains the closed forms of `analyse`.
    `series` contains named tables with columns of equal length (lists or arrays), such as
    `{"tor_occupancy": {"time_s": …, "max_bytes": …}}`; JSON includes them on request only.

    Raises `ResultError` for an undeclared metric or a number that is not finite.
    """

    scenario: str
    scenario_hash: str
    method: str
    metrics: Numbers
    engine: Mapping[str, Number] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    assumed: Mapping[str, str] = field(default_factory=dict)
    analysis: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    series: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seed: int | None = None
    fingerprint: str = ""
    """Hash of the events of a simulation, in order; empty for other methods."""
    interrupted: bool = False
    """Whether Ctrl-C ended the run early; a warning reports the time."""
    failure: str = ""
    """Reason why a measurement failed before its end; the numbers cover the time until then."""
    version: str = field(default_factory=installed_version)
    commit: str = field(default_factory=commit, compare=False)
    """Commit of daqloom's sources; see `daqloom.base.version`. Empty if unknown."""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ResultError(f"method {self.method!r} is none of {', '.join(METHODS)}")
        for name in metric_names.unknown(self.metrics):
            raise ResultError(f"metrics.{name} is not a metric of schema {SCHEMA}")
        for block, numbers in (("metrics", self.metrics), ("engine", self.engine)):
            for name, value in flatten(numbers).items():
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise ResultError(f"{block}.{name} is {value!r}, expected a number")
                if not math.isfinite(value):
                    raise ResultError(f"{block}.{name} is {value}: a number not known is left out")

    def metric(self, path: str) -> Number | None:
        """Return the metric with a dotted name such as `buffer_peak_bytes.tor`; None if this result
        lacks it. Raises `ResultError` for an undeclared name and suggests the most similar one."""
        value = flatten(self.metrics).get(path)
        if value is None and find_declaration(path) is None:
            raise ResultError(metric_names.unknown_sentence(path))
        return value if isinstance(value, int | float) else None

    def _repr_html_(self) -> str:
        seed = "" if self.seed is None else f", seed {self.seed}"
        title = f"{self.method}{seed}" + (", interrupted" if self.interrupted else "")
        parts = [notebook.heading(self.scenario, title)]
        if self.analysis:
            parts.append(notebook.table(FORM_HEAD, form_rows(self.analysis)))
        parts.append(notebook.table(METRIC_HEAD, metric_rows(self.method, self.metrics)))
        return "\n".join([*parts, *notebook.notes(self.warnings)])

    def to_dict(self, *, series: bool | Sequence[str] = False) -> dict[str, Any]:
        """Return a dictionary without empty blocks. `series`: True for all, or names."""
        names = self.series if series is True else series or ()
        fields = {name: getattr(self, name) for name in _FIELDS} | {
            "warnings": list(self.warnings),
            "assumed": dict(self.assumed),
            "series": {name: self.series[name] for name in names if name in self.series},
        }
        kept = {n: v for n, v in fields.items() if (v if n in _OPTIONAL else v is not None)}
        return {"schema": SCHEMA, **kept}

    def to_json(self, *, series: bool | Sequence[str] = False, indent: int | None = 2) -> str:
        """Return one JSON object without NaN. `series` adds all (True) or named time series."""
        return json.dumps(
            self.to_dict(series=series), indent=indent, allow_nan=False, default=_plain
        )

    @classmethod
    def from_json(cls, text: str) -> Result:
        """Read the text that `to_json` returns. Raises `ResultError` for other texts."""
        if len(text) > _MAX_TEXT:
            raise ResultError(f"a result has at most {_MAX_TEXT} characters, this has {len(text)}")
        try:
            record = json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise ResultError(f"not a result: {error}") from None
        return cls.from_dict(record)

    @classmethod
    def from_dict(cls, record: object) -> Result:
        """The inverse of `to_dict`. Raises `ResultError`."""
        if not isinstance(record, dict):
            raise ResultError(f"a result is an object, found {type(record).__name__}")
        if record.get("schema") != SCHEMA:
            raise ResultError(f"schema is {record.get('schema')!r}, expected {SCHEMA}")
        fields = {name: value for name, value in record.items() if name != "schema"}
        for name in fields.keys() - _FIELDS.keys():
            raise ResultError(f"{name!r} is not a field of a result")
        for name in ("scenario", "scenario_hash", "method", "version", "metrics"):
            if name not in fields:
                raise ResultError(f"{name!r} is missing from the result")
        for name, value in fields.items():
            _check_type(name, value, _FIELDS[name])
        for sentence in fields.get("warnings", []):
            _check_type("warnings", sentence, str)
        for block, kind in (("assumed", str), ("analysis", dict), ("series", dict)):
            for name, value in fields.get(block, {}).items():
                _check_type(f"{block}.{name}", value, kind)
        return cls(**{"commit": ""} | fields)


_FIELDS: dict[str, type] = {
    "scenario": str,
    "scenario_hash": str,
    "method": str,
    "seed": int,
    "fingerprint": str,
    "interrupted": bool,
    "failure": str,
    "version": str,
    "commit": str,
    "metrics": dict,
    "analysis": dict,
    "engine": dict,
    "warnings": list,
    "assumed": dict,
    "series": dict,
}
"""Fields in reading order, with their types in JSON."""
_OPTIONAL = {"fingerprint", "interrupted", "failure", "commit", "analysis", "assumed", "series"}
"""Fields that are left out where empty."""


def _check_type(name: str, value: object, expected: type) -> None:
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
        raise ResultError(f"{name} is {type(value).__name__}, expected {expected.__name__}")


def _no_constant(name: str) -> float:
    raise ResultError(f"{name} is not a number that a result may carry")


def _plain(value: Any) -> Any:
    """Convert Numpy scalars and arrays to Python numbers and lists, without importing Numpy."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


METRIC_HEAD = ("metric", "value")
FORM_HEAD = ("closed form", "value", "applies")


def metric_rows(method: str, metrics: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (name, value with unit) for each metric in the table of a method's result."""
    shown = _few(flatten(_for_table(method, metrics)))
    return [(name, for_people(name, value)) for name, value in shown]


_UNITS = {"bytes": "B", "s": "s", "hz": "Hz", "bps": "bit/s", "share": "1"}
"""Units of numbers in `analysis`, keyed by the last part of the name."""


def form_rows(analysis: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Name, value and validity of each closed form."""
    return list(_forms(analysis))


def _for_table(method: str, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return metrics for a table, for a measurement without event fates and zero waiting shares."""
    shown: dict[str, Any] = dict(metrics)
    if method != "measure":
        return shown
    shown.pop("events_accounted", None)
    if not shown.get("idle_share"):
        shown.pop("idle_share", None)
    waiting = {why: share for why, share in shown.get("waiting_share", {}).items() if share}
    return {**shown, "waiting_share": waiting} if "waiting_share" in shown else shown


MOST_OF_A_KIND = 8
"""Maximum metrics per kind of numbered link or port in a table; a rack has hundreds."""


def _few(metrics: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    counts = Counter(root for root, numbered in map(_kind, metrics) if numbered)
    for name, value in metrics.items():
        root, numbered = _kind(name)
        if not numbered or counts[root] <= MOST_OF_A_KIND:
            yield name, value


def _kind(name: str) -> tuple[str, bool]:
    root, *parts = name.split(".")
    return root, any(part.isdigit() for part in parts)


def _forms(analysis: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for name, entry in analysis.items():
        if _unit(name):  # one number each for several places
            for place, value in entry.items():
                yield f"{name}.{place}", with_unit(value, _unit(name)), ""
            continue
        main = "value_bytes" if "value_bytes" in entry else next(iter(entry))
        holds = ""
        if "valid" in entry:
            holds = "yes" if entry["valid"] else f"no: {entry.get('failing', '')}"
        if "satisfied" in entry:
            size = entry.get("buffer_bytes")
            buffer = "a buffer without limit" if size is None else with_unit(size, "B")
            verdict = "safe" if entry["satisfied"] else "at risk"
            holds += f" · windows − BDP: {verdict} in {buffer}"
        yield name, with_unit(entry[main], _unit(main)), holds


def _unit(name: str) -> str:
    return _UNITS.get(name.rpartition("_")[2], "")
