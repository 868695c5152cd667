"""What the searches of a study found, in words: one line for each point."""

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping

from daqloom.report import style
from daqloom.study.file import search_bounds as unbounded
from daqloom.study.file.axis import dimension_of_key
from daqloom.study.file.bisection import Boundary
from daqloom.study.file.file import Search, Study
from daqloom.study.run.program import Task

MOST = 40
"""Lines; the report has all points."""


def answers(study: Study, boundaries: Mapping[Task, Boundary]) -> list[str]:
    """A heading, then the points in the order of the study, all seeds of a point on one line. Empty
    where there was no search, or none that ended."""
    search = study.search
    if search is None or not boundaries:
        return []
    by_point: dict[tuple[int, ...], dict[str, list[Boundary]]] = {}
    for task in sorted(boundaries, key=lambda task: task.index):
        of_point = by_point.setdefault(task.index, {})
        of_point.setdefault(task.method, []).append(boundaries[task])
    what = f"{search.find} {search.key} with {search.where}"
    if not study.axes:
        [found] = by_point.values()
        return [f"{what}: {_answer(search, found)}"]
    lines = [
        f"  {_place(study, index)}: {_answer(search, each)}" for index, each in by_point.items()
    ]
    if len(lines) > MOST:
        lines[MOST:] = [f"  and {len(lines) - MOST} points more: see `daqloom report`"]
    return [f"{what}:", *lines]


def _place(study: Study, index: tuple[int, ...]) -> str:
    """The steps of all axes; of variants their names."""
    told: list[str] = []
    for axis, step in zip(study.axes, index, strict=True):
        if axis.labels:
            told.append(str(axis.labels[step]))
        else:
            told += [f"{key} = {value}" for key, value in axis.overrides(step).items()]
    return ", ".join(told)


def _answer(search: Search, found: Mapping[str, list[Boundary]]) -> str:
    """All seeds, by method where several search."""
    told = {method: "; ".join(_parts(search, each)) for method, each in found.items()}
    if len(search.methods) == 1:
        return "".join(told.values())
    return "; ".join(f"{method} {answer}" for method, answer in told.items())


def _parts(search: Search, found: list[Boundary]) -> Iterator[str]:
    values = [each.value for each in found if each.status == "found" and each.value is not None]
    of_seeds = "" if len(values) == len(found) else f" of {len(found)}"
    if len(found) == 1 and values:
        [one] = found
        yield f"{_text(search, values[0])} ({_bracket(search, one)})"
    elif values:
        spread = f"{_text(search, min(values))} to {_text(search, max(values))}"
        mean = _text(search, statistics.fmean(values))
        yield f"{mean} on average ({spread}, {len(values)}{of_seeds} seeds)"
    low, high = (_text(search, bound) for bound in search.range)
    for status, count in sorted(Counter(each.status for each in found).items()):
        if status != "found":
            seeds = f" ({count} of {len(found)} seeds)" if len(found) > 1 else ""
            yield unbounded.word(status, search.find, low, high) + seeds


def _bracket(search: Search, one: Boundary) -> str:
    fails = one.lower if search.find == "smallest" else one.upper
    assert fails is not None
    return f"not with {_text(search, fails)}"


def _text(search: Search, value: float) -> str:
    """A value of the key that is searched, with its unit."""
    dimension = dimension_of_key(search.key)
    if dimension is None:
        return f"{value:.5g}"
    divisor, unit = style.prefixed(dimension.unit, value)
    return f"{value / divisor:.4g} {unit}".rstrip()
