"""Storage units of a measured run: they get the accepted events, or the run counts the rest."""

import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from daqloom.buffers import StorageRules
from daqloom.deployment.scenarios import load
from daqloom.measure.new_setup import new_setup
from daqloom.measure.plan import control_of, measurement_plan, plan_of
from daqloom.measure.run import measure
from daqloom.measure.storage import Storage, storage_metrics
from daqloom.results.errors import MeasureError
from daqloom.results.result import Result
from daqloom.scenario.errors import ScenarioError
from support.children import children
from support.namespaces import NETWORKS

SHARE = 0.3
STORED = ("storage.units=2", f"storage.accepted={SHARE}", "storage.timeout=60 s")
SMALL = ("readout.units=2", "builders.units=2", "event.size=20 kB", "event.rate=300 Hz")
SHORT = ("measure.duration=1500 ms", "measure.warmup=200 ms", "run.duration=1500 ms")


def given(*keys: str, scenario: str = "laptop-pull"):
    return load(scenario, [*SMALL, *SHORT, *STORED, *keys])


@dataclass
class Run:
    """Counts of a run, warm-up included."""

    result: Result
    counts: Counter[str] = field(default_factory=Counter)
    received: Counter[str] = field(default_factory=Counter)

    @property
    def begun(self) -> int:
        accounted = self.result.metrics["events_accounted"]
        assert accounted["built"] == accounted["begun"]  # none was discarded
        begun: int = accounted["begun"]
        return begun

    @property
    def expected(self) -> int:
        """Number of events that the function of the simulation accepts."""
        rules = StorageRules(units=1, accepted=SHARE)
        return sum(rules.accepts(event, self.result.seed) for event in range(self.begun))


@pytest.fixture
def run(monkeypatch) -> Callable[..., Run]:
    """Measure with `storage.units`, and with `then` called once all senders read."""

    def measured(*keys: str, then: Callable[[Storage], None] = lambda _: None, **scenario) -> Run:
        counts, stores = Counter(), []
        begin, finish = Storage.begin, Storage.finish

        def begun(storage: Storage, name: str) -> None:
            then(storage)
            begin(storage, name)
            stores.append(storage)

        def finished(storage: Storage) -> None:
            finish(storage)
            counts.update(storage._counts[-1])

        with monkeypatch.context() as patch:
            patch.setattr(Storage, "begin", begun)
            patch.setattr(Storage, "finish", finished)
            result = measure(given(*keys, **scenario))
        return Run(result, counts, stores[0]._received)

    return measured


def stop(storage: Storage, unit: int, how: signal.Signals) -> None:
    os.kill(storage._programs[f"storage unit {unit}"]._process.pid, how)


@pytest.mark.process
@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_storage_units_get_the_events_that_the_simulation_accepts(run, transport) -> None:
    before = set(children())
    found = run(f"measure.transport={transport}")
    expected = found.expected
    assert expected > 50
    for name in ("accepted", "sent", "stored"):
        assert found.counts[name] == expected
    assert found.counts["unstored"] == found.counts["wrong"] == 0
    assert found.received["received"] == expected
    # An event of 20 kB lies in more than 40 kB of the output: MFPs have room for larger ones.
    assert 0.9 < found.received["received_bytes"] / (20e3 * expected) < 1.2
    metrics = found.result.metrics
    assert 0 < metrics["events_stored"] <= expected
    assert metrics["events_unstored"] == metrics["events_storing"] == 0
    assert 0 < metrics["stored_throughput_bps"] < metrics["throughput_bps"]
    assert not [text for text in found.result.warnings if "storage" in text]
    assert set(children()) <= before


@pytest.mark.process
@NETWORKS[1]
def test_storage_units_have_hosts_of_their_own_in_namespaces(run) -> None:
    found = run("measure.transport=tcp", "measure.namespaces=true")
    assert found.counts["stored"] == found.received["received"] == found.expected > 50


@pytest.mark.process
def test_events_of_a_killed_storage_unit_go_to_the_next(run) -> None:
    found = run(then=lambda storage: stop(storage, 0, signal.SIGKILL))
    assert found.counts["stored"] == found.expected == found.received["received"]
    rules = StorageRules(units=1, accepted=SHARE)
    even = sum(rules.accepts(event, found.result.seed) for event in range(0, found.begun, 2))
    assert found.counts["sent"] == found.expected + even
    assert any("storage unit 0: " in text for text in found.result.warnings)


@pytest.mark.process
def test_a_stopped_storage_unit_costs_its_events_and_no_others(run) -> None:
    before = set(children())
    stopped = "storage.units=1", "storage.timeout=20 ms"
    found = run(*stopped, then=lambda storage: stop(storage, 0, signal.SIGSTOP))
    assert found.counts["unstored"] == found.expected > 50
    assert found.counts["stored"] == 0
    assert found.result.metrics["events_unstored"] > 0
    warnings = " ".join(found.result.warnings)
    assert f"{found.expected} accepted events were given up" in warnings
    assert "storage unit 0: no answer within" in warnings
    assert set(children()) <= before


@pytest.mark.process
def test_the_end_of_a_sender_ends_the_run(monkeypatch) -> None:
    begin = Storage.begin

    def begun(storage: Storage, name: str) -> None:
        begin(storage, name)
        storage._programs["the sender of unit 2"].kill()

    monkeypatch.setattr(Storage, "begin", begun)
    before = set(children())
    with pytest.raises(MeasureError, match="the sender of unit 2: "):
        measure(given())
    assert set(children()) <= before


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (["measure.sink=discard"], 'check events, and measure.sink = "discard"'),
        (["measure.launch=slurm"], "are started on this machine only"),
    ],
)
def test_storage_that_cannot_be_measured_is_refused_before_the_start(keys, reason) -> None:
    with pytest.raises(ScenarioError, match=reason):
        measurement_plan(given(*keys), seed=None, launcher=None, traced=False, arrivals=False)


def test_a_run_control_refuses_storage_units_and_takes_no_new_ones(tmp_path) -> None:
    with pytest.raises(ScenarioError, match="a run control has only event building"):
        control_of(given(), tmp_path)
    with pytest.raises(ScenarioError, match="storage"):
        new_setup(plan_of(load("laptop-pull")), STORED)


def test_metrics_of_storage_cover_the_time_between_two_counts() -> None:
    begin = Counter(accepted=5, stored=3, unstored=1, stored_bytes=300)
    end = Counter(accepted=15, stored=12, unstored=2, stored_bytes=1200)
    assert storage_metrics([begin, end], 2.0, 0.5) == {
        "events_accepted": 10,
        "events_stored": 9,
        "events_unstored": 1,
        "events_storing": 1,
        "stored_throughput_bps": 8 * 0.5 * 900 / 2,
    }
