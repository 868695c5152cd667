"""One event builder by every method: table, sentences, figure and page."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from daqloom.deployment.scenarios import load, override
from daqloom.report.system import methods_figure, methods_table
from daqloom.results.errors import MeasureError
from daqloom.results.result import Result
from daqloom.scenario import Scenario, ScenarioError
from daqloom.study.methods import methods
from daqloom.study.methods.all_methods import (
    MethodResults,
    chosen_methods,
    run_methods,
    usual_methods,
)
from support.command import invoke, record
from support.figures import titles

SHORT = {"run.duration": "3 ms", "run.warmup": "1 ms"}


def laptop(**keys: object) -> Scenario:
    """Small enough to simulate in no time."""
    system = override(load("laptop"), SHORT | keys)
    assert isinstance(system, Scenario)
    return system


MEASURED = Result(
    scenario="laptop",
    scenario_hash="-",
    method="measure",
    seed=1,
    metrics={
        "event_rate_hz": 500_000.0,
        "events_built": 1_000_000,
        "events_checked": 1_000_000,
        "events_wrong": 0,
        "events_repeated": 0,
        "fragments_checked": 4_000_000,
        "checked_bytes": 4_000_000_000,
        "phase_s": 1e-3,
        "barrier_share": 0.75,
        "barrier_s": {"whole": 0.75e-3},
        "waiting_share": {"source": 0.125, "builder": 0.0, "network": 0.0},
        "events_accounted": {
            "begun": 1_200_000,
            "built": 1_199_000,
            "incomplete": 0,
            "dropped": 0,
            "discarded": 0,
            "unfinished": 1_000,
        },
    },
    engine={"wall_s": 3.0, "cpu_s": 5.0, "units": 4, "cores": 2},
    warnings=[],
)


@pytest.fixture(scope="module")
def found() -> MethodResults:
    """Analysed and simulated, with a measurement of known numbers."""
    given = run_methods(laptop(), ("analyse", "simulate"))
    return replace(given, results=(*given.results, MEASURED))


def test_a_number_stands_in_the_column_of_its_method(found: MethodResults) -> None:
    assert methods_table.head(found) == ["", "analyse", "simulate", "measure"]
    cells = {row[0]: row[1:] for row in methods_table.rows(found)}
    assert cells["time counted"] == ["–", "2.00 ms, virtual", "2.00 s, real"]
    assert cells["event rate"][2] == "500 kHz"
    assert cells["events checked, every byte"] == ["–", "–", "1,000,000"]
    assert cells["length of a barrier"][2] == "750 us"
    parts = [
        found.results[1].metric(f"barrier_s.{part}") or 0.0 for part in ("waiting", "releasing")
    ]
    assert methods_table.value_of(found.results[1], "barrier_s.whole") == sum(parts) > 0
    assert cells["waiting for the source"] == ["–", "–", "12.5%"]
    assert "waiting for a builder" not in cells
    assert "time without a partner (dummy)" not in cells


def test_sentences_name_the_differences_of_methods_and_wrong_events(found: MethodResults) -> None:
    text = "\n".join(methods_table.verdict(found))
    simulated = found.results[1].metric("event_rate_hz")
    assert simulated is not None
    assert "model only the network, 4 nodes at 100 Gb/s each" in text
    assert "4 units on 2 cores generate every fragment" in text
    assert f"the measurement reaches {100 * 5e5 / simulated:.3g} % of the simulated rate" in text
    assert "1,000,000 events, 4,000,000 fragments, 4 GB; none of them wrong, no duplicates." in text
    assert "1,199,000 were built, 1,000 unfinished." in text
    metrics = MEASURED.metrics | {"events_wrong": 3, "events_repeated": 2}
    worse = MethodResults(found.scenario, (replace(MEASURED, metrics=metrics),))
    text = "\n".join(methods_table.verdict(worse))
    assert "3 OTHER EVENTS WERE WRONG, 2 DUPLICATES" in text
    slow = laptop(**{"hosts.send_rate": "40 Gb/s"})
    text = "\n".join(methods_table.verdict(run_methods(slow, ("analyse", "simulate"))))
    assert "infinitely fast" not in text
    assert (
        "The analysis models only the network, 4 nodes at 100 Gb/s each; the simulation has the "
        "time, too, that hosts take by [hosts]; the simulation reaches" in text
    )
    measured = (*run_methods(slow, ("simulate",)).results, MEASURED)
    first, *others = methods_table.verdict(MethodResults(slow, measured))
    assert "The simulation has the time that hosts take by [hosts]; the measurement r" in first
    assert "the measurement reaches" not in " ".join(others)


def test_figures_and_page_are_written(found: MethodResults, tmp_path: Path) -> None:
    methods_figure.write(tmp_path / "methods.png", found)
    assert (tmp_path / "methods.png").read_bytes().startswith(b"\x89PNG")
    figure = methods_figure.figure(found)
    assert titles(figure) == ["Event rate", "Length of a phase", "Use of a node's time"]
    assert figure.panels[0].y.names == ["closed form", "simulated", "measured"]
    labels = [panel.x.label for panel in figure.panels]
    assert labels == ["MHz", "ms", "% of the nodes' time"]
    methods_figure.write(tmp_path / "methods.html", found)
    page = (tmp_path / "methods.html").read_text()
    assert "<th>measure</th>" in page
    assert page.count('class="figure"') == 3
    assert "none of them wrong" in page


def test_many_processes_are_started_only_on_request() -> None:
    assert usual_methods(laptop()) == ("analyse", "simulate", "measure")
    many = load("lhcb-10-percent")
    assert isinstance(many, Scenario)
    assert usual_methods(many) == ("analyse", "simulate")
    assert chosen_methods("measure,analyse") == ("analyse", "measure")
    with pytest.raises(ScenarioError, match='there is no method "guess"'):
        chosen_methods("analyse, guess")


def test_the_command_prints_one_object_for_programs_also_of_a_rack() -> None:
    words = ["compare", "laptop", "--methods", "analyse, simulate", "--seed", "3"]
    results = record(*words, *(f"--set={k}={v}" for k, v in SHORT.items()))["results"]
    assert [result["method"] for result in results] == ["analyse", "simulate"]
    assert results[1]["seed"] == 3
    short = ["--set", "run.duration=20 ms", "--set", "run.warmup=2 ms"]
    chosen = ["compare", "small-rack", "--methods", "simulate", *short]
    (result,) = record(*chosen)["results"]
    assert result["method"] == "simulate"
    assert result["metrics"]["events_built"] > 0


def test_the_table_has_the_cost_of_each_fault() -> None:
    faults = {"faults_begun": 3, "fault_recovery_s": {"flap": 0.5}}
    simulated = replace(MEASURED, method="simulate", metrics=faults)
    lost = {"fault_events_lost": {"flap": 120}}
    measured = replace(MEASURED, metrics={**MEASURED.metrics, **faults, **lost})
    scenario = laptop(**{"faults.injected.flap.what": "unit"})
    cells = {
        row[0]: row[1:]
        for row in methods_table.rows(MethodResults(scenario, (simulated, measured)))
    }
    assert cells["faults begun"] == ["3", "3"]
    assert cells["time to recover from a fault, flap"] == ["500 ms", "500 ms"]
    assert cells["events lost to a fault, flap"] == ["–", "120"]


def test_a_laboratory_is_measured_on_its_network_with_its_buffer(found: MethodResults) -> None:
    rack = load("lab-rack")
    assert isinstance(rack, Scenario)
    given = run_methods(rack, ("analyse",))
    measured = replace(MEASURED, metrics={"event_rate_hz": 45.0, "packets_dropped": 3})
    whole = replace(given, results=(*given.results, measured))
    text = "\n".join(methods_table.verdict(whole))
    assert "models only the network, 16 nodes; hosts" in text
    assert "The measurement is of the same network, made of namespaces" in text
    assert "scheduled on a core" not in text
    cells = {row[0]: row[1:] for row in methods_table.rows(whole)}
    assert cells["packets dropped"] == ["–", "3"]
    host = {"host_pressure": 0.25, "host_lateness": 0.03}
    held = {"buffer_peak_bytes": {"tor": 780_000, "core": 6_000}}
    busy = replace(MEASURED, metrics=MEASURED.metrics | host | held)
    of_lab = replace(found, results=(*found.results[:2], busy))
    cells = {row[0]: row[1:] for row in methods_table.rows(of_lab)}
    assert cells["processor pressure"] == ["–", "–", "25.0%"]
    assert cells["lateness of the machine"] == ["–", "–", "3.0%"]
    shown = titles(methods_figure.figure(of_lab))
    assert "Peak occupancy of the top-of-rack switch" in shown


REFUSAL = "not a valid measurement of the network, as the processors were the limit"


def refuse(*_: object, **__: object) -> Result:
    raise MeasureError(REFUSAL)


def test_a_refused_or_failed_measurement_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(methods, "measure", refuse)
    figure, keys = tmp_path / "methods.html", [f"--set={k}={v}" for k, v in SHORT.items()]
    done = invoke("compare", "laptop", "--figure", figure, *keys)
    assert done.exit_code == 1
    assert REFUSAL in done.stderr
    assert "event rate" in done.stdout
    assert "simulate" in done.stdout
    assert f"The measurement has no result: {REFUSAL}." in " ".join(done.stdout.split())
    assert REFUSAL in figure.read_text()
    done = invoke("compare", "laptop", "--json", *keys)
    assert done.exit_code == 1
    printed = json.loads(done.stdout)
    assert [result["method"] for result in printed["results"]] == ["analyse", "simulate"]
    assert printed["failure"] == REFUSAL
    with pytest.raises(MeasureError, match="not a valid measurement"):
        run_methods(laptop(), ("measure",))

    def fail(*_: object, **__: object) -> Result:
        raise MeasureError("unit 1 is lost", replace(MEASURED, failure="unit 1 is lost"))

    monkeypatch.setattr(methods, "measure", fail)
    found = run_methods(laptop(), ("simulate", "measure"))
    assert [result.method for result in found.results] == ["simulate", "measure"]
    assert (found.results[1].failure, found.failure) == ("unit 1 is lost", None)
