"""Claims of a process hold while it lives, and are removed by the next start."""

import os
import signal
import subprocess
import sys
import tempfile

import pytest

from daqloom.base import claims
from daqloom.base.claims import LIVE, claimed_file, claimed_folder, is_claimed, remove_abandoned
from daqloom.base.output import LONGEST_WRITE_S, SCRATCH, write_text
from support.measure.controlled_runs import HUNG_S

HOLDS = """
import signal, sys
from pathlib import Path
from daqloom.base.claims import claimed_file, claimed_folder
folder = Path(sys.argv[1])
with claimed_folder() as own, claimed_file(folder / sys.argv[2], "secret"):
    (own / "below").mkdir()
    print(own, flush=True)
    signal.pause()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@pytest.mark.process
def test_the_next_start_removes_what_a_killed_process_had_and_nothing_else(folder):
    arguments = [[sys.executable, "-c", HOLDS, str(folder), name] for name in ("killed", "living")]
    programs = [subprocess.Popen(each, stdout=subprocess.PIPE, text=True) for each in arguments]
    try:
        killed, living = (program.stdout.readline().strip() for program in programs)
        programs[0].send_signal(signal.SIGKILL)
        programs[0].wait(HUNG_S)
        assert os.path.exists(killed)
        assert not is_claimed(folder / "killed")
        assert is_claimed(folder / "living")
        with claimed_folder():
            assert not os.path.exists(killed)
            assert os.path.exists(living)
        remove_abandoned([folder / "killed", folder / "living"])
        assert sorted(os.listdir(folder)) == [os.path.basename(living), "living"]
    finally:
        for program in programs:
            program.kill()
            program.communicate()


def test_scratch_of_a_killed_write_is_removed_when_no_other_machine_can_be_at_it(folder):
    killed, recent = folder / f"{SCRATCH}killed", folder / f"{SCRATCH}recent"
    for path in (killed, recent):
        path.mkdir()
        (path / "figure.png").touch()
    long_ago_s = killed.stat().st_mtime - LONGEST_WRITE_S - 1
    os.utime(killed, (long_ago_s, long_ago_s))
    write_text(folder / "new.txt", "new")
    assert sorted(os.listdir(folder)) == [recent.name, "new.txt"]


def test_a_file_is_of_its_user_alone_and_another_of_its_name_left_alone(folder):
    path = folder / "secret"
    path.write_text("of a killed process")
    with claimed_file(path, "new"):
        assert path.read_text() == "new"
        assert path.stat().st_mode & 0o777 == 0o600
        remove_abandoned([path])
        assert is_claimed(path)
    assert os.listdir(folder) == []
    path = folder / "secret"
    with claimed_file(path, "one"), claimed_file(path, "two"):
        pass
    assert os.listdir(folder) == []
    with claimed_file(path, "one"):
        path.unlink()
        path.write_text("of somebody else")
    assert path.read_text() == "of somebody else"


def test_another_start_may_remove_a_file_before_it_is_locked(folder, monkeypatch):
    path, lock, removed = folder / "secret", claims.fcntl.flock, []

    def late(*given):
        if not removed:
            removed.append(path.unlink())
        return lock(*given)

    monkeypatch.setattr(claims.fcntl, "flock", late)
    with claimed_file(path, "new"):
        assert path.read_text() == "new"
    assert removed


def test_links_and_folders_of_others_are_left_alone(folder, monkeypatch):
    theirs = folder / "theirs"
    theirs.mkdir()
    (theirs / "precious").write_text("hello")
    link = folder / f"{LIVE}link"
    link.symlink_to(theirs)
    fifo = folder / f"{LIVE}fifo"
    os.mkfifo(fifo)
    ours = folder / f"{LIVE}killed"
    ours.mkdir()
    (ours / "link").symlink_to(theirs)
    with monkeypatch.context() as another_user:
        another_user.setattr(os, "getuid", lambda: -1)
        remove_abandoned([ours, link])
    assert ours.exists()
    remove_abandoned([ours, link, folder / "none"])
    assert not ours.exists()
    assert link.is_symlink()
    assert (theirs / "precious").read_text() == "hello"
