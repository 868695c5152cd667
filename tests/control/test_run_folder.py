"""Folder of the units' output, which exists during a run, and after a failure."""

import os
import stat
import tempfile

import pytest

from daqloom.base import claims
from daqloom.control.run_folder import run_folder
from daqloom.results.errors import MeasureError
from support.children import killed_and_living

HOLDS_ONE = (
    "import signal; from daqloom.control.run_folder import run_folder\n"
    "with run_folder(None) as folder:\n"
    "    (folder / 'unit-0.log').write_text('hello')\n"
    "    print(folder, flush=True)\n"
    "    signal.pause()\n"
)


def test_it_is_gone_with_a_run_that_ends_well(tmpdir_of_all):
    with run_folder(None) as folder:
        (folder / "unit-0.log").write_text("hello")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(tmpdir_of_all.iterdir()) == []


def test_it_is_kept_for_its_user_if_the_run_fails(tmpdir_of_all):
    def fails():
        with run_folder(None) as folder:
            (folder / "unit-0.log").write_text("hello")
            raise MeasureError("all is lost")

    with pytest.raises(MeasureError) as failed:
        fails()
    (kept,) = tmpdir_of_all.iterdir()
    assert str(failed.value) == f"all is lost; the output of the units is in {kept}"
    with run_folder(None):
        pass
    assert (kept / "unit-0.log").read_text() == "hello"


def test_a_run_that_fails_before_it_has_units_leaves_nothing(tmpdir_of_all):
    with pytest.raises(MeasureError, match=r"^no port$"), run_folder(None):
        raise MeasureError("no port")
    assert list(tmpdir_of_all.iterdir()) == []


@pytest.mark.parametrize("moment", ["mkdtemp", "open"])
def test_another_start_may_remove_it_before_it_is_locked(tmpdir_of_all, monkeypatch, moment):
    where = {"mkdtemp": (tempfile, "mkdtemp"), "open": (claims, "_open")}[moment]
    original, removed = getattr(*where), []

    def then_removed(*args, **kwargs):
        made = original(*args, **kwargs)
        if not removed:
            [path] = tmpdir_of_all.iterdir()
            path.rmdir()
            removed.append(path)
        return made

    monkeypatch.setattr(*where, then_removed)
    with run_folder(None) as folder:
        assert folder.is_dir()
        assert folder not in removed
    assert removed


def test_a_folder_that_the_user_names_stays(tmp_path):
    with run_folder(tmp_path / "logs") as folder:
        (folder / "unit-0.log").write_text("hello")
    with pytest.raises(MeasureError, match=r"units is in .*/logs"), run_folder(folder):
        raise MeasureError("all is lost")
    assert (folder / "unit-0.log").read_text() == "hello"


@pytest.mark.process
def test_the_next_start_removes_that_of_a_killed_run_control_and_no_other(tmpdir_of_all):
    with killed_and_living(HOLDS_ONE) as (killed, living):
        assert os.path.exists(f"{killed}/unit-0.log")
        with run_folder(None):
            assert not os.path.exists(killed)
            assert os.path.exists(f"{living}/unit-0.log")
