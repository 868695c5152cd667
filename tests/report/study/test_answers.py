"""Answers at the end of `study run`, and messages on results of the other form."""

import re
from pathlib import Path
from typing import Any

import pytest

from daqloom.cli.console.terminal import BAD_INPUT
from daqloom.report.study.answers import MOST, answers
from daqloom.study.file.bisection import Boundary
from daqloom.study.file.load import load_study
from daqloom.study.file.study import Study
from daqloom.study.run.program import Task
from daqloom.study.store.store import Store
from support.command import invoke
from support.small_studies import BRIEF, POINTS, search

SEARCH = search("2 kB", "400 kB", "1 kB")
AXIS = SEARCH + '\n[grid]\n"event.rate" = ["1 kHz", "2 kHz"]\n'


LARGEST = """
[search]
key = "event.rate"
find = "largest"
where = "packets_dropped == 0"
bounds = ["1 kHz", "9 kHz"]
tolerance = "100 Hz"
"""


def study_of(folder: Path, text: str) -> Study:
    (folder / "mine.toml").write_text(text)
    return load_study(folder / "mine.toml")


def found(value: float, fails: float) -> Boundary:
    return Boundary(value, fails, value, "found")


def at(*index: int, seed: int = 1) -> Task:
    return Task("simulate", index, seed)


NEVER = Boundary(None, 400e3, None, "never")
WHAT = "smallest network.switch.tor.buffer with packets_dropped == 0"


BOTH = SEARCH.replace("small-rack", "lab-rack").replace(
    "[set]", 'methods = ["simulate", "measure"]\n[set]'
)
BOTH = BOTH.replace("[search]", '[search]\nmethod = ["simulate", "measure"]')
POINTS_AND_SEEDS = {
    at(1, seed=1): found(30_000, 29_000),
    at(0, seed=1): found(20_000, 19_000),
    at(0, seed=2): found(22_000, 21_000),
    at(1, seed=2): NEVER,
}


@pytest.mark.parametrize(
    ("text", "boundaries", "lines"),
    [
        (SEARCH, {at(): found(23_500, 22_500)}, [f"{WHAT}: 23.5 kB (not with 22.5 kB)"]),
        (
            BOTH,
            {at(): found(23_500, 22_500), Task("measure", (), 1): found(25_000, 24_000)},
            [f"{WHAT}: simulate 23.5 kB (not with 22.5 kB); measure 25 kB (not with 24 kB)"],
        ),
        (
            AXIS,
            POINTS_AND_SEEDS,
            [
                f"{WHAT}:",
                "  event.rate = 1 kHz: 21 kB on average (20 kB to 22 kB, 2 seeds)",
                "  event.rate = 2 kHz: 30 kB on average (30 kB to 30 kB, 1 of 2 seeds); never up "
                "to 400 kB (1 of 2 seeds)",
            ],
        ),
        (
            BRIEF + LARGEST,
            {at(): Boundary(4_000, 4_000, 4_100, "found")},
            ["largest event.rate with packets_dropped == 0: 4 kHz (not with 4.1 kHz)"],
        ),
    ],
    ids=["one", "methods", "points and seeds", "largest"],
)
def test_answers_have_units_and_the_value_that_fails(text, boundaries, lines, tmp_path) -> None:
    assert answers(study_of(tmp_path, text), boundaries) == lines


def test_answers_list_the_first_of_many_points(tmp_path: Path) -> None:
    rates = ", ".join(f'"{n} kHz"' for n in range(1, MOST + 6))
    study = study_of(tmp_path, SEARCH + f'\n[grid]\n"event.rate" = [{rates}]\n')
    lines = answers(study, {at(n): found(20e3, 19e3) for n in range(MOST + 5)})
    assert len(lines) == 1 + MOST + 1
    assert lines[-1] == "  and 5 points more: see `daqloom report`"


def run(folder: Path, *words: str) -> Any:
    file, store = str(folder / "mine.toml"), str(folder / "store")
    return invoke(*words[:-1], file, "--store", store, *words[-1].split())


QUICK = POINTS + '[quick.set]\n"run.duration" = "20 ms"\n'
COMMANDS = [("report",), ("study", "fit"), ("study", "compare"), ("study", "levels")]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("computed", "read", "advice"),
    [("--quick", "", "give --quick to use them"), ("", "--quick", "leave out --quick to use them")],
)
def test_results_of_the_other_form_are_named(tmp_path, words, computed, read, advice) -> None:
    study_of(tmp_path, QUICK)
    assert run(tmp_path, "study", "run", f"{computed} --workers 1").exit_code == 0
    refused = run(tmp_path, *words, read)
    assert refused.exit_code == BAD_INPUT
    [sentence] = refused.stderr.splitlines()
    assert advice in sentence


def test_a_search_ends_with_its_answer_and_only_running_gives_one(tmp_path: Path) -> None:
    study_of(tmp_path, QUICK)
    Store.open(tmp_path / "store", create=True).close()
    refused = run(tmp_path, "report", "")
    assert refused.exit_code == BAD_INPUT
    assert "there is no result of this study yet" in refused.stderr
    study_of(tmp_path, search("2 kB", "8 MB", "100 kB"))
    first = run(tmp_path, "study", "run", "--workers 1")
    summary, answer = first.stdout.splitlines()
    assert summary.startswith("mine: 1 answer from ")
    assert answer.startswith(f"{WHAT}: ")
    assert re.search(r": [0-9.]+ [kM]B \(not with [0-9.]+ [kM]B\)$", answer)
    # From the store, the answer is the same.
    assert run(tmp_path, "study", "run", "--workers 1").stdout.splitlines()[1] == answer
