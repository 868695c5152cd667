"""Every command that reads a store says what of it is damaged, and loses nothing else."""

import html
import json
import shutil
from pathlib import Path

import pytest
from click.testing import Result

from daqloom.study.run.dataset import open_study
from daqloom.study.store.store import Store
from support.command import invoke
from support.small_studies import GRID, complete, written
from support.study_stores import files, rewrite, with_flipped_bit

STUDY = GRID.replace('"30 ms"', '"100 ms"')
"""With some events in each slice: a distribution that does not fit is sought for long."""
CELLS = 6 + 12
HIT = 3
"""Results of which a bit is flipped."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study's file and its store, computed once."""
    folder = tmp_path_factory.mktemp("whole")
    complete(written(folder, STUDY), folder / "store")
    return folder


@pytest.fixture
def folder(tmp_path: Path, whole: Path) -> Path:
    """Yield the study's folder with a flipped bit in some results."""
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    for file in files(tmp_path / "store")[:HIT]:
        rewrite(file, with_flipped_bit)
    return tmp_path


COMMANDS = {
    "plan": ["study", "plan"],
    "run": ["study", "run", "--workers", "1"],
    "levels": ["study", "levels", "--at", "event.rate=600 Hz", "--at", "event.size=1 MB"],
    "fit": ["study", "fit", "--terms", "plane"],
    "compare": ["study", "compare"],
    "report": ["report", "--show", "event_rate_hz"],
}


def command(folder: Path, name: str, *more: str) -> Result:
    given = [*COMMANDS[name], str(folder / "mine.toml"), "--store", str(folder / "store"), *more]
    if name == "report":
        given += ["--output", str(folder / "out")]
    return invoke(*given)


@pytest.mark.parametrize("name", ["plan", "run"])
def test_a_command_names_the_files_and_how_many_are_lost(folder: Path, name: str) -> None:
    assert_reported(command(folder, name), folder)


def assert_reported(done: Result, folder: Path) -> str:
    [sentence] = [line for line in done.stderr.splitlines() if "damaged" in line]
    assert sentence.startswith(f"daqloom: {folder}/store is damaged (")
    assert f"; {HIT} results are lost and computed anew" in sentence
    assert all(f"{file}: " in sentence for file in hit(folder))
    return sentence.removeprefix("daqloom: ")


def hit(folder: Path) -> list[Path]:
    return files(folder / "store")[:HIT]


@pytest.mark.parametrize("name", ["plan", "run", "compare"])
def test_a_sound_store_gives_no_warning(whole: Path, name: str) -> None:
    assert "damage" not in command(whole, name).stderr


@pytest.mark.parametrize("name", ["levels", "fit", "compare"])
def test_json_reports_the_damage_too(folder: Path, name: str) -> None:
    printed = command(folder, name, "--json")
    assert_reported(printed, folder)
    found = json.loads(printed.stdout)["store_damage"]
    assert {each["file"] for each in found} == {str(file) for file in hit(folder)}
    assert all("it cannot be decompressed" in each["reason"] for each in found)


def test_the_page_reports_the_damage_as_the_command_and_python_do(folder: Path) -> None:
    done = command(folder, "report")
    assert done.exit_code == 0
    sentence = html.escape(assert_reported(done, folder))
    assert sentence in html.escape(html.unescape((folder / "out" / "report.html").read_text()))
    with pytest.warns(UserWarning, match=f"{HIT} results are lost"):
        open_study(folder / "mine.toml", store=folder / "store")


def test_lost_results_are_computed_again(folder: Path) -> None:
    done = command(folder, "run")
    assert f"{HIT} runs computed" in done.stdout
    assert "damage" not in command(folder, "plan").stderr
    with Store.open(folder / "store", create=False) as store:
        assert len(store) == CELLS
