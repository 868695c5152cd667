"""A store of format 2, written by an earlier daqloom, is converted by one command."""

import shutil
from pathlib import Path

import pytest

from daqloom.study import StudyError
from daqloom.study.store.conversion import convert
from daqloom.study.store.store import Store
from support.command import invoke
from support.study_stores import cell, result, rewrite, right_ones, with_flipped_bit

DATA = Path(__file__).parents[2] / "support" / "data" / "store-format-2"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two segments: of seeds 0 to 3, that of 2 with a flipped bit; then of 3 again, of the closed
    forms, and of 4 and 5, where the process was killed within the line of 5."""
    shutil.copytree(DATA, tmp_path / "store")
    return tmp_path / "store"


def test_every_sound_result_is_converted_with_its_origin(path: Path) -> None:
    before = {file: file.read_bytes() for file in (path / "segments").iterdir()}
    assert convert(path) == (6, 1, path / "segments")
    assert {file: file.read_bytes() for file in before} == before
    with Store.open(path, create=False) as store:
        assert len(store) == 5
        assert right_ones(store, [0, 2, 4, 5]) == 2
        assert store.get(cell(1).key) == result(1, warnings=["a note, with “signs” and\nlines"])
        assert store.get(cell(3).key) == result(3, warnings=["again"])
        assert store.get(cell(1, "analyse").key) == result(1, "analyse")
        record = store.record(cell(4).key)
        assert record is not None
        assert record.session.command == "daqloom study run second.toml"
        assert (record.session.host, record.session.processors) == ("node1", 8)
        assert store.damage == []


def test_the_command_counts_lost_results_and_names_files_to_delete(path: Path) -> None:
    words = ["study", "convert", "--store", str(path)]
    done = invoke(*words)
    assert (done.exit_code, done.stdout, done.stderr) == (
        0,
        f"{path}: 6 results converted; {path}/segments is read no more and can be deleted\n",
        "daqloom: 1 damaged line is left out; its results are computed anew where a study needs "
        "them\n",
    )
    again = invoke(*words)
    assert again.exit_code == 2
    assert "is a store of format 3; expected format 2" in again.stderr


def test_a_conversion_that_was_interrupted_is_begun_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as keys:
        keys.setattr(Store, "sync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            convert(path)
    with pytest.raises(StudyError, match="convert it with"):
        Store.open(path, create=False)
    assert convert(path).results == 6


@pytest.mark.parametrize("line", [0, 1, 2, 3, 5])
def test_a_flipped_bit_costs_one_result_at_most(path: Path, line: int) -> None:
    """Damage lines of the second segment: session, two of the pattern of simulations, result 3, two
    of the pattern of the closed forms and their result, 4. Result 3 is in the first as well."""
    [_, segment] = sorted((path / "segments").iterdir())
    start = sum(map(len, segment.read_bytes().splitlines(keepends=True)[:line]))
    rewrite(segment, lambda content: with_flipped_bit(content, start + 60))
    assert convert(path).damaged == 2
    with Store.open(path, create=False) as store:
        assert len(store) == 5
        record = store.record(cell(4).key)
        assert record is not None
        assert record.session.host == ("unknown" if line == 0 else "node1")
        notes = [] if line == 3 else ["again"]
        assert store.get(cell(3).key) == result(3, warnings=notes)


def test_hostile_segments_convert_nothing_and_unreadable_ones_are_named(path: Path) -> None:
    [first, second] = sorted((path / "segments").iterdir())
    (path / "segments" / "a.cells").mkdir()
    with pytest.raises(StudyError, match=r"cannot read .*a\.cells: .*move it away"):
        convert(path)
    (path / "segments" / "a.cells").rmdir()
    first.write_bytes(b"\n\xff\n" + b"x" * 1000 + b"\n")
    second.write_bytes(b"\0" * 1000)
    assert convert(path)[:2] == (0, 3)
