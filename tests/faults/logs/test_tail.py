"""Lines of a log that another program is writing."""

import os
from pathlib import Path

import pytest

from daqloom.faults import FaultsError
from daqloom.faults.logs.read import LONGEST_LINE
from daqloom.faults.logs.tail import LogTail


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_lines_appear_once_and_only_when_they_are_complete(tmp_path: Path) -> None:
    path = tmp_path / "opensm.log"
    path.write_text("one\ntw")
    with LogTail(path) as tail:
        assert list(tail.lines()) == ["one"]
        assert list(tail.lines()) == []
        append(path, "o\r\nthree\nfo")
        assert list(tail.lines()) == ["two", "three"]
        append(path, "ur\n")
        assert list(tail.lines()) == ["four"]


def test_a_rotated_log_is_read_to_its_end_and_then_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "opensm.log"
    path.write_text("one\n")
    with LogTail(path) as tail:
        assert list(tail.lines()) == ["one"]
        append(path, "two\ncut")
        path.rename(tmp_path / "opensm.log.1")
        assert list(tail.lines()) == ["two"]
        path.write_text("three\n")
        assert list(tail.lines()) == ["three"]


def test_an_emptied_log_is_read_from_its_begin(tmp_path: Path) -> None:
    path = tmp_path / "opensm.log"
    path.write_text("one\ntwo\ncut")
    with LogTail(path) as tail:
        assert list(tail.lines()) == ["one", "two"]
        path.write_text("new\n")
        assert list(tail.lines()) == ["new"]


@pytest.mark.parametrize("at_once", [True, False])
def test_a_line_that_is_too_long_is_left_out_and_counted(tmp_path: Path, at_once: bool) -> None:
    path = tmp_path / "opensm.log"
    path.write_text("one\n")
    with LogTail(path) as tail:
        found = []
        for text in (
            "x" * (LONGEST_LINE + 1),
            "x" * 3 * LONGEST_LINE,
            "end\ntwo\n",
            "x" * 9 + "\n",
        ):
            append(path, text)
            if not at_once:
                found += tail.lines()
        found += tail.lines()
        assert found == ["one", "two", "x" * 9]
        assert tail.too_long == 1


def test_a_log_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("absent", "pipe"):
        with pytest.raises(FaultsError, match=rf"cannot read .*{name}: .*; give OpenSM's log"):
            LogTail(tmp_path / name)
