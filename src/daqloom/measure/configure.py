"""Translates a scenario into the configuration of each unit's process, and makes its node."""

from collections.abc import Mapping
from typing import Any

from daqloom import _engine
from daqloom.measure.interface import own_address
from daqloom.measure.node import Node, RunInfo
from daqloom.measure.open_files import check_open_files, files_of_a_unit
from daqloom.measure.pinning import pin
from daqloom.measure.places import places
from daqloom.rules import named, set_daqpipe_rules, set_pull_rules, set_shift_rules
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.models import Scenario


def check_live(scenario: Scenario) -> None:
    """Raise ScenarioError for what no unit could run, before any is started."""
    measure = scenario.measure
    if measure.congestion and not measure.over_tcp:
        raise ScenarioError(
            f'measure.congestion = "{measure.congestion}" applies to TCP connections only, and '
            f'measure.transport = "{measure.transport}" has none; use "libfabric:tcp", or leave '
            "congestion out"
        )
    config = _config(scenario, 0, RunInfo("check", bytes(16), 0))
    try:
        config.check()
    except ValueError as error:
        raise ScenarioError(f"measure: {error}") from None


def live_config(scenario: Scenario, unit: int, run: RunInfo) -> _engine.LiveConfig:
    """Return the configuration of the process of `unit`. Raises ScenarioError for a scenario that
    cannot be run live, MeasureError where this machine is not in the network that the scenario
    names."""
    measure = scenario.measure
    config = _config(scenario, unit, run)
    config.bind = own_address(run.control, measure.network, for_others=measure.spans_machines)
    return config


def _config(scenario: Scenario, unit: int, run: RunInfo) -> _engine.LiveConfig:
    """Return the configuration without the address of the unit's machine."""
    measure, building = scenario.measure, scenario.building
    where = places(scenario)
    config = _engine.LiveConfig()
    config.unit, config.run, config.token = unit, run.name, run.token
    config.readout_slots, config.builder_slots = where.readouts, where.builders
    config.keeps_lost_slots = building.dummies != "none"
    config.transport, config.waiting = measure.transport, named(_engine.Waiting, measure.waiting)
    config.congestion_control = measure.congestion
    config.protocol = named(_engine.Protocol, building.protocol)
    set_shift_rules(config, building)
    set_daqpipe_rules(config, building)
    config.discards_when_full = measure.when_full == "discard"
    config.delivers_incomplete = measure.incomplete == "deliver"
    config.streams, config.packing = where.streams, scenario.packing
    config.is_poissonian = scenario.event.fragment_sizes == "poisson"
    config.fragment_bytes = where.fragment_bytes
    if building.protocol == "pull":  # events arrive at the event manager: sources are ahead of it
        set_pull_rules(config, scenario)
    else:
        config.event_rate_hz = scenario.event.rate
    config.seed = scenario.run.seed
    config.stream_buffer = min(scenario.readout.buffer, measure.stream_buffer)
    config.output_buffer = min(scenario.builders.buffer, measure.output_buffer)
    config.source = named(_engine.SourceKind, measure.source)
    config.content = named(_engine.Content, measure.content)
    config.replay = measure.source_files
    config.sink = named(_engine.SinkKind, measure.sink)
    config.output = measure.sink_files
    config.trace_stages = run.trace_stages
    return config


def live_node(document: Mapping[str, Any], unit: int, run: RunInfo) -> Node:
    """Make the engine's node. Raises ValueError, with one sentence, for what cannot be built,
    MeasureError for what this machine does not allow."""
    scenario = Scenario.model_validate(document)
    check_open_files(files_of_a_unit(scenario), f"unit {unit}")
    pin(scenario.measure, unit, run.units)
    return _engine.LiveNode(live_config(scenario, unit, run))
