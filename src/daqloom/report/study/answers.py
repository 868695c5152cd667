"""Results of a study's searches in words, one line for each point."""

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping

from daqloom.report import style
from daqloom.study.file import search_bounds
from daqloom.study.file.axis import dimension_of_key
from daqloom.study.file.bisection import Boundary
from daqloom.study.file.study import Study
from daqloom.study.file.tables import Search
from daqloom.study.run.program import Task

MOST = 40
"""Limit on the lines of text; the report lists all points."""


def answers(study: Study, boundaries: Mapping[Task, Boundary]) -> list[str]:
    """Return a heading and a line for each point with all its seeds, in the study's order; empty
    without a search, or before the first search has ended."""
    search = study.search
    if search is None or not boundaries:
        return []
    by_point: dict[tuple[int, ...], dict[str, list[Boundary]]] = {}
    for task in sorted(boundaries, key=lambda task: task.index):
        of_point = by_point.setdefault(task.index, {})
        of_point.setdefault(task.method, []).append(boundaries[task])
    heading = f"{search.find} {search.key} with {search.where}"
    if not study.axes:
        [found] = by_point.values()
        return [f"{heading}: {_answer(search, found)}"]
    lines = [
        f"  {_place(study, index)}: {_answer(search, each)}" for index, each in by_point.items()
    ]
    if len(lines) > MOST:
        lines[MOST:] = [f"  and {len(lines) - MOST} points more: see `daqloom report`"]
    return [f"{heading}:", *lines]


def _place(study: Study, index: tuple[int, ...]) -> str:
    """Return the steps of all axes as text; for variants, their names."""
    steps: list[str] = []
    for axis, step in zip(study.axes, index, strict=True):
        named = [str(axis.labels[step])] if axis.labels else []
        steps += named or [f"{key} = {value}" for key, value in axis.overrides(step).items()]
    return ", ".join(steps)


def _answer(search: Search, found: Mapping[str, list[Boundary]]) -> str:
    """Return the result for all seeds, separately for each method if there are several."""
    answers = {method: "; ".join(_parts(search, each)) for method, each in found.items()}
    if len(search.methods) == 1:
        return "".join(answers.values())
    return "; ".join(f"{method} {answer}" for method, answer in answers.items())


def _parts(search: Search, results: list[Boundary]) -> Iterator[str]:
    values = [each.value for each in results if each.status == "found" and each.value is not None]
    count = str(len(values)) + ("" if len(values) == len(results) else f" of {len(results)}")
    if len(results) == 1 and values:
        fails = results[0].lower if search.find == "smallest" else results[0].upper
        assert fails is not None
        yield f"{_text(search, values[0])} (not with {_text(search, fails)})"
    elif values:
        spread = f"{_text(search, min(values))} to {_text(search, max(values))}"
        mean = _text(search, statistics.fmean(values))
        yield f"{mean} on average ({spread}, {count} seeds)"
    low, high = (_text(search, bound) for bound in search.range)
    for status, number in sorted(Counter(each.status for each in results).items()):
        if status != "found":
            seeds = f" ({number} of {len(results)} seeds)" if len(results) > 1 else ""
            yield search_bounds.word(status, search.find, low, high) + seeds


def _text(search: Search, value: float) -> str:
    """Return a value of the searched key with its unit."""
    dimension = dimension_of_key(search.key)
    if dimension is None:
        return f"{value:.5g}"
    divisor, unit = style.prefix(dimension.unit, value)
    return f"{value / divisor:.4g} {unit}".rstrip()
