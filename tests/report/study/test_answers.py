"""What `study run` says at its end, and what commands say of results of the other form."""

import re
from pathlib import Path
from typing import Any

import pytest

from daqloom.cli.console.terminal import BAD_INPUT
from daqloom.report.study.answers import MOST, answers
from daqloom.study.file.bisection import Boundary
from daqloom.study.file.file import Study, load_study
from daqloom.study.run.program import Task
from daqloom.study.store.store import Store
from support.command import invoke
from support.small_studies import BRIEF, POINTS, search

SEARCH = search("2 kB", "400 kB", "1 kB")
AXIS = SEARCH + '\n[grid]\n"event.rate" = ["1 kHz", "2 kHz"]\n'


def study_of(folder: Path, text: str) -> Study:
    (folder / "mine.toml").write_text(text)
    return load_study(folder / "mine.toml")


def found(value: float, fails: float) -> Boundary:
    return Boundary(value, fails, value, "found")


def at(*index: int, seed: int = 1) -> Task:
    return Task("simulate", index, seed)


NEVER = Boundary(None, 400e3, None, "never")
WHAT = "smallest network.switch.tor.buffer with packets_dropped == 0"


def test_methods_that_search_are_told_apart(tmp_path: Path) -> None:
    both = SEARCH.replace("small-rack", "lab-rack").replace(
        "[set]", 'methods = ["simulate", "measure"]\n[set]'
    )
    both = both.replace("[search]", '[search]\nmethod = ["simulate", "measure"]')
    study = study_of(tmp_path, both)
    simulated, measured = at(), Task("measure", (), 1)
    told = answers(study, {simulated: found(23_500, 22_500), measured: found(25_000, 24_000)})
    assert told == [f"{WHAT}: simulate 23.5 kB (not with 22.5 kB); measure 25 kB (not with 24 kB)"]


def test_one_search_is_told_with_its_unit_and_the_value_that_fails(tmp_path: Path) -> None:
    study = study_of(tmp_path, SEARCH)
    told = answers(study, {at(): found(23_500, 22_500)})
    assert told == [f"{WHAT}: 23.5 kB (not with 22.5 kB)"]


def test_each_point_is_told_and_its_seeds_together(tmp_path: Path) -> None:
    study = study_of(tmp_path, AXIS)
    boundaries = {
        at(1, seed=1): found(30_000, 29_000),
        at(0, seed=1): found(20_000, 19_000),
        at(0, seed=2): found(22_000, 21_000),
        at(1, seed=2): NEVER,
    }
    assert answers(study, boundaries) == [
        f"{WHAT}:",
        "  event.rate = 1 kHz: 21 kB on average (20 kB to 22 kB, 2 seeds)",
        "  event.rate = 2 kHz: 30 kB on average (30 kB to 30 kB, 1 of 2 seeds); never up to 400 kB "
        "(1 of 2 seeds)",
    ]


def test_the_largest_value_is_told_with_the_next_that_fails(tmp_path: Path) -> None:
    text = BRIEF + (
        '[search]\nkey = "event.rate"\nfind = "largest"\nwhere = "packets_dropped == 0"\n'
        'bounds = ["1 kHz", "9 kHz"]\ntolerance = "100 Hz"\n'
    )
    study = study_of(tmp_path, text)
    [told] = answers(study, {at(): Boundary(4_000, 4_000, 4_100, "found")})
    assert told.endswith(": 4 kHz (not with 4.1 kHz)")


def test_of_many_points_the_first_are_told(tmp_path: Path) -> None:
    rates = ", ".join(f'"{n} kHz"' for n in range(1, MOST + 6))
    study = study_of(tmp_path, SEARCH + f'\n[grid]\n"event.rate" = [{rates}]\n')
    told = answers(study, {at(n): found(20e3, 19e3) for n in range(MOST + 5)})
    assert len(told) == 1 + MOST + 1
    assert told[-1] == "  and 5 points more: see `daqloom report`"


def run(folder: Path, *words: str) -> Any:
    file, store = str(folder / "mine.toml"), str(folder / "store")
    return invoke(*words[:-1], file, "--store", store, *words[-1].split())


def test_a_search_ends_with_its_answer(tmp_path: Path) -> None:
    study_of(tmp_path, search("2 kB", "8 MB", "100 kB"))
    first = run(tmp_path, "study", "run", "--workers 1")
    summary, answer = first.stdout.splitlines()
    assert summary.startswith("mine: 1 answer from ")
    assert answer.startswith(f"{WHAT}: ")
    assert re.search(r": [0-9.]+ [kM]B \(not with [0-9.]+ [kM]B\)$", answer)
    # The store knows it all now, and the answer is the same.
    assert run(tmp_path, "study", "run", "--workers 1").stdout.splitlines()[1] == answer


QUICK = POINTS + '[quick.set]\n"run.duration" = "20 ms"\n'
COMMANDS = [("report",), ("study", "fit"), ("study", "compare"), ("study", "levels")]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("computed", "read", "says"),
    [
        ("--quick", "", "give --quick to use them"),
        ("", "--quick", "leave out --quick to use them"),
    ],
)
def test_results_of_the_other_form_are_named(tmp_path, words, computed, read, says) -> None:
    study_of(tmp_path, QUICK)
    assert run(tmp_path, "study", "run", f"{computed} --workers 1").exit_code == 0
    refused = run(tmp_path, *words, read)
    assert refused.exit_code == BAD_INPUT
    [sentence] = refused.stderr.splitlines()
    assert says in sentence


def test_without_any_result_only_running_helps(tmp_path: Path) -> None:
    study_of(tmp_path, QUICK)
    Store.open(tmp_path / "store", create=True).close()
    refused = run(tmp_path, "report", "")
    assert refused.exit_code == BAD_INPUT
    assert "there is no result of this study yet" in refused.stderr
