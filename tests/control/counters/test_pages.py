"""Folder for the counters of a run: it stays while a process holds it."""

import os
import stat

import pytest

from daqloom.base.claims import share
from daqloom.control.counters import pages
from daqloom.control.counters.pages import Pages, pages_folder
from daqloom.results.errors import MeasureError


@pytest.fixture(autouse=True)
def memory(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "MEMORY", tmp_path)


def test_the_folder_goes_with_the_run_and_is_private():
    with pages_folder("abcd") as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        with pages_folder("other") as other:
            assert other != folder
    assert not folder.exists()


def test_a_folder_that_a_unit_holds_is_found_again_and_others_are_removed(tmp_path):
    held, left = (tmp_path / f"daqloom-run-{os.getuid()}-{name}" for name in ("held", "left"))
    for folder in (held, left):
        folder.mkdir(mode=0o700)
        os.utime(folder, (0, 0))
    lock = share(held)
    try:
        with pages_folder("new"):
            assert held.exists()
            assert not left.exists()
        with pages_folder("held") as again:
            assert again == held
    finally:
        os.close(lock)


def test_a_folder_that_others_can_read_is_refused(tmp_path):
    (tmp_path / f"daqloom-run-{os.getuid()}-mine").mkdir(mode=0o755)
    with pytest.raises(MeasureError, match="is accessible to other users"), pages_folder("mine"):
        pass


def test_a_unit_without_a_page_has_no_last_counters(tmp_path):
    assert Pages("run", str(tmp_path)).last(3) is None
    assert Pages("run").last(3) is None
