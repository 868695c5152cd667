"""Pull building with processes of this machine, and their configuration from a scenario."""

from pathlib import Path

import pytest

from daqloom import _engine
from daqloom.deployment.scenarios import load
from daqloom.measure.configure import live_config, places
from daqloom.measure.run import measure
from daqloom.scenario import ScenarioError
from daqloom.scenario.file.show import to_toml
from daqloom.scenario.schema.models import Scenario
from daqloom.study.methods.all_methods import usual_methods
from support.command import record
from support.measure.live_nodes import TOKEN, configure
from support.measure.tiny_runs import MEASURED, changed, expect_all_built, expect_built_right

TINY = {
    "name": "tiny",
    "event": {"size": "2 kB", "rate": "20 kHz"},
    "building": {"protocol": "pull", "concurrent_events": 4},
    "readout": {"units": 3},
    "builders": {"units": 2},
    "measure": MEASURED | {"events": 1000},
}


def tiny(**changes: object) -> Scenario:
    return changed(TINY, changes)


def test_readout_units_come_first_and_builder_units_may_be_fewer() -> None:
    where = places(tiny())
    assert (where.readouts, where.builders) == ([0, 1, 2], [3, 4, -1])
    assert where.units == 5
    more = places(tiny(readout__units=1, builders__units=3, event__share="equal"))
    assert (more.readouts, more.builders) == ([0, -1, -1], [1, 2, 3])


@pytest.mark.process
def test_the_rules_of_a_scenario_are_those_of_its_units() -> None:
    building = {"building__assignment": "least-busy", "building__outstanding_fragments": 5}
    scenario = tiny(**building, event__arrivals="deterministic")
    config = live_config(scenario, configure(), TOKEN)
    assert config.protocol is _engine.Protocol.pull
    rules = config.pull_rules
    assert rules.assignment is _engine.Assignment.least_busy
    assert (rules.concurrent_events, rules.outstanding_fragments) == (4, 5)
    assert (rules.arrivals.rate_hz, rules.event_size.mean) == (20e3, 2000)
    assert config.event_rate_hz == 0


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"readout__units": 3, "builders__units": 1, "building__outstanding_fragments": 2},
        {"event__arrivals": "lhc"},
        {
            "event__size_distribution": "gamma",
            "event__share": [3, 2, 1],
            "building__assignment": "random",
            "readout__response__kind": "exponential",
            "readout__response__mean": "50 us",
            "builders__processing": [{"kind": "fixed", "mean": "50 us"}],
        },
    ],
    ids=["3:2", "3:1", "LHC", "shares"],
)
@pytest.mark.process
def test_every_event_is_built_right(changes: dict[str, object]) -> None:
    result = measure(tiny(**changes))
    expect_built_right(result)
    expect_all_built(result, readouts=3)
    assert result.metric("events_waiting") >= 0
    assert result.metrics["collection_latency_s"]["p50"] > 0
    assert "events_discarded" not in result.metrics


@pytest.mark.process
def test_events_arrive_at_the_times_of_a_file(tmp_path: Path) -> None:
    """A thousand in bursts of ten, 50 us apart, with a millisecond between bursts."""
    times = tmp_path / "times.txt"
    times.write_text("".join(f"{50e-6 * i + 1e-3 * (i // 10):.6f}\n" for i in range(1000)))
    event = {"size": "2 kB", "arrivals": "trace", "trace": str(times)}
    result = measure(changed(TINY | {"event": event, "name": "traced"}, {}))
    accounted = result.metrics["events_accounted"]
    assert accounted["begun"] == accounted["built"] == 1000
    assert result.metric("events_wrong") == 0


def test_too_many_concurrent_events_are_refused() -> None:
    with pytest.raises(ScenarioError, match="give fewer concurrent events or a larger output"):
        measure(tiny(building__concurrent_events=1000))


def test_the_usual_methods_of_a_small_system_are_all_three() -> None:
    scenario = load("laptop-pull")
    assert usual_methods(scenario) == ("analyse", "simulate", "measure")
    where = places(scenario)
    assert (where.units, where.fragment_bytes) == (10, [10_000] * 6)
    assert usual_methods(load("atlas-lab")) == ("analyse", "simulate")


@pytest.mark.process
def test_the_command_writes_series_and_a_figure_of_the_course(tmp_path: Path) -> None:
    file, figure = tmp_path / "tiny.toml", tmp_path / "course.svg"
    file.write_text(to_toml(tiny()))
    series = record("measure", file, "--quiet", "--figure", figure)["series"]
    assert {"run_events", "throughput", "members"} <= series.keys()
    assert series["members"]["members"][0] == 5
    assert "members" in figure.read_text()
