"""Warnings of simulated runs: timeouts that resonate with events, rates above their bounds."""

import math
from typing import NamedTuple

from daqloom.analyse.system import System
from daqloom.results.metrics import for_people, with_unit
from daqloom.results.result import Result
from daqloom.scenario.schema.models import Scenario


class Resonance(NamedTuple):
    """The number of periods of a builder's events that coincides with a retransmission timeout."""

    period_s: float
    periods: int


def resonance(scenario: Scenario) -> Resonance | None:
    """Return whether timeouts retransmit into a later event of the same builder; None if not.

    An event keeps its builder's link busy for D. A timer is set at a ≤ D after an event came, and
    strikes `rto_min` and a smoothed round trip r ≤ D later. It strikes within the n-th event from
    there, P apart, if 0 ≤ a + rto_min + r - n·P ≤ D, so that -D ≤ n·P - rto_min ≤ 2·D. Events less
    than 3·D apart fulfil this in any case: then it is load. Timers on ticks, and random events,
    resonate with nothing.
    """
    if scenario.event.arrivals != "deterministic" or scenario.transport.timer_tick:
        return None
    system, rto_s = System(scenario), scenario.transport.rto_min
    busy_s = 8 * system.event.frame_bytes / system.event.wire_share / system.output_bps
    period_s = scenario.builders.units / scenario.event.rate
    periods = math.ceil((rto_s - busy_s) / period_s)
    if periods < 1 or period_s <= 3 * busy_s or periods * period_s - rto_s > 2 * busy_s:
        return None
    return Resonance(period_s, periods)


def resonating(scenario: Scenario, result: Result) -> list[str]:
    """Return a warning where a simulation of `scenario` had such timeouts."""
    if not result.metrics.get("retransmission_timeouts") or not (found := resonance(scenario)):
        return []
    times = [found.period_s, found.periods * found.period_s, scenario.transport.rto_min]
    period, later, rto = (with_unit(each, "s") for each in times)
    return [
        f"timeouts may resonate with the events: a builder's events arrive {period} apart, and "
        f"segments are retransmitted after transport.rto_min = {rto} into the event {later} later, "
        "to be dropped again. Timers of real hosts are less exact: set "
        'transport.timer_tick = "4 ms" (Linux at 250 Hz), or event.arrivals = "poisson"'
    ]


TOLERANCE = 0.05
"""Tolerance of a rate above its bound: sizes are random, and a window cuts events at its ends."""
RATES = ("event_rate_hz", "written_event_rate_hz")


def beyond(result: Result, bound_hz: float | None) -> list[str]:
    """Return a warning for each rate of a simulation above its closed-form bound, where known."""
    found = {name: result.metric(name) for name in RATES}
    return [
        f"{name} = {for_people(name, rate)} exceeds {for_people(name, bound_hz)}, the long-term "
        "bound of links, hosts and sources (event_rate_bound_hz of `daqloom analyse`): the time "
        "counted is too short, or it begins with a backlog; lengthen run.duration and run.warmup"
        for name, rate in found.items()
        if bound_hz is not None and rate is not None and rate > (1 + TOLERANCE) * bound_hz
    ]
