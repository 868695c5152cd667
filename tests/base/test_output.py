"""Files that are written: whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from daqloom.base.output import OutputError, written_whole


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "figure.txt"
    with written_whole(path) as scratch:
        scratch.write_text("first")
        assert not path.exists()

    def fail_half_way() -> None:
        with written_whole(path) as scratch:
            scratch.write_text("second, half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert path.read_text() == "first"
    assert list(path.parent.iterdir()) == [path]


def test_a_symbolic_link_in_place_of_a_scratch_file_is_not_followed(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "figure.txt"
    victim.write_text("untouched")
    path.with_name(f".figure-{os.getpid()}.txt").symlink_to(victim)
    for text in ("first", "second"):
        with written_whole(path) as scratch:
            scratch.write_text(text)
            folder = scratch.parent
            assert folder.parent == tmp_path, "a rename within one file system"
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700, "nobody else lays one there"
        assert path.read_text() == text
        folder.mkdir()
        scratch.symlink_to(victim)  # by who expects the same name again
    assert victim.read_text() == "untouched"


def test_a_file_has_the_permissions_that_the_user_gives_to_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with written_whole(tmp_path / "figure.txt") as scratch:
            scratch.write_text("text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "figure.txt").stat().st_mode) == 0o640


def test_a_folder_that_cannot_be_written_and_a_full_disk_are_one_sentence(tmp_path: Path) -> None:
    def fill_the_disk() -> None:
        with written_whole(tmp_path / "figure.png") as scratch:
            scratch.write_text("half")
            Path("/dev/full").write_text("a device that is always full")

    with pytest.raises(OutputError, match="no space left on device"):
        fill_the_disk()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(OutputError, match=r"cannot write .*figure\.png"),
        written_whole(tmp_path / "file" / "figure.png"),
    ):
        pytest.fail("there is nowhere to write")
