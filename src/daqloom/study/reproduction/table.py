"""Published and computed values side by side, as rows of text."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from daqloom.study.reproduction.papers import PAPERS
from daqloom.study.reproduction.record import Numbers, Outcome, Record, Values

DEFAULT_ERROR = 0.05
"""Error of a published value without one, as a share of the value."""
RELATIONS = {"equal": "", "at least": "≥ ", "at most": "≤ "}
HEAD = ("number", "published", "ours", "deviation", "comes out")
NOTHING = "–"
DERIVED = " (derived)"


@dataclass(frozen=True)
class Comparison:
    """Published and computed value at one step; `step` is empty for a single number."""

    record: Record
    step: str
    published: float | None
    value: float | None
    low: float | None
    high: float | None
    seeds: int

    @property
    def deviation(self) -> float | None:
        """Return ours relative to the published value, minus 1; for % the difference in points."""
        if self.published is None or self.value is None:
            return None
        if self.record.unit == "%":
            return self.value - self.published
        return self.value / self.published - 1 if self.published else None

    @property
    def outcome(self) -> Outcome:
        """Return whether our interval and the published one overlap, or the bound is kept."""
        if self.value is None:
            return "not computed"
        if self.published is None:
            return "no value"
        if self.record.input:
            return "input"
        low = self.value if self.low is None else self.low
        high = self.value if self.high is None else self.high
        error, relation = self.record.error, self.record.relation
        if error is None:
            error = DEFAULT_ERROR * abs(self.published) if relation == "equal" else 0.0
        above = high >= self.published - error or relation == "at most"
        below = low <= self.published + error or relation == "at least"
        return "yes" if above and below else "no"


def comparisons(
    record: Record, ours: Values | None, *, all_steps: bool = False
) -> list[Comparison]:
    """Return the comparison of each published step, or, without any or for `all_steps`, of each
    step of ours."""
    published, seeds = _by_step(record.published), ours.seeds if ours else 0
    values, low, high = (
        _by_step(getattr(ours, name) if ours else None) for name in ("value", "low", "high")
    )
    steps = {**values, **published} if all_steps or not published else published
    return [
        Comparison(
            record,
            step,
            published.get(step),
            values.get(step),
            low.get(step),
            high.get(step),
            seeds,
        )
        for step in steps or ("",)
    ]


def _by_step(numbers: Numbers | None) -> Mapping[str, float]:
    if numbers is None:
        return {}
    return numbers if isinstance(numbers, dict) else {"": numbers}


def outcome(record: Record, ours: Values | None) -> Outcome:
    """Return the outcome of a record: no if any step does not come out."""
    found = [each.outcome for each in comparisons(record, ours)]
    return next((each for each in found if each == "no"), found[0])


def rows(
    record: Record, ours: Values | None, *, verdicts: bool = True
) -> Iterator[tuple[str, ...]]:
    """Yield the cells of `HEAD` for each step; the first cell has the step, if there is one.
    Without `verdicts`, as for the quick form, a row leaves open whether the number comes out."""
    for each in comparisons(record, ours):
        is_judged = verdicts and each.outcome != "no value"
        yield (
            f"at {each.step}" if each.step else "",
            published_text(each),
            ours_text(each),
            deviation_text(each),
            each.outcome if is_judged else NOTHING,
        )


def summary(record: Record, ours: Values | None) -> tuple[str, ...]:
    """Return the cells of `HEAD` after the first for a list: of a series, the number of steps and
    of those that come out."""
    found = comparisons(record, ours)
    if len(found) == 1:
        [each] = found
        _, published, _, deviation, comes_out = next(rows(record, ours))
        return published.removesuffix(DERIVED), value_text(each), deviation, comes_out
    if record.published is None:
        return NOTHING, f"{len(found)} values", NOTHING, NOTHING
    good = sum(each.outcome == "yes" for each in found)
    return f"{len(found)} values", f"{good} come out", NOTHING, outcome(record, ours)


def about(record: Record) -> Iterator[tuple[str, str]]:
    """Yield titles and texts of what a record states about its number."""
    yield "paper", f"{PAPERS[record.paper].citation}; {record.where}"
    yield "from", source(record)
    for title in ("input", "assumed", "reason", "section"):
        if text := getattr(record, title):
            yield title, text


def as_json(name: str, record: Record, ours: Values | None) -> dict[str, Any]:
    """Return a record and its comparisons as a JSON object, in the record's unit."""
    kept = record.model_dump(exclude={"ours", "stored", "published"})
    return {
        "name": name,
        **kept,
        "studies": source(record),
        "outcome": outcome(record, ours),
        "values": [
            {
                key: getattr(each, key)
                for key in ("step", "published", "value", "low", "high", "deviation", "outcome")
            }
            for each in comparisons(record, ours)
        ],
        "seeds": ours.seeds if ours else None,
    }


def place(record: Record) -> str:
    """Return paper and place: "ATLAS buffers, fig. 3"."""
    return f"{PAPERS[record.paper].short}, {record.where}"


def source(record: Record) -> str:
    """Return the studies that give the number, or where it comes from."""
    if record.ours is None:
        return "elsewhere"
    terms = record.ours.named_terms.values()
    named = (term.study or str(term.tables.get("scenario", "record")) for term in terms)
    return ", ".join(dict.fromkeys(named)) or "arithmetic"


def published_text(each: Comparison) -> str:
    """Return the published value with its relation, error and unit."""
    if each.published is None:
        return NOTHING
    error = f" ± {_digits(each.record.error)}" if each.record.error is not None else ""
    derived = DERIVED if each.record.derived else ""
    value = _with_unit(f"{_digits(each.published)}{error}", each)
    return f"{RELATIONS[each.record.relation]}{value}{derived}"


def ours_text(each: Comparison) -> str:
    """Return our value with its interval and unit."""
    if each.value is None:
        return NOTHING
    text = value_text(each)
    if each.low is not None and each.high is not None and each.low < each.high:
        return f"{text} ({_round(each.low, each)} to {_round(each.high, each)})"
    return f"{text} (one seed)" if each.seeds == 1 else text


def value_text(each: Comparison) -> str:
    """Return our value with its unit."""
    return NOTHING if each.value is None else _with_unit(_round(each.value, each), each)


def deviation_text(each: Comparison) -> str:
    """Return the deviation in per cent, or in points for shares."""
    if each.deviation is None:
        return NOTHING
    is_share = each.record.unit == "%"
    value = each.deviation if is_share else 100 * each.deviation
    size = abs(float(f"{value:.2g}")) or 1.0
    digits = min(max(0, 1 - math.floor(math.log10(size))), 2)
    text = f"{value:+.{digits}f}".replace("-", "−")
    return f"{text} {'points' if is_share else '%'}"


def _with_unit(text: str, each: Comparison) -> str:
    return f"{text} {each.record.unit}".rstrip()


def _digits(value: float) -> str:
    return f"{value:.10g}".replace("-", "−")


def _round(value: float, each: Comparison) -> str:
    """Return a value with four digits, fewer if the interval is wide."""
    width = (each.high or 0.0) - (each.low or 0.0)
    digits = 4
    if width > 0 and value:
        digits = min(max(math.ceil(math.log10(abs(value) / width)) + 2, 2), 4)
    return _digits(float(f"{value:.{digits}g}"))
