"""Every command that reads a store says what of it is damaged, and loses nothing else."""

import json
import re
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from daqloom.cli.main import app
from daqloom.study.dataset import open_study
from daqloom.study.executor import InProcess
from daqloom.study.file import load_study
from daqloom.study.runner import run
from daqloom.study.store import Store
from support.small_studies import GRID

STUDY = GRID.replace('"30 ms"', '"100 ms"')
"""With some events in each slice: a distribution that does not fit is sought for long."""
CELLS = 6 + 12
HIT = [2, 9, 10]
"""Of the cells in the order written."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The study's file and its store, computed once."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "mine.toml").write_text(STUDY)
    with Store.open(folder / "store", create=True) as store:
        run(load_study(folder / "mine.toml"), store, InProcess(store))
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture
def segment(tmp_path: Path, whole: dict[str, bytes]) -> Path:
    """The one segment of the store, in which a bit of three results is flipped."""
    for name, content in whole.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    [path] = (tmp_path / "store" / "segments").iterdir()
    text = bytearray(path.read_bytes())
    lines = [found.start() for found in re.finditer(rb"(?m)^.{26} result ", text)]
    assert len(lines) == CELLS
    for number in HIT:
        text[lines[number] + 100] ^= 1
    path.write_bytes(text)
    return path


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
    return CliRunner().invoke(app, given)


@pytest.mark.parametrize("name", ["plan", "run"])
def test_a_command_names_the_file_the_place_and_how_many_are_lost(
    tmp_path: Path, segment: Path, name: str
) -> None:
    assert_told(command(tmp_path, name), segment)


def assert_told(done: Result, segment: Path) -> None:
    told = [line for line in done.stderr.splitlines() if "damaged" in line]
    first = segment.read_bytes().splitlines(keepends=True)[: 1 + 2 + HIT[0]]
    [sentence] = told
    assert sentence.startswith(f"daqloom: {segment} is damaged (at byte {sum(map(len, first))}: ")
    assert f"; {len(HIT)} results are lost" in sentence
    assert sentence.endswith("delete the file: its other results are computed anew too")


@pytest.mark.parametrize("name", ["plan", "run", "compare"])
def test_of_a_sound_store_nothing_is_said(
    tmp_path: Path, segment: Path, whole: dict[str, bytes], name: str
) -> None:
    segment.write_bytes(whole[str(segment.relative_to(tmp_path))])
    assert "damage" not in command(tmp_path, name).stderr


@pytest.mark.parametrize("name", ["levels", "fit", "compare"])
def test_json_tells_the_damage_too(tmp_path: Path, segment: Path, name: str) -> None:
    printed = command(tmp_path, name, "--json")
    assert f"{segment} is damaged" in printed.stderr
    found = json.loads(printed.stdout)["store_damage"]
    assert [each["results_lost"] for each in found] == [1, 2]  # two of the three adjoin
    assert {each["file"] for each in found} == {str(segment)}
    for each in found:
        assert segment.read_bytes()[each["offset_bytes"] - 1] == ord("\n")


def test_the_page_tells_the_damage_as_the_command_does(tmp_path: Path, segment: Path) -> None:
    done = command(tmp_path, "report")
    assert done.exit_code == 0
    assert_told(done, segment)
    assert f"{segment} is damaged" in (tmp_path / "out" / "report.html").read_text()


def test_python_is_warned(tmp_path: Path, segment: Path) -> None:
    with pytest.warns(UserWarning, match=f"{len(HIT)} results are lost"):
        open_study(tmp_path / "mine.toml", store=tmp_path / "store")


def test_without_the_damaged_file_nothing_is_said_and_all_is_computed_anew(
    tmp_path: Path, segment: Path
) -> None:
    segment.unlink()
    done = command(tmp_path, "run")
    assert f"{CELLS} runs computed" in done.stdout
    assert "damage" not in done.stderr + command(tmp_path, "plan").stderr


def test_what_is_lost_is_computed_again(tmp_path: Path, segment: Path) -> None:
    done = command(tmp_path, "run")
    assert f"{len(HIT)} runs computed" in done.stdout
    with Store.open(tmp_path / "store", create=False) as store:
        assert len(store) == CELLS
