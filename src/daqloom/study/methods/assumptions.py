"""Effects of assumed values on a metric, by closed forms, with one value changed at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal, get_args, get_origin

from daqloom.analyse.peak import exact
from daqloom.analyse.system import System
from daqloom.deployment.scenarios import override
from daqloom.scenario import Scenario
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.file.explain import dimension_at
from daqloom.scenario.schema.choices import keys_of
from daqloom.scenario.schema.parts import Parts
from daqloom.study.methods.methods import analyse
from daqloom.study.methods.same_events import draw_arrivals, formula_occupancy

PEAK, BOUND = "buffer_peak_bytes.tor", "event_rate_bound_hz"
LARGER, SMALLER = 10, 2
"""Factor by which an assumed number is multiplied, and divisor."""
LEAST_SHARE = 0.005
"""Smallest relative change of the metric that counts as an effect."""
MOST_EVENTS = 100_000
"""Limit on the random events of a closed form."""


@dataclass(frozen=True)
class Change:
    """Another value of a key. `result` is the metric with it; None if the system is then too slow
    for its event rate."""

    value: str
    result: float | None


@dataclass(frozen=True)
class Effect:
    """An assumed value, such as "800 Gb/s", and the metric with others."""

    key: str
    value: str
    changes: tuple[Change, ...]

    def strength(self, base: float) -> float:
        """Return the largest ratio (logarithm) of the metric to `base`, infinite if too slow."""
        results = [change.result for change in self.changes]
        if None in results:
            return math.inf
        return max((abs(math.log(each / base)) for each in results if each), default=math.inf)


@dataclass(frozen=True)
class Effects:
    """Effects of the assumed values of a scenario on a metric, the strongest first."""

    metric: str
    is_random: bool
    """Whether the closed form has the times of random events, not of regular ones."""
    base: float
    """The metric with the assumed values."""
    moving: tuple[Effect, ...]
    unknown: dict[str, str]
    """Assumed values without an effect on the closed form, key → text."""


def effects(
    scenario: Scenario,
    metric: str,
    assumed: Mapping[str, str],
    progress: Callable[[float], None] = lambda _: None,
) -> Effects | None:
    """Return the effects of `assumed` values (key → text) on a metric: numbers become ten times as
    large and half as large, names become each other name. None if no closed form gives the metric
    of the scenario. The peak of a rack with Poisson arrivals is that of random events."""
    form = _ClosedForm(scenario, metric)
    try:
        base = form.value(scenario)
    except ScenarioError:
        return None
    if not base:
        return None
    moving: list[Effect] = []
    unknown: dict[str, str] = {}
    for number, (key, value) in enumerate(assumed.items()):
        changes = tuple(_changes(form, key, base))
        if changes:
            moving.append(Effect(key, value, changes))
        else:
            unknown[key] = value
        progress((number + 1) / len(assumed))
    moving.sort(key=lambda effect: -effect.strength(base))
    return Effects(metric, form.is_random, base, tuple(moving), unknown)


def _changes(form: _ClosedForm, key: str, base: float) -> Iterator[Change]:
    """Yield each other value of a key that changes the metric."""
    for value in _others(form.scenario, key):
        try:
            result = form.value(override(form.scenario, {key: value}))
        except ScenarioError:  # a value that needs further keys, or has no closed form
            continue
        if result is None or abs(result / base - 1) >= LEAST_SHARE:
            yield Change(str(value), result)


def _others(scenario: Scenario, key: str) -> list[str | int | float]:
    """Return other values of a key, in the notation of a file."""
    declared = keys_of(Scenario).get(key)
    if declared is None:  # in a table that users name
        return []
    value = attrgetter(key)(scenario)
    if get_origin(declared.field.annotation) is Literal:
        return [each for each in get_args(declared.field.annotation) if each != value]
    if isinstance(value, bool) or not isinstance(value, int | float) or not value:
        return []
    half = value // SMALLER if isinstance(value, int) else value / SMALLER
    dimension = dimension_at(key.split("."))
    numbers = [LARGER * value, *([half] if half else [])]
    return [dimension.format(each) if dimension else each for each in numbers]


class _ClosedForm:
    """The closed form of a metric that suits a scenario."""

    def __init__(self, scenario: Scenario, metric: str) -> None:
        self.scenario, self.metric = scenario, metric
        self.is_rack = Parts.INCAST in scenario.parts
        run = scenario.run
        self.duration_s = run.duration - run.warmup
        self.is_random = False
        if self.is_rack and metric == PEAK and scenario.event.arrivals == "poisson":
            self.duration_s = min(self.duration_s, MOST_EVENTS / scenario.event.rate)
            system = System(scenario)
            free = exact(system.triangle, system.rate_hz, scenario.builders.units).peak_bytes
            held = analyse(scenario).metric(PEAK)
            # Only the formula of regular events contains limits by windows and requests.
            self.is_random = held is not None and held > (1 - LEAST_SHARE) * free

    def value(self, scenario: Scenario) -> float | None:
        """Return the metric; None if the system is too slow for its event rate. Raises
        ScenarioError if the system has no such closed form."""
        result = analyse(scenario)
        value = result.metric(self.metric)
        if value is None:
            raise ScenarioError(f"{scenario.name} has no closed form of {self.metric}")
        bound = result.metric(BOUND) if self.is_rack and self.metric != BOUND else None
        if bound is not None and scenario.event.rate > bound:
            return None
        if not self.is_random:
            return value
        arrivals = draw_arrivals(scenario, self.duration_s, scenario.run.seed)
        held = formula_occupancy(System(scenario), arrivals)[1]
        return float(held.max(initial=0.0))
