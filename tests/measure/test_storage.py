"""Storage units of a measured run: they get the accepted events, or are refused."""

import os
import signal
from typing import Any

import pytest

from daqloom.deployment.scenarios import load
from daqloom.lab import validity
from daqloom.machine.launch import Local
from daqloom.measure.new_setup import new_setup
from daqloom.measure.plan import control_of, measurement_plan, plan_of
from daqloom.measure.run import measure
from daqloom.measure.storage import Storage
from daqloom.results.errors import MeasureError
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario
from support.children import children
from support.namespaces import NETWORKS

SHORT = ("measure.duration=3 s", "measure.warmup=1 s")


def stored(name: str, *keys: str) -> Scenario:
    return load(name, ["storage.units=2", *keys])


def check(metrics: Any, least_share: float, most_share: float) -> None:
    """Check that each accepted event was stored, and that a share of the events was accepted."""
    accepted = metrics["events_accepted"]
    assert metrics["events_unstored"] == 0
    assert abs(metrics["events_stored"] + metrics["events_storing"] - accepted) <= 8  # under way
    assert least_share < accepted / metrics["events_built"] < most_share


@pytest.mark.process
@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_a_measured_run_stores_the_accepted_events(transport: str) -> None:
    keys = (*SHORT, "storage.accepted=0.5", f"measure.transport={transport}")
    result = measure(stored("laptop-pull", *keys))
    check(result.metrics, 0.3, 0.7)
    share = result.metrics["stored_throughput_bps"] / result.metrics["throughput_bps"]
    assert 0.3 < share < 0.7
    assert not [text for text in result.warnings if "storage" in text]


@pytest.mark.process
@NETWORKS[1]
def test_storage_units_of_a_laboratory_have_hosts_of_their_own(monkeypatch) -> None:
    monkeypatch.setattr(validity, "KINDS", ())  # counts hold on a busy machine too
    result = measure(stored("lab-rack", *SHORT, "storage.accepted=1"))
    check(result.metrics, 0.5, 1.5)
    assert result.metrics["packets_unaccounted"] == 0
    # The links of 100 Gb/s carry the events, each link every second one.
    used = [result.metrics["link_utilisation"][f"storage.{unit}.down"] for unit in range(2)]
    payload = result.metrics["stored_throughput_bps"]
    assert all(share * 100e9 > payload / 4 for share in used)


@pytest.mark.process
def test_the_end_of_a_storage_program_is_an_error_with_its_host() -> None:
    before = set(children())
    with Storage(stored("laptop-pull", "measure.transport=tcp"), Local()) as storage:
        storage.prepare("test-storage")
        storage.count()
        for child in set(children()) - before:
            os.kill(child, signal.SIGKILL)
        with pytest.raises(MeasureError, match="storage of unit 0's host: "):
            storage.count()


def test_a_sink_beside_storage_units_is_refused() -> None:
    with pytest.raises(ScenarioError, match="the senders of accepted events read the output"):
        measurement_plan(
            stored("laptop-pull", "measure.sink=user"),
            seed=None,
            launcher=None,
            traced=False,
            arrivals=False,
        )


def test_a_run_control_refuses_storage_units_and_takes_no_new_ones(tmp_path) -> None:
    with pytest.raises(ScenarioError, match=r"storage.units = 2: a run control has only event"):
        control_of(stored("laptop-pull"), tmp_path)
    with pytest.raises(ScenarioError, match="storage"):
        new_setup(plan_of(load("laptop-pull")), ("storage.units=1",))
