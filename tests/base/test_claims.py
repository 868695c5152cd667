"""Claims of a process hold while it lives, and are removed by the next start."""

import os

import pytest

from daqloom.base import claims
from daqloom.base.claims import LIVE, claimed_file, claimed_folder, is_claimed, remove_abandoned
from daqloom.base.output import LONGEST_WRITE_S, SCRATCH, write_text
from support.children import killed_and_living

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


@pytest.mark.process
def test_the_next_start_removes_only_folders_of_killed_processes(tmpdir_of_all):
    with killed_and_living(HOLDS, str(tmpdir_of_all)) as (killed, living):
        assert os.path.exists(killed)
        assert not is_claimed(tmpdir_of_all / "killed")
        assert is_claimed(tmpdir_of_all / "living")
        with claimed_folder():
            assert not os.path.exists(killed)
            assert os.path.exists(living)
        remove_abandoned([tmpdir_of_all / "killed", tmpdir_of_all / "living"])
        assert sorted(os.listdir(tmpdir_of_all)) == [os.path.basename(living), "living"]


def test_scratch_of_a_killed_write_is_removed_when_no_other_machine_can_be_at_it(tmpdir_of_all):
    killed, recent = tmpdir_of_all / f"{SCRATCH}killed", tmpdir_of_all / f"{SCRATCH}recent"
    for path in (killed, recent):
        path.mkdir()
        (path / "figure.png").touch()
    long_ago_s = killed.stat().st_mtime - LONGEST_WRITE_S - 1
    os.utime(killed, (long_ago_s, long_ago_s))
    write_text(tmpdir_of_all / "new.txt", "new")
    assert sorted(os.listdir(tmpdir_of_all)) == [recent.name, "new.txt"]


def test_a_file_is_of_its_user_alone_and_another_of_its_name_left_alone(tmpdir_of_all):
    path = tmpdir_of_all / "secret"
    path.write_text("of a killed process")
    with claimed_file(path, "new"):
        assert path.read_text() == "new"
        assert path.stat().st_mode & 0o777 == 0o600
        remove_abandoned([path])
        assert is_claimed(path)
    assert os.listdir(tmpdir_of_all) == []
    path = tmpdir_of_all / "secret"
    with claimed_file(path, "one"), claimed_file(path, "two"):
        pass
    assert os.listdir(tmpdir_of_all) == []
    with claimed_file(path, "one"):
        path.unlink()
        path.write_text("of somebody else")
    assert path.read_text() == "of somebody else"


def test_another_start_may_remove_a_file_before_it_is_locked(tmpdir_of_all, monkeypatch):
    path, lock, removed = tmpdir_of_all / "secret", claims.fcntl.flock, []

    def late(*given):
        if not removed:
            removed.append(path.unlink())
        return lock(*given)

    monkeypatch.setattr(claims.fcntl, "flock", late)
    with claimed_file(path, "new"):
        assert path.read_text() == "new"
    assert removed


def test_links_and_folders_of_others_are_left_alone(tmpdir_of_all, monkeypatch):
    theirs = tmpdir_of_all / "theirs"
    theirs.mkdir()
    (theirs / "precious").write_text("hello")
    link = tmpdir_of_all / f"{LIVE}link"
    link.symlink_to(theirs)
    fifo = tmpdir_of_all / f"{LIVE}fifo"
    os.mkfifo(fifo)
    ours = tmpdir_of_all / f"{LIVE}killed"
    ours.mkdir()
    (ours / "link").symlink_to(theirs)
    with monkeypatch.context() as another_user:
        another_user.setattr(os, "getuid", lambda: -1)
        remove_abandoned([ours, link])
    assert ours.exists()
    remove_abandoned([ours, link, tmpdir_of_all / "none"])
    assert not ours.exists()
    assert link.is_symlink()
    assert (theirs / "precious").read_text() == "hello"
