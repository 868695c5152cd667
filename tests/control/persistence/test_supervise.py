"""A run control that a signal has ended is started again; one that has ended itself is not."""

import sys
from pathlib import Path

import pytest

from daqloom.control.persistence import supervise

pytestmark = pytest.mark.process


def command(folder: Path, *ends: str) -> list[str]:
    """A program that ends in one way after the other."""
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        f"count = Path({str(folder / 'starts')!r})\n"
        "starts = int(count.read_text()) if count.exists() else 0\n"
        "count.write_text(str(starts + 1))\n"
        "end = sys.argv[1:][min(starts, len(sys.argv) - 2)]\n"
        "os.kill(os.getpid(), signal.SIGKILL) if end == 'killed' else sys.exit(int(end))\n"
    )
    return [sys.executable, "-c", program, *ends]


def starts(folder: Path) -> int:
    return int((folder / "starts").read_text())


@pytest.fixture(autouse=True)
def handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise.signal, "signal", lambda *_: None)


def test_a_killed_run_control_is_started_again_until_its_run_is_over(tmp_path, capsys):
    assert supervise.supervise(command(tmp_path, "killed", "7", "0")) == 0
    assert starts(tmp_path) == 3
    told = capsys.readouterr().err
    assert "ended by SIGKILL; it is started again" in told
    assert "ended with exit code 7; it is started again" in told


@pytest.mark.parametrize("code", [1, 2, 130])
def test_the_end_of_a_run_is_final(tmp_path, code):
    assert supervise.supervise(command(tmp_path, str(code))) == code
    assert starts(tmp_path) == 1


def test_a_run_control_that_fails_at_once_is_not_started_for_ever(tmp_path):
    assert supervise.supervise(command(tmp_path, "killed")) == 128 + 9
    assert starts(tmp_path) == supervise.MOST_STARTS
