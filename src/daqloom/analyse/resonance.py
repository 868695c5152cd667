"""Warnings on simulations: timeouts that resonate with events, and event rates above bounds."""

import math
from typing import NamedTuple

from daqloom.analyse.system import System
from daqloom.results.metrics import for_people, with_unit
from daqloom.results.result import Result
from daqloom.scenario.schema.models import Scenario


class Resonance(NamedTuple):
    """Number of a builder's event periods after which a retransmission timeout meets an event."""

    period_s: float
    periods: int


def resonance(scenario: Scenario) -> Resonance | None:
    """Return the resonance if timeouts retransmit into a later event of the same builder, else
    None.

    An event keeps its builder's link busy for D, and a builder's events arrive at intervals P. A
    timer starts at a ≤ D after the beginning of an event, and expires `rto_min` plus a smoothed
    round trip r ≤ D later. It expires within the n-th later event if 0 ≤ a + rto_min + r - n·P ≤ D,
    which implies -D ≤ n·P - rto_min ≤ 2·D. Intervals below 3·D always fulfil this because of the
    load, so they are no resonance. Timers with ticks and random arrivals do not resonate.
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
    """Return a warning if a simulation of `scenario` had timeouts that may resonate with events."""
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
"""Relative excess of a simulated rate over its bound that causes no warning. Random sizes may cause
it, and so may events only partly inside the counted time."""
RATES = ("event_rate_hz", "written_event_rate_hz")


def beyond(result: Result, bound_hz: float | None) -> list[str]:
    """Return a warning for each simulated event rate above its closed-form bound, if known."""
    found = {name: result.metric(name) for name in RATES}
    return [
        f"{name} = {for_people(name, rate)} exceeds {for_people(name, bound_hz)}, the long-term "
        "bound of links, hosts and sources (event_rate_bound_hz of `daqloom analyse`): the time "
        "counted is too short, or it begins with a backlog; lengthen run.duration and run.warmup"
        for name, rate in found.items()
        if bound_hz is not None and rate is not None and rate > (1 + TOLERANCE) * bound_hz
    ]
