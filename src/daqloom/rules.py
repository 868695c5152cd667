"""The rules of a building protocol, and distributions of times, as the engine takes them."""

from enum import Enum
from typing import TypeVar

from daqloom import _engine
from daqloom.scenario.building import Building
from daqloom.scenario.distribution import Distribution
from daqloom.scenario.event import Event
from daqloom.scenario.models import Scenario


def set_shift_rules(
    config: _engine.ShiftConfig | _engine.LiveConfig, building: Building, groups: list[int]
) -> None:
    """Set the keys of `[building]` for linear shifting; `groups`: the barrier's, of the readout
    units in the order of their slots, as `FabricSystem.barrier_groups`."""
    config.change = named(_engine.PhaseChange, building.change)
    config.barrier = named(_engine.ShiftBarrier, building.barrier)
    config.meps_per_phase = building.meps_per_phase
    config.phases_per_barrier = building.phases_per_barrier
    config.barrier_slack = building.barrier_slack
    config.leaves_step = building.synchronise == "adaptive"
    config.phases_under_way = building.phases_under_way
    config.barrier_groups = groups
    config.pace = named(_engine.Pace, building.pace)
    config.writers = building.writers
    config.write_order = named(_engine.WriteOrder, building.write_order)
    config.keeps_dummies = building.dummy_phases == "kept"
    config.window_s = building.window
    config.grace_s = building.grace
    config.phase_jitter = delay_of(building.jitter)


def set_daqpipe_rules(
    config: _engine.DaqpipeConfig | _engine.LiveConfig, building: Building
) -> None:
    """Set the keys of `[building]` for DAQPIPE."""
    config.is_push = building.mode == "push"
    config.credits = building.credits
    config.parallel_sends = building.parallel_sends
    config.slot_s = building.slot


def set_pull_rules(config: _engine.PullConfig | _engine.LiveConfig, scenario: Scenario) -> None:
    """Set what pull building is about: events, assignment, requests, delays."""
    building = scenario.building
    _set_event(config, scenario.event)
    config.assignment = named(_engine.Assignment, building.assignment)
    config.concurrent_events = building.concurrent_events
    config.outstanding_fragments = building.outstanding_fragments
    config.response = delay_of(scenario.readout.response)
    config.processing = [delay_of(stage) for stage in scenario.builders.processing]


def _set_event(config: _engine.PullConfig | _engine.LiveConfig, event: Event) -> None:
    arrivals = config.arrivals
    arrivals.kind = named(_engine.ArrivalKind, event.arrivals)
    arrivals.rate_hz = event.rate
    if event.arrivals == "lhc":
        arrivals.bunch_spacing_s = event.lhc.bunch_spacing
        arrivals.filling_scheme = list(event.lhc.pattern)
        arrivals.simple_dead_time_bx = event.lhc.simple_dead_time
        arrivals.complex_dead_time = [
            (bucket.triggers, bucket.window) for bucket in event.lhc.complex_dead_time
        ]
    if event.arrival_times is not None:
        arrivals.trace_times_s = list(event.arrival_times)

    size = config.event_size
    size.kind = named(_engine.SizeKind, event.size_distribution)
    size.mean_bytes = event.size
    size.spread_bytes = event.size_spread * event.size
    size.quantum_bytes = event.size_quantum
    if event.histogram is not None:
        size.histogram = [
            (value, value, weight) for value, weight in zip(*event.histogram, strict=True)
        ]
    if event.share != "equal":
        config.share = list(event.share)


def delay_of(time: Distribution) -> _engine.Delay:
    """Return the engine's delay with a distribution."""
    delay = _engine.Delay()
    measured = time.measured
    if measured is not None:
        delay.set_measured(*measured)
        return delay
    delay.kind = named(_engine.DelayKind, time.kind)
    delay.mean_s = time.mean
    delay.spread_s = time.spread
    return delay


Value = TypeVar("Value", bound=Enum)


def named(kind: type[Value], word: str) -> Value:
    """Return the value that a scenario's word names, as `named(BufferModel, "shared-memory")`."""
    return kind[word.replace("-", "_")]
