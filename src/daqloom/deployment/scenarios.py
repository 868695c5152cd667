"""Scenarios for all methods; a run length that `[run]` does not set gets a default."""

from os import PathLike

from daqloom.base import lazy
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.file import load as read
from daqloom.scenario.file.overrides import Overrides
from daqloom.scenario.quantities import TIME
from daqloom.scenario.schema.check import impossible
from daqloom.scenario.schema.models import Scenario

with lazy.imports():
    from daqloom.deployment import run_length

EVENTS_TO_SETTLE = 400
"""Events per builder in the default warm-up of pull building."""
EVENTS_COUNTED = 1600
"""Events per builder that are counted after the warm-up."""
NOT_POSSIBLE_YET = (2e-3, 8e-3)
"""Default warm-up and counted time of a system that no method supports yet (s)."""
MOST_PACKETS = 2e8
"""Limit on packets in a run of default length: 600 million hops, about a minute of CPU time."""
MOST_TIME_S = 1000.0
"""Limit on the virtual time of a run of default length (s)."""


def load(scenario: str | PathLike[str], overrides: Overrides = ()) -> Scenario:
    """Return a scenario, by name or path of its file. Raises ScenarioError."""
    return settle(read.load(scenario, overrides))


def loads(text: str, overrides: Overrides = ()) -> Scenario:
    """Return a scenario from its text; names of files are relative to the working folder. Raises
    ScenarioError."""
    return settle(read.loads(text, overrides))


def override(scenario: Scenario, overrides: Overrides) -> Scenario:
    """Return a copy of the scenario with some keys changed by `overrides`: `["event.size=2 MB"]` or
    `{"event.size": "2 MB"}`. Raises ScenarioError."""
    return settle(read.override(scenario, overrides))


def settle(scenario: Scenario) -> Scenario:
    """Return the scenario with defaults for missing run lengths; they do not count as set."""
    set_keys = scenario.run.model_fields_set
    if {"duration", "warmup"} <= set_keys:
        return scenario
    warmup_s, counted_s = usual_run(scenario)
    warmup_s = scenario.run.warmup if "warmup" in set_keys else _round_time(warmup_s)
    duration_s = _round_time(warmup_s + counted_s, digits=6)
    if "duration" in set_keys:
        warmup_s = _round_time(warmup_s * min(1.0, scenario.run.duration / duration_s))
        duration_s = scenario.run.duration
    run = scenario.run.model_copy()
    run.__dict__.update(duration=duration_s, warmup=warmup_s)
    whole = scenario.model_copy()
    whole.__dict__["run"] = run
    return whole


def usual_run(scenario: Scenario) -> tuple[float, float]:
    """Return the default warm-up and the default counted time after it (s).

    For pull building they cover a number of events per builder, or fewer if the run is too long:
    windows and queues settle within some hundred events of each builder, and retransmission
    timeouts occur. For other protocols, see `daqloom.deployment.run_length`.
    """
    if impossible(scenario):
        return NOT_POSSIBLE_YET
    if not scenario.protocol.has_arrivals:
        try:
            return run_length.run_length(scenario)
        except ScenarioError:
            return NOT_POSSIBLE_YET
    rate, builders = scenario.event.rate, scenario.builder_units(scenario.nodes)
    timeouts_s = 2 * scenario.transport.rto_min if scenario.transport.kind == "tcp" else 0.0
    warmup_s = max(EVENTS_TO_SETTLE * builders / rate, timeouts_s)
    counted_s = EVENTS_COUNTED * builders / rate
    packets = max(scenario.readouts(scenario.nodes), scenario.event.size / scenario.packet_payload)
    packets_hz = rate * packets
    longest_s = min(MOST_PACKETS / packets_hz, MOST_TIME_S)
    if scenario.event.arrival_times is not None:
        longest_s = min(longest_s, scenario.event.arrival_times[-1])
    share = min(1.0, longest_s / (warmup_s + counted_s))
    return share * warmup_s, share * counted_s


def _round_time(time_s: float, digits: int = 3) -> float:
    """Return a time rounded as a scenario file writes it, with `digits` significant digits."""
    return float(TIME.parse(TIME.format(float(f"{min(time_s, TIME.maximum):.{digits}g}"))))
