"""Conversion of a scenario into engine settings for protocols and run control."""

from typing import Any

from daqloom import _engine
from daqloom.configuration.settings import engine_delay, settings
from daqloom.scenario.schema.building import Building
from daqloom.scenario.schema.event import Event
from daqloom.scenario.schema.models import Scenario


def run_plan(scenario: Scenario, **more: Any) -> _engine.RunPlan:
    """Return the run control's plan for a scenario; `more` sets further fields of the plan."""
    measure = scenario.measure
    return _engine.RunPlan(
        heartbeat_s=measure.heartbeat,
        fault_timeout_s=measure.fault_timeout,
        order_timeout_s=max(10.0, 3 * measure.fault_timeout),
        restart=measure.restarts,
        moves_apart=scenario.hosts.spare_takes == "one",
        fewest_members=measure.minimum,
        **more,
    )


def rules_of(scenario: Scenario, groups: list[int]) -> dict[str, object]:
    """Return the rules of all building protocols, keyed by field of an engine configuration. See
    `shift_rules` for `groups`. For other protocols, the pull rules are the engine's defaults."""
    building, is_pull = scenario.building, scenario.protocol.has_arrivals
    return {
        "shift_rules": shift_rules(building, groups),
        "daqpipe_rules": settings(_engine.DaqpipeRules, building, is_push=building.mode == "push"),
        "pull_rules": pull_rules(scenario) if is_pull else _engine.PullRules(),
    }


def shift_rules(building: Building, groups: list[int]) -> _engine.ShiftRules:
    """Return the rules of linear shifting. `groups` has the barrier group of each readout unit in
    the order of slots, as in `FabricSystem.barrier_groups`."""
    return settings(
        _engine.ShiftRules,
        building,
        leaves_step=building.synchronise == "adaptive",
        barrier_groups=groups,
        keeps_dummies=building.dummy_phases == "kept",
    )


def pull_rules(scenario: Scenario) -> _engine.PullRules:
    """Return the rules of pull building: events, assignment, requests, delays."""
    event = scenario.event
    return settings(
        _engine.PullRules,
        scenario.building,
        scenario.readout,
        arrivals=_arrivals(event),
        event_size=_event_size(event),
        share=() if event.share == "equal" else event.share,
        processing=processing_delays(scenario),
        storage=settings(_engine.StorageRules, scenario.storage),
    )


def processing_delays(scenario: Scenario) -> list[_engine.Delay]:
    """Return the successive processing delays of a built event."""
    return [engine_delay(_engine.Delay, stage) for stage in scenario.builders.processing]


def _arrivals(event: Event) -> _engine.Arrivals:
    lhc = event.lhc
    return settings(
        _engine.Arrivals,
        lhc,
        kind=event.arrivals,
        rate_hz=event.rate,
        filling_scheme=list(lhc.pattern),
        simple_dead_time_bx=lhc.simple_dead_time,
        complex_dead_time=[(bucket.triggers, bucket.window) for bucket in lhc.complex_dead_time],
        trace_times_s=list(event.arrival_times or ()),
    )


def _event_size(event: Event) -> _engine.EventSize:
    bins = zip(*event.histogram, strict=True) if event.histogram is not None else ()
    return settings(
        _engine.EventSize,
        kind=event.size_distribution,
        mean=event.size,
        spread_bytes=event.size_spread * event.size,
        quantum=event.size_quantum,
        histogram=[(value, value, weight) for value, weight in bins],
    )
