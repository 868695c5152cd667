"""Units that are kept from measurement to measurement."""

import os
import signal

import pytest

from daqloom.deployment.scenarios import override
from daqloom.measure import bench, run
from daqloom.results.errors import MeasureError
from support.measure.small_runs import small
from support.measure.tiny_runs import expect_built_right

pytestmark = pytest.mark.process


@pytest.fixture
def processes(monkeypatch):
    """Processes of the units in each measurement."""
    found = []
    end = run._Run._end

    async def recorded(it):
        found.append([unit.pid for unit in it._record.control.status().units])
        await end(it)

    monkeypatch.setattr(run._Run, "_end", recorded)
    return found


def scenario(**changes):
    keys = {key.replace("__", "."): value for key, value in changes.items()}
    return override(small(events=1000, duration="100 s", fault_timeout="100 s"), keys)


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_measurements_share_units_and_each_has_its_own_accounts(processes):
    with bench.kept_units():
        for changes in ({}, {"event__packing": 7}, {"measure__transport": "tcp"}):
            result = run.measure(scenario(**changes))
            expect_built_right(result)
            accounted = result.metrics["events_accounted"]
            assert accounted["begun"] == sum(accounted.values()) - accounted["begun"]
            assert accounted["skipped"] == 0
            assert result.series["run_events"]["text"].count("unit 0 is available") == 1
            assert result.engine["cpu_s"] > 0
            assert result.engine["peak_rss_bytes"] > 1e7
        first, second, third = processes
        assert first == second == third
        assert all(is_alive(each) for each in first)
    assert not any(is_alive(each) for each in first)


@pytest.mark.parametrize(
    "changes",
    [
        {"readout__units": 2},
        {"measure__cores": str(min(os.sched_getaffinity(0)))},
        {"hosts__placement": "spread"},
    ],
)
def test_a_scenario_that_needs_new_processes_gets_them(processes, changes):
    with bench.kept_units():
        run.measure(scenario())
        run.measure(scenario(**changes))
        first, second = processes
        assert not set(first) & set(second)
        assert not any(is_alive(each) for each in first)


def test_units_that_have_died_between_measurements_are_replaced(processes):
    with bench.kept_units():
        run.measure(scenario())
        [first] = processes
        os.killpg(first[1], signal.SIGKILL)
        bench._Shelf.bench._units[1].wait()
        expect_built_right(run.measure(scenario()))
        assert not set(first) & set(processes[1])


def test_units_are_not_kept_after_a_failure(processes):
    with bench.kept_units():
        run.measure(scenario())
        [first] = processes
        with pytest.raises(MeasureError, match="the output of the units is in"):
            run.measure(scenario(measure__transport="libfabric:nowhere"))
        assert not any(is_alive(each) for each in first)


def test_without_a_study_each_measurement_has_its_own_units(processes):
    run.measure(scenario())
    run.measure(scenario())
    assert not set(processes[0]) & set(processes[1])
    assert not any(is_alive(each) for units in processes for each in units)
