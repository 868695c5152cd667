"""Explanation of a change of rate in a run: sentences with numbers, ordered by how much of the
change each one explains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from daqloom.base.words import duration, join_names, plural
from daqloom.control.record.meter import LOSSES, WAITS
from daqloom.control.record.past import Past
from daqloom.control.record.record import MISSING
from daqloom.control.record.series import Columns
from daqloom.control.record.summary import clock
from daqloom.results.metrics import for_people, with_unit

REACH_S = 300.0
"""Time around the given one in which the change is searched."""
SIDES_S = (2.0, 5.0, 30.0, 120.0)
"""Times on each side of a change over which rates are averaged; the best one counts."""
NEAR_S = 30.0
"""Distance from the given time at which a change counts half."""
LATE_S = 15.0
"""Time before a change in which events are causes of it."""
LEAST_CHANGE = 0.05
RECOVERED = 0.95
MOST_EVENTS = 8
MOST_UNITS = 3
BARRIER = "wait_barrier_s"
_AWAITED = {
    "wait_source_s": "their sources",
    "wait_peer_s": "other units",
    BARRIER: "barriers",
    "wait_consumer_s": "their consumers",
}


@dataclass(frozen=True)
class Finding:
    """One sentence, and how much of the change it explains: 1 for all of it."""

    weight: float
    sentence: str
    about: str
    """Subject: rate, units, epochs, record, waits, losses, buffers, disk, latency."""


@dataclass(frozen=True)
class _Sides:
    """Bins before and after the change."""

    before: Columns
    after: Columns

    def each(self, name: str, how: Any = np.nansum) -> tuple[float, float]:
        """Return `how` of a column on both sides; nan where it has no number."""
        columns = (self.before[name], self.after[name])
        found = [each[~np.isnan(each)] for each in columns]
        return tuple(float(how(each)) if len(each) else np.nan for each in found)  # type: ignore[return-value]

    def per(self, name: str, by: str) -> tuple[float, float]:
        """Return the sums of a column divided by those of another on both sides; 0 without."""
        (a, b), (of_a, of_b) = np.nan_to_num(self.each(name)), np.nan_to_num(self.each(by))
        return float(a / of_a) if of_a else 0.0, float(b / of_b) if of_b else 0.0


def explain(
    past: Past, run: Columns, units: Columns, events: Iterable[Mapping[str, Any]], at_s: float
) -> list[Finding]:
    """Return what changed around `at_s`, first the rate itself. `run`, `units`: series, `events`:
    log of the run."""
    change = _change(run, at_s)
    if change is None:
        at = clock(past.about.began, at_s)
        missing = next((e["text"] for e in events if e["text"].startswith(MISSING)), "")
        why = f": {missing}" if missing else ""
        return [Finding(1.0, f"the series has no bin near {at}{why}", "record")]
    when, side_s = change
    sides = _sides(run, when, side_s)
    of_units = _sides(units, when, side_s)
    rate = sides.per("events", "width_s")
    found = list(_events(past, events, when, side_s))
    found += _epochs(sides)
    found += _gaps(past, run, when, side_s)
    found += _waits(sides, of_units, rate[1] < rate[0])
    found += _losses(sides)
    found += _buffers(sides, of_units)
    found += _latency(sides)
    found.sort(key=lambda each: -each.weight)
    return [Finding(1.0, _rate(past, run, when, rate, sides), "rate"), *found]


def _change(run: Columns, at_s: float) -> tuple[float, float] | None:
    """Return the time near `at_s` at which the mean rates before and after differ most, and the
    time on each side over which they do."""
    begins_s, widths_s = run["time_s"], run["width_s"]
    if not len(begins_s):
        return None
    events = np.r_[0.0, np.cumsum(np.nan_to_num(run["events"]))]
    lengths_s = np.r_[0.0, np.cumsum(widths_s)]
    best = (0.0, 0.0, 0.0)
    width_s = float(np.median(widths_s))
    scale = min(1.0, width_s)  # bins of a simulation are short
    for reach_s in SIDES_S:
        side_s = max(scale * reach_s, 2 * width_s)
        near = np.flatnonzero(np.abs(begins_s - at_s) <= scale * REACH_S + side_s)
        if not len(near):
            return None
        first = np.searchsorted(begins_s, begins_s[near] - side_s)
        last = np.searchsorted(begins_s, begins_s[near] + side_s)
        before = (events[near] - events[first]) / np.maximum(
            lengths_s[near] - lengths_s[first], 1e-12
        )
        after = (events[last] - events[near]) / np.maximum(lengths_s[last] - lengths_s[near], 1e-12)
        steps = np.abs(after - before) / np.maximum(np.maximum(after, before), 1e-9)
        steps *= np.where(after < before, 1.0, 0.5)  # the question is mostly why a rate fell
        steps[(first == near) | (last == near)] = 0.0
        weighted = steps / (1 + ((begins_s[near] - at_s) / (scale * NEAR_S)) ** 2)
        place = int(np.argmax(weighted))
        around = np.abs(begins_s[near] - begins_s[near[place]]) <= side_s
        exact = float(begins_s[near[np.argmax(np.where(around, steps, 0.0))]])
        best = max(best, (float(weighted[place]), exact, side_s))
    return best[1:] if best[0] else (at_s, scale * SIDES_S[-1])


def _sides(columns: Columns, when: float, side_s: float) -> _Sides:
    begins_s = columns["time_s"]

    def part(low: float, high: float) -> Columns:
        chosen = (begins_s >= low - 1e-9) & (begins_s < high - 1e-9)
        return {name: values[chosen] for name, values in columns.items()}

    return _Sides(part(when - side_s, when), part(when, when + side_s))


def _rate(past: Past, run: Columns, when: float, rate: tuple[float, float], sides: _Sides) -> str:
    began, (before, after) = past.about.began, rate
    names = [for_people("event_rate_hz", each) for each in rate]
    if abs(after - before) < LEAST_CHANGE * max(before, after, 1e-9):
        return f"{clock(began, when)}: the event rate hardly changed: {names[0]}, then {names[1]}"
    share = f", {100 * (after / before - 1):+.0f} %" if before else ""
    bits = [for_people("throughput_bps", 8 * each) for each in sides.per("bytes", "width_s")]
    text = (
        f"{clock(began, when)}: the event rate went from {names[0]} to {names[1]}{share} "
        f"(throughput from {bits[0]} to {bits[1]})"
    )
    if after < before:
        rates = run["events"] / run["width_s"]
        again = np.flatnonzero((run["time_s"] > when) & (rates >= RECOVERED * before))
        if len(again):
            text += f"; back at {clock(began, float(run['time_s'][again[0]]))}"
    return text


def _events(
    past: Past, events: Iterable[Mapping[str, Any]], when: float, side_s: float
) -> Iterator[Finding]:
    """Yield what the log has near the change: losses, faults, orders of the operator, and run
    controls that replace a killed one."""
    reach_s = max(2 * side_s, LATE_S * min(1.0, side_s))
    near = [each for each in events if when - reach_s <= each["time_s"] <= when + side_s]
    listed = [
        each
        for each in near
        if each.get("trouble")
        or each.get("about") == "fault"
        or each["text"].startswith(("the operator", "halting: ", "attaching: "))
    ]
    for place, each in enumerate(listed[:MOST_EVENTS]):
        distance = abs(each["time_s"] - when) / (2 * reach_s)
        yield Finding(
            (1.1 if each.get("lost") is not None else 1.05) - distance - 1e-3 * place,
            f"{clock(past.about.began, each['time_s'])}: {each['text']}",
            "units",
        )


def _epochs(sides: _Sides) -> Iterator[Finding]:
    (first, last), (members, left) = sides.each("epoch", np.max), sides.each("members", np.max)
    regroupings = np.nan_to_num(sides.each("regroupings")[1])
    fewest = sides.each("members", np.min)[1]
    is_running = np.array([each == "running" for each in sides.after["phase"]], dtype=bool)
    idle_s = float(np.sum(sides.after["width_s"][~is_running]))
    if last > first or regroupings:
        share = idle_s / max(float(np.sum(sides.after["width_s"])), 1e-9)
        yield Finding(
            share,
            f"epoch {first:.0f} became {last:.0f} by {plural(int(regroupings), 'regrouping')}"
            + (f"; {idle_s:.0f} s of bins ended outside of the phase running" if idle_s else ""),
            "epochs",
        )
    if members > fewest:
        yield Finding(
            (members - fewest) / members,
            f"members fell from {members:.0f} to {fewest:.0f}"
            + (f", and rose to {left:.0f}" if left > fewest else ""),
            "units",
        )


def _gaps(past: Past, run: Columns, when: float, side_s: float) -> Iterator[Finding]:
    ends_s = run["time_s"] + run["width_s"]
    gaps = run["time_s"][1:] - ends_s[:-1]
    for place in np.flatnonzero(gaps > 2.0):
        if abs(ends_s[place] - when) <= side_s or abs(run["time_s"][place + 1] - when) <= side_s:
            yield Finding(
                1.0,
                f"{clock(past.about.began, ends_s[place])}: no bins for {duration(gaps[place])}: "
                "the run control was away, or the disk took no record",
                "record",
            )


def _waits(sides: _Sides, units: _Sides, has_fallen: bool) -> Iterator[Finding]:
    """Yield the waits that grew while the rate fell, or shrank while it rose."""
    for name in WAITS:
        before, after = sides.per(name, "unit_s")
        if (after - before if has_fallen else before - after) < LEAST_CHANGE:
            continue
        text = f"units waited for {_AWAITED[name]} {after:.0%} of the time, {before:.0%} before"
        text += _most(units, name) if has_fallen else ""
        yield Finding(abs(after - before) * (0.8 if name == BARRIER else 0.9), text, "waits")


def _most(units: _Sides, name: str) -> str:
    """Return the units with the largest share of a wait after the change; for barriers, with the
    smallest share: the others wait for them."""
    numbers = np.unique(units.after["unit"])
    shares = []
    for number in numbers:
        chosen = units.after["unit"] == number
        length_s = float(np.nansum(units.after["unit_s"][chosen]))
        if length_s > 0:
            shares.append((float(np.nansum(units.after[name][chosen])) / length_s, int(number)))
    if len(shares) < 2:
        return ""
    is_barrier = name == BARRIER
    shares.sort(reverse=not is_barrier)
    named = join_names([f"unit {unit} ({share:.0%})" for share, unit in shares[:MOST_UNITS]])
    return f"; least {named}, for which others wait" if is_barrier else f"; most {named}"


def _losses(sides: _Sides) -> Iterator[Finding]:
    built = max(*sides.per("events", "width_s"), 1e-9)
    for cause in LOSSES:
        before, after = sides.per(cause, "width_s")
        if after > before and (count := sides.each(cause)[1]) >= 1:
            share = after / (after + built)
            text = f"{count:,.0f} events were {cause.replace('_', ' ')} after it"
            text += f", {sides.each(cause)[0]:,.0f} before" if before else ""
            yield Finding(min(1.0, share), text, "losses")


def _buffers(sides: _Sides, units: _Sides) -> Iterator[Finding]:
    for name, what in (("source_fill", "source"), ("output_fill", "output")):
        before, after = sides.each(name, np.median)
        if after >= 0.9 > before:
            column = units.after[name]
            full = np.unique(units.after["unit"][np.nan_to_num(column) >= 0.9]).astype(int)
            names = join_names([str(unit) for unit in full[:MOST_UNITS]]) if len(full) else "?"
            more = f" and {len(full) - MOST_UNITS} more" if len(full) > MOST_UNITS else ""
            yield Finding(
                0.5,
                f"{what} buffers filled from {before:.0%} to {after:.0%} (unit {names}{more})",
                "buffers",
            )
    before, after = sides.each("disk_free_bytes", np.min)
    if after < before and after < max(1e9, 0.02 * before):
        yield Finding(
            0.85,
            f"the disk had {with_unit(after, 'B')} left, {with_unit(before, 'B')} before",
            "disk",
        )


def _latency(sides: _Sides) -> Iterator[Finding]:
    before, after = sides.each("latency_p99_s", np.median)
    if before > 0 and after > 0 and not 0.67 < after / before < 1.5:
        names = [for_people("collection_latency_s.p99", each) for each in (before, after)]
        yield Finding(0.04, f"the 99 % latency went from {names[0]} to {names[1]}", "latency")
