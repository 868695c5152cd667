"""Files that a killed unit left: finished, dropped, or left alone while a process writes them."""

import fcntl
import json
from contextlib import contextmanager
from functools import partial

import pytest

from daqloom.data import Mfp, check_recording, recover, unfinished_files
from support.command import invoke

FAILED = 1
BAD_INPUT = 2


def packet(mep):
    return Mfp(10 * mep, 0, [(0, b"data")] * 10).encode()


@pytest.fixture
def part(tmp_path):
    """Three packets and 50 bytes of a fourth."""
    path = tmp_path / "unit-0-source-0-0002.mfp.part"
    path.write_bytes(b"".join(packet(mep) for mep in range(3)) + packet(3)[:50])
    return path


@contextmanager
def locked(path):
    """Lock a file as the unit that writes it does."""
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


run = partial(invoke, "data", "recover")


def test_a_file_is_cut_behind_its_last_whole_packet_and_gets_its_name(part):
    [done] = recover(part.parent)
    assert done.outcome == "finished"
    assert (done.packets, done.nbytes - done.kept_bytes) == (3, 50)
    whole = part.with_suffix("")
    assert whole.read_bytes() == b"".join(packet(mep) for mep in range(3))
    assert not part.exists()
    found = check_recording(part.parent)
    assert found.is_right
    assert found.gaps.events == 30
    assert recover(part.parent) == []


def test_whole_packets_behind_a_damaged_one_are_kept(part):
    damaged = bytearray(packet(1))
    damaged[0] ^= 1
    left = packet(0) + damaged + packet(2)
    part.write_bytes(left + packet(3)[:-1])
    [done] = recover(part.parent)
    assert (done.packets, done.kept_bytes) == (2, len(left))
    [checked] = check_recording(part.parent).files
    assert (checked.packets, checked.skipped, checked.skipped_bytes) == (2, 1, len(damaged))
    assert checked.fault_count == 1


def test_a_file_without_a_whole_packet_is_deleted(part):
    for left in (b"", packet(0)[:-1]):
        part.write_bytes(left)
        [done] = recover(part.parent)
        assert (done.outcome, done.nbytes) == ("dropped", len(left))
        assert list(part.parent.iterdir()) == []


@pytest.mark.parametrize("drop", [(), ("--drop",)])
def test_a_file_that_a_unit_still_writes_is_left_alone(part, drop):
    before = part.read_bytes()
    with locked(part):
        assert [each.in_use for each in unfinished_files(part.parent)] == [True]
        done = run(part.parent, *drop)
    assert done.exit_code == FAILED
    assert "a unit still writes it" in done.stdout
    assert part.read_bytes() == before
    assert run(part.parent, *drop).exit_code == 0


def test_a_file_is_never_put_over_another(part):
    part.with_suffix("").write_bytes(packet(9))
    done = run(part.parent)
    assert done.exit_code == FAILED
    assert "already exists" in done.stdout
    assert part.exists()
    assert part.with_suffix("").read_bytes() == packet(9)


def test_list_changes_nothing_and_drop_deletes(part):
    size = part.stat().st_size
    done = run(part.parent, "--list", "--json")
    assert done.exit_code == 0
    listed = {"file": str(part), "nbytes": size, "in_use": False}
    assert json.loads(done.stdout) == {"files": [listed]}
    assert str(part) in run(part.parent, "--list").stdout
    assert part.stat().st_size == size
    done = run(part.parent, "--drop", "--json")
    assert done.exit_code == 0
    [record] = json.loads(done.stdout)["files"]
    assert (record["outcome"], record["nbytes"]) == ("dropped", size)
    assert list(part.parent.iterdir()) == []


def test_other_files_and_links_are_not_touched(tmp_path):
    (tmp_path / "notes.part").write_bytes(b"mine")
    (tmp_path / "elsewhere").write_bytes(packet(0))
    (tmp_path / "a.mfp.part").symlink_to(tmp_path / "elsewhere")
    done = run(tmp_path, "--drop")
    assert (done.exit_code, done.stdout) == (0, "no unfinished files\n")
    assert len(list(tmp_path.iterdir())) == 3


def test_other_than_a_folder_is_bad_input(tmp_path, part):
    for arguments in ((tmp_path / "none",), (part,), (tmp_path, "--drop", "--list")):
        assert run(*arguments).exit_code == BAD_INPUT
