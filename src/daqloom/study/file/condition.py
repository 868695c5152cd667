"""Conditions on results, such as "packets_dropped == 0 and collection_latency_s.p99 <= 2 ms"."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from daqloom.base.words import did_you_mean
from daqloom.results.metrics import Metric, find_declaration, flatten, unknown_sentence
from daqloom.results.result import METHODS, Number, Result
from daqloom.scenario.quantities import FREQUENCY, RATE, SIZE, TIME, Dimension
from daqloom.scenario.schema.parts import Parts
from daqloom.study import StudyError

_COMPARE: dict[str, Callable[[Number, Number], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_SHAPE = 'write METRIC COMPARISON NUMBER, such as "collection_latency_s.p99 <= 2 ms"'
_TERM = re.compile(r"\s*([A-Za-z0-9_.-]+?)\s*(==|!=|<=|>=|<|>)\s*([^<>=!]+?)\s*")
_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_LONGEST = 1000

_DIMENSIONS: dict[str, Dimension] = {
    "s": TIME,
    "Hz": FREQUENCY,
    "B": SIZE,
    "bit/s": replace(RATE, minimum=0.0),
}
"""Dimension of the compared number by the metric's unit; counts and shares have plain numbers."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of a metric with a number: `limit` in the metric's unit, `text` as written."""

    metric: str
    comparison: str
    limit: Number
    text: str = field(compare=False)

    def holds(self, result: Result) -> bool:
        """Return whether the comparison is true for `result`. It is false if the result lacks the
        metric, such as a latency if no event was built. Raises StudyError if the result has other
        metrics with the same first part, because then the name is wrong."""
        value = result.metric(self.metric)
        if value is None and result.metrics.get(self.metric.partition(".")[0]):
            hint = did_you_mean(self.metric, flatten(result.metrics), "`--json` prints all")
            raise StudyError(
                f'the condition "{self}" cannot be evaluated: this result of {result.scenario} has '
                f"no {self.metric}; {hint}"
            )
        return value is not None and _COMPARE[self.comparison](value, self.limit)

    def __str__(self) -> str:
        return f"{self.metric} {self.comparison} {self.text}"


@dataclass(frozen=True, slots=True)
class Condition:
    """Comparisons that must all be true. `str` gives text that parses to the same condition."""

    comparisons: tuple[Comparison, ...]

    @classmethod
    def parse(cls, text: str, method: str, parts: Parts = ~Parts.NONE) -> Condition:
        """Parse comparisons joined by " and ", for results of `method` for `parts`. A number
        without unit is in the metric's SI unit; units may have the prefixes that a scenario allows
        ("2 ms", "5 MB", "25 Gb/s"). Raises StudyError for a metric that is unknown or that `method`
        does not provide, and for text that is no comparison."""
        if method not in METHODS:
            raise StudyError(f'"{method}" is not a method; known are {", ".join(METHODS)}')
        if len(text) > _LONGEST:
            raise StudyError(f"a condition has at most {_LONGEST} characters, this has {len(text)}")
        return cls(tuple(_parse(part, method, parts) for part in re.split(r"\sand\s", text)))

    def holds(self, result: Result) -> bool:
        """Return whether all comparisons hold for `result`. Raises StudyError as
        `Comparison.holds`."""
        outcomes = [comparison.holds(result) for comparison in self.comparisons]
        return all(outcomes)

    def __str__(self) -> str:
        return " and ".join(map(str, self.comparisons))


def _parse(text: str, method: str, parts: Parts) -> Comparison:
    match = _TERM.fullmatch(text)
    if match is None:
        raise StudyError(f'"{text.strip()}" is not a condition; {_SHAPE}')
    name, comparison, number = match.groups()
    metric = require_metric(name, (method,), parts)
    try:
        limit = _limit(number, metric)
    except ValueError as error:
        raise StudyError(f'the number of the condition "{text.strip()}" {error}') from None
    return Comparison(name, comparison, limit, number)


def require_metric(name: str, methods: Collection[str], parts: Parts) -> Metric:
    """Return the declaration of a metric. Raises StudyError if it is unknown, or if none of
    `methods` provides it for a system with these `parts`."""
    metric = find_declaration(name)
    if metric is None:
        raise StudyError(unknown_sentence(name))
    by_method = [metric.given_by(method) for method in methods]
    if not any(parts & each for each in by_method):
        kind = f" for this system ({parts})" if any(by_method) else ""
        raise StudyError(
            f"{name} is not given by {' or '.join(methods)}{kind}, only by {metric.givers()}; use "
            "another method or another metric"
        )
    return metric


def _limit(text: str, metric: Metric) -> Number:
    """Return the number in the metric's unit. Raises ValueError (a sentence without subject)."""
    dimension = _DIMENSIONS.get(metric.unit)
    counted = dimension is None and metric.unit != "1"
    number = text.removesuffix(metric.unit).rstrip() if counted else text
    if _NUMBER.fullmatch(number):
        if not math.isfinite(float(number)):
            raise ValueError("is not finite")
        return int(number) if number.isdigit() else float(number)
    if dimension is not None:
        return dimension.parse(text)
    expected = f"a number of {metric.unit}" if counted else "a plain number"
    raise ValueError(f"is not understood; {metric.name} is {expected}, 0 or more")
