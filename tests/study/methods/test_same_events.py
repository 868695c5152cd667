"""Formula and simulation on the same events."""

import json
from pathlib import Path

import pytest

import daqloom
from daqloom.deployment.scenarios import load
from daqloom.report.system.result_figure import write_comparison
from daqloom.scenario import Scenario
from daqloom.study import StudyError
from daqloom.study.methods.same_events import compare
from support.command import invoke

EXACT = {
    # Where the formula's assumptions hold: windows take a whole reply, nothing spreads responses.
    "transport.congestion": "static",
    "transport.static_window": "1 MB",
}


def small_rack(**changes: str) -> Scenario:
    return load("small-rack", EXACT | {k.replace("__", "."): v for k, v in changes.items()})


def test_the_factors_multiply_to_the_whole_difference_and_regular_events_have_none() -> None:
    found = compare(small_rack(event__arrivals="deterministic"), 0.05, seed=1)
    assert found.arrivals_factor == pytest.approx(1.0, rel=1e-9)
    assert found.network_factor == pytest.approx(1.0, rel=0.02)
    found = compare(small_rack(event__arrivals="poisson"), 0.1, seed=3)
    whole = found.simulated_peak / found.regular_peak
    assert found.arrivals_factor * found.network_factor == pytest.approx(whole)
    assert found.arrivals_factor > 1  # events at random come closer together at times


def test_the_same_seed_gives_the_same_comparison_and_figure(tmp_path: Path) -> None:
    first, second = (compare(small_rack(), 0.05, seed=5) for _ in range(2))
    assert first.formula_bytes.tolist() == second.formula_bytes.tolist()
    assert first.simulated.metrics == second.simulated.metrics
    write_comparison(tmp_path / "parted.png", "small-rack", compare(small_rack(), 0.05, seed=1))
    assert (tmp_path / "parted.png").read_bytes().startswith(b"\x89PNG")
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("arrivals", "duration_s", "says"),
    [("poisson", 1e-3, "events; compare at least 10"), ("lhc", 0.05, "cannot be compared")],
)
def test_incomparable_methods_are_refused(arrivals: str, duration_s: float, says: str) -> None:
    with pytest.raises(StudyError, match=says):
        compare(small_rack(event__arrivals=arrivals), duration_s, seed=1)


def test_the_command_prints_one_object_for_programs() -> None:
    words = ["compare", "small-rack", "--duration", "50 ms", "--seed", "5", "--json"]
    words += [f"--set={key}={value}" for key, value in EXACT.items()]
    done = invoke(*words)
    assert (done.exit_code, done.stderr) == (0, "")
    again = invoke(*words)
    assert again.stdout == done.stdout
    found = compare(small_rack(), 0.05, seed=5)
    assert json.loads(done.stdout) == {
        "schema": 1,
        "scenario": "small-rack",
        "scenario_hash": small_rack().hash(),
        "seed": 5,
        "version": daqloom.__version__,
        "commit": found.simulated.commit,
        "duration_s": 0.05,
        "formula_regular_peak_bytes": found.regular_peak,
        "formula_peak_bytes": found.formula_peak,
        "simulated_peak_bytes": found.simulated_peak,
        "arrivals_factor": found.arrivals_factor,
        "network_factor": found.network_factor,
        "warnings": [],
    }
