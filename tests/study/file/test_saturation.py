"""Points beyond capacity: found beforehand, cut short, flagged; the extension of others."""

from pathlib import Path

import numpy as np
import pytest

from daqloom import open_study
from daqloom.deployment.scenarios import load, override
from daqloom.results.result import Result
from daqloom.study import StudyError
from daqloom.study.file.cell import Cell
from daqloom.study.file.saturation import Saturation
from daqloom.study.file.study import Study
from daqloom.study.run.program import Outcome, Task, follow, program
from support.small_studies import complete, written

# Two builders with ten events each behind 10 Gb/s links of their own; nothing else is as slow.
RACK = """
scenario = "atlas-lab"
methods = ["analyse", "simulate"]
[set]
"builders.units" = 2
"building.concurrent_events" = 10
"readout.units" = 4
"network.links.access.rate" = "10 Gb/s"
"event.size" = "100 kB"
"run.duration" = "40 ms"
"run.warmup" = "10 ms"
[grid]
"event.rate" = ["20 kHz", "24 kHz", "30 kHz"]
"""


def study_of(folder: Path, text: str = RACK) -> Study:
    return written(folder, text)


def wire_bits_of_an_event() -> int:
    """100 kB from four sources: 25 000 B are 18 segments of 1448 B at most, each with 32 B of TCP
    and timestamps, 20 B of IP, 18 B of Ethernet, 20 B of preamble and gap."""
    return 8 * (100_000 + 4 * 18 * (32 + 20 + 18 + 20))


def test_the_bound_is_that_of_the_access_links_and_a_trace_has_its_own_rate(tmp_path: Path) -> None:
    saturation = study_of(tmp_path).saturation
    bound_hz = 2 * 10e9 / wire_bits_of_an_event()
    for rate_hz in (20_000, 24_000, 30_000):
        excess_hz = saturation.excess_hz({"event.rate": f"{rate_hz} Hz"})
        assert excess_hz == pytest.approx(rate_hz - bound_hz, rel=1e-9)
    trace = tmp_path / "arrivals.txt"
    trace.write_text("0.001\n0.002\n")
    scenario = load("small-rack", {"event.arrivals": "trace", "event.trace": str(trace)})
    assert Saturation(scenario).excess_hz({"event.rate": "1 GHz"}) == -np.inf


def test_a_saturated_run_ends_when_the_excess_fills_builders_or_memory(tmp_path: Path) -> None:
    saturation = study_of(tmp_path).saturation
    bound_hz = 2 * 10e9 / wire_bits_of_an_event()
    needed_s = 2 * 2 * 10 / (30_000 - bound_hz)
    assert needed_s < 40e-3
    changes = saturation.shorten({"event.rate": "30 kHz"})
    scenario = override(study_of(tmp_path).base, changes)
    assert scenario.run.duration == pytest.approx(needed_s, abs=1e-6)
    assert scenario.run.warmup == pytest.approx(needed_s / 4, abs=1e-6)
    long = {"run.duration": "400 ms", "run.warmup": "10 ms"}
    big = {"event.size": "100 MB", "event.rate": "100 Hz"} | long  # of 20 Gb/s: 25 Hz at most
    changes = saturation.shorten(big)
    scenario = override(study_of(tmp_path).base, changes)
    assert scenario.run.duration == pytest.approx(10 / saturation.excess_hz(big), abs=1e-6)
    assert saturation.excess_hz(big) == pytest.approx(75, rel=0.03)  # and headers
    assert 10 < 2 * 2 * 10


def test_unsaturated_or_short_points_keep_their_duration(tmp_path: Path) -> None:
    saturation = study_of(tmp_path).saturation
    for changes in (
        {"event.rate": "20 kHz"},
        {"event.rate": "30 kHz", "run.duration": "2 ms", "run.warmup": "1 ms"},
    ):
        assert saturation.shorten(changes) == changes


def test_the_dataset_flags_saturated_points(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    complete(study, tmp_path / "store")
    dataset = open_study(tmp_path / "mine.toml", store=tmp_path / "store")
    expected = np.array([20_000, 24_000, 30_000]) > 2 * 10e9 / wire_bits_of_an_event()
    assert expected.any()
    assert not expected.all()
    for method in ("analyse", "simulate"):
        assert (dataset["saturated"].sel(by=method, seed=1).values == expected).all()
    run_s = dataset["run_s"].sel(by="simulate", seed=1).values
    assert run_s[:2] == pytest.approx(30e-3)  # 24 kHz are so little above that 30 ms are short
    assert run_s[2] < 5e-3
    at_work = dataset["link_utilisation.access.down"].sel(by="simulate", seed=1).values
    assert (at_work[expected] > 0.98).all()  # cut short, and yet it shows the bound


DRIFTS = RACK.replace("[grid]", '[equilibrium]\nlongest = "70 ms"\n[grid]')


class Course:
    """Answers every cell with a course that has settled by `settled_s` of run.duration."""

    def __init__(self, settled_s: float) -> None:
        self.settled_s = settled_s
        self.cells: list[tuple[str, float, float]] = []

    def __call__(self, cell: Cell) -> Result:
        scenario = cell.scenario
        self.cells.append((cell.method, scenario.event.rate, scenario.run.duration))
        noise = np.random.default_rng(1).normal(size=80)
        drift = 0 if scenario.run.duration >= self.settled_s else 100
        return Result(
            scenario=scenario.name,
            scenario_hash=cell.scenario_hash,
            method=cell.method,
            metrics={},
            series={"course": {"buffer_peak_bytes.tor": noise + drift * np.linspace(0, 1, 80)}},
        )


@pytest.mark.parametrize(
    ("settled_s", "durations", "verdict"),
    [
        (0.0, [0.04], "stationary"),
        (0.07, [0.04, 0.07], "stationary"),
        (1.0, [0.04, 0.07], "drifting"),
    ],
)
def test_a_run_is_extended_until_it_has_settled_or_flagged(
    tmp_path: Path, settled_s: float, durations: list[float], verdict: str
) -> None:
    answer = Course(settled_s)
    _, end = follow(program(study_of(tmp_path, DRIFTS), Task("simulate", (0,), 1)), answer)
    assert isinstance(end, Outcome)
    assert end.run is not None
    assert end.run.equilibrium == verdict
    assert answer.cells == [("simulate", 20_000, duration) for duration in durations]


def test_searches_are_extended_but_neither_saturated_runs_nor_formulas(tmp_path: Path) -> None:
    for task in (Task("simulate", (2,), 1), Task("analyse", (0,), 1)):
        answer = Course(1.0)
        _, end = follow(program(study_of(tmp_path, DRIFTS), task), answer)
        assert isinstance(end, Outcome)
        assert end.run is not None
        assert (len(answer.cells), end.run.equilibrium) == (1, "")
    text = DRIFTS.split("[grid]")[0] + (
        '[search]\nkey = "event.size"\nfind = "largest"\nwhere = "packets_dropped == 0"\n'
        'bounds = ["1 kB", "100 kB"]\ntolerance = "50 kB"\n'
    )
    answer = Course(1.0)
    follow(program(study_of(tmp_path, text), Task("simulate", (), 1)), answer)
    assert [duration for _, _, duration in answer.cells] == [0.04, 0.07] * (len(answer.cells) // 2)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (
            'longest = "70 ms"\nmetric = "packets_dropped"',
            "is not recorded over time; use one of buffer_peak",
        ),
        ('longest = "39 ms"', "is shorter than run.duration"),
        ('longest = "70 MB"', "equilibrium.longest"),
        ("", "equilibrium.longest is missing"),
        ('longest = "70 ms"\nconfidence = 1', "confidence"),
    ],
)
def test_an_equilibrium_that_makes_no_sense_is_refused(
    tmp_path: Path, table: str, sentence: str
) -> None:
    text = RACK.replace("[grid]", f"[equilibrium]\n{table}\n[grid]")
    with pytest.raises(StudyError, match=sentence):
        study_of(tmp_path, text)
