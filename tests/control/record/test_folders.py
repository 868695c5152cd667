"""Folders of runs: where they are, their IDs, and the lock of a run control."""

import re
import stat

import pytest

from daqloom.base.claims import is_claimed
from daqloom.base.output import OutputError
from daqloom.control.record import folders
from daqloom.results.errors import MeasureError


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("DAQLOOM_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def test_the_root_is_the_named_folder_or_in_the_state_of_the_user(monkeypatch, root):
    assert folders.runs_root() == root
    monkeypatch.delenv("DAQLOOM_RUNS")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert str(folders.runs_root()) == "/state/daqloom/runs"
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setenv("HOME", "/home/daq")
    assert str(folders.runs_root()) == "/home/daq/.local/state/daqloom/runs"


def test_a_new_folder_is_private_and_named_by_time_and_scenario(root):
    folder = folders.new_run_folder("laptop")
    assert folder.parent == root
    assert re.fullmatch(r"[0-9]{8}-[0-9]{6}-laptop", folder.name)
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(root.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("name", "end"),
    [("../../etc/passwd", "..-..-etc-passwd"), ("\x1b[2J a/b", "2J-a-b"), ("", "run")],
)
def test_a_hostile_name_stays_within_the_root(root, name, end):
    folder = folders.new_run_folder(name)
    assert folder.parent == root
    assert folder.name[16:] == end
    assert folders.is_id(folder.name)


def test_a_long_name_is_cut(root):
    assert len(folders.new_run_folder("x" * 300).name) == 16 + folders.LONGEST_NAME


def test_runs_of_one_second_have_different_folders():
    assert len({folders.new_run_folder("laptop") for _ in range(5)}) == 5


def test_a_root_that_cannot_be_made_is_one_sentence(root):
    root.write_text("a file")
    with pytest.raises(OutputError, match=r"cannot make a folder in .*runs: .*; set DAQLOOM_RUNS"):
        folders.new_run_folder("laptop")
    with pytest.raises(MeasureError, match=r"cannot read .*runs: not a directory; set DAQ"):
        folders.run_folders()


def test_the_newest_run_is_first_and_foreign_entries_are_ignored(root):
    assert folders.run_folders() == []
    for name in ("20260101-000000-a", "20260102-000000-b", "notes", "20260103-000000-c\n"):
        (root / name).mkdir(parents=True)
    (root / "20260104-000000-file").write_text("")
    (root / "20260105-000000-link").symlink_to(root / "notes")
    assert [each.name for each in folders.run_folders()] == [
        "20260102-000000-b",
        "20260101-000000-a",
    ]


def test_a_run_is_found_by_its_id_or_a_unique_beginning(root):
    for name in ("20260101-000000-a", "20260101-000000-a-2", "20260102-000000-b"):
        (root / name).mkdir(parents=True)
    assert folders.find_run_folder("20260101-000000-a").name == "20260101-000000-a"
    assert folders.find_run_folder("20260102").name == "20260102-000000-b"
    (root / "20260101-000000-a" / "about.json").touch()
    assert folders.find_run_folder("last").name == "20260101-000000-a"  # the last readable one
    (root / "20260102-000000-b" / "about.json").touch()
    assert folders.find_run_folder("last").name == "20260102-000000-b"
    with pytest.raises(MeasureError, match=r"2 runs begin with 20260101, such as .*-a-2 and 2"):
        folders.find_run_folder("20260101")
    for unknown in ("2027", "", "../runs", "\x1b[2J"):
        with pytest.raises(MeasureError, match=r"there is no run \"[^\x1b]*\" in .*runs list"):
            folders.find_run_folder(unknown)


def test_one_run_control_holds_a_folder(root):
    folder = folders.new_run_folder("laptop")
    assert not is_claimed(folder)
    with folders.locked_run_folder(folder):
        assert is_claimed(folder)
        with (
            pytest.raises(MeasureError, match="another run control holds the folder"),
            folders.locked_run_folder(folder),
        ):
            pass
    assert not is_claimed(folder)
    with (
        pytest.raises(MeasureError, match=r"cannot open .*: no such file"),
        folders.locked_run_folder(root / "none"),
    ):
        pass
