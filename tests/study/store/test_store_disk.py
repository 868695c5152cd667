"""The store of studies: a disk that is full, fails or takes no writes loses nothing."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from daqloom.study import StoreFailure, StudyError
from daqloom.study.store import record as store_record
from daqloom.study.store import store as stores
from daqloom.study.store.store import Store
from support.ordinary_user import ordinary_user
from support.study_stores import cell, file_of, files, fill, refuse, result, right_ones


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


def test_a_store_that_cannot_be_written_is_refused_before_the_first_result(path: Path) -> None:
    fill(path, range(2))
    store = Store.open(path, create=False)
    shutil.rmtree(path / "cells")
    (path / "cells").touch()  # no folder: for root as for others, nothing can be put there
    with pytest.raises(StudyError, match="cannot write"):
        store.prepare()
    with pytest.raises(StudyError, match="cannot write"):
        store.put(cell(3), result(3))


def test_a_read_only_store(path: Path) -> None:
    fill(path, range(2))
    folders = [path, path / "cells", *(path / "cells").iterdir()]
    for folder in folders:
        folder.chmod(0o500)
    try:
        with ordinary_user(path):
            with Store.open(path, create=True) as store:
                assert right_ones(store, range(2)) == 2
                with pytest.raises(StudyError, match="cannot write"):
                    store.put(cell(3), result(3))
            with pytest.raises(StudyError, match="cannot write"):
                Store.open(path / "new", create=True)
    finally:
        for folder in folders:
            folder.chmod(0o700)


def fill_disk(monkeypatch: pytest.MonkeyPatch, room: int, reason: int) -> None:
    """From now on, `room` bytes can be written, then none."""
    write = os.write

    def limited(file: int, data: bytes) -> int:
        nonlocal room
        if not room:
            raise OSError(reason, os.strerror(reason))
        done = write(file, data[:room])
        room -= done
        return done

    monkeypatch.setattr(os, "write", limited)


FULL = [errno.ENOSPC, errno.EDQUOT, errno.EIO]


@pytest.mark.parametrize(
    ("call", "room", "reason"),
    [
        *(("write", room, reason) for room in (0, 1, 100) for reason in FULL),
        ("close", 0, 0),  # of NFS
        ("replace", 0, 0),
    ],
)
def test_a_full_disk_loses_nothing_that_was_put(
    path: Path, call: str, room: int, reason: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(path, create=True) as store:
        for seed in range(3):
            store.put(cell(seed), result(seed))
        before = files(path)
        with monkeypatch.context() as disk:
            fill_disk(disk, room, reason) if reason else disk.setattr(os, call, refuse)
            for seed in (2, 3):
                with pytest.raises(StoreFailure, match="nothing stored so far is lost"):
                    store.put(cell(seed), result(seed))
        assert files(path) == before
        assert right_ones(store, range(4)) == 3
        store.put(cell(3), result(3))  # there is room again
        assert right_ones(store, range(4)) == 4
        assert store.damage == []


def test_a_write_in_parts_is_a_whole_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:100]))
    fill(path, range(3))
    with Store.open(path, create=False) as store:
        assert right_ones(store, range(3)) == 3


def test_an_interrupted_put_does_no_harm(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def interrupted(file: int, data: bytes) -> int:
        write(file, data)
        raise KeyboardInterrupt

    with Store.open(path, create=True) as store:
        store.put(cell(0), result(0))
        with monkeypatch.context() as keys:
            keys.setattr(os, "write", interrupted)
            with pytest.raises(KeyboardInterrupt):
                store.put(cell(1), result(1))
        store.put(cell(2), result(2))
        assert right_ones(store, range(3)) == 2
    assert files(path) == sorted([file_of(path, 0), file_of(path, 2)])


def test_late_failures_of_the_disk_and_records_too_large_are_reported(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open(path, create=True)
    store.put(cell(0), result(0))
    store.sync()
    store.put(cell(1), result(1))
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StoreFailure):
        store.close()
    store.close()
    monkeypatch.setattr(stores, "MOST_BYTES", 100)
    with (
        Store.open(path, create=True) as store,
        pytest.raises(StoreFailure, match="larger than 100; store it without its series"),
    ):
        store.put(cell(0), result(0))
    assert store_record.MOST_BYTES == 64 << 20


def test_names_of_new_files_and_folders_are_on_the_disk_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    fsync = os.fsync

    def recorded(file: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{file}")))
        fsync(file)

    monkeypatch.setattr(os, "fsync", recorded)
    path = tmp_path / "new" / "store"
    with Store.open(path, create=True) as store:
        # The folder that has the name `new`, the one that has `store`, and the one with the mark.
        assert {tmp_path, path.parent, path} <= set(synced)
        synced.clear()
        store.put(cell(0), result(0))
        store.sync()
        file = file_of(path, 0)
        assert synced[0] == file  # the content before the names
        assert set(synced) == {file, file.parent, path / "cells", path}
        synced.clear()
        store.sync()
        assert synced == []
