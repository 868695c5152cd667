"""Records of simulated runs, in virtual time."""

import json

import pytest

from daqloom.control.record.explain import explain
from daqloom.control.record.folders import find_run_folder, new_run_folder
from daqloom.control.record.past import read_events, read_run
from daqloom.control.record.series import RUN, UNITS, read_series
from daqloom.control.record.simulation import record_simulation
from daqloom.simulate.run import simulate
from support.command import invoke, record
from support.regrouping import SMALL, fault, scenario_of


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("DAQLOOM_RUNS", str(tmp_path))


def test_a_simulation_with_a_fault_has_its_course_log_and_losses():
    scenario = scenario_of(SMALL, fault(at="5 ms"))
    result = simulate(scenario)
    folder = new_run_folder(scenario.name)
    record_simulation(folder, scenario, result)
    run = read_run(folder)
    assert (run.state, run.about.method, run.about.units) == ("ended", "simulate", 4)
    assert run.summary.units_lost == result.metrics["units_lost"] == 1
    assert run.summary.lost.keys() <= result.metrics["events_accounted"].keys()
    columns, broken = read_series(folder, RUN)
    assert broken == []
    assert len(columns["time_s"]) == 100
    throughput = result.series["throughput"]
    bits = [b * 2e-4 for b in throughput["throughput_bps"]]
    assert 8 * columns["bytes"].sum() == pytest.approx(sum(bits))
    assert {3, 4} <= set(columns["members"]) <= {0, 3, 4}
    assert len(read_series(folder, UNITS)[0]["time_s"]) == 0
    texts = [each["text"] for each in read_events(folder)]
    assert any(text.startswith("fault x: unit 2 begins") for text in texts)
    findings = explain(run, columns, read_series(folder, UNITS)[0], list(read_events(folder)), 5e-3)
    assert "the event rate went from" in findings[0].sentence
    assert not any("nan" in each.sentence for each in findings)
    assert any("members fell from 4" in each.sentence for each in findings)


def test_a_faultless_simulation_is_recorded_on_demand_alone(tmp_path):
    options = ("laptop", "--duration", "5 ms", "--set", "run.warmup=1 ms")
    plain = record("simulate", *options)
    assert list(tmp_path.iterdir()) == []
    done = invoke("simulate", *options, "--record", "--json")
    folder = find_run_folder("last")
    assert f"the record is in {folder}" in done.stderr
    assert read_series(folder, RUN)[0]["bytes"].sum() > 0
    followed = json.loads(done.stdout)
    assert followed["metrics"] == plain["metrics"]
    assert followed["fingerprint"] == plain["fingerprint"]
