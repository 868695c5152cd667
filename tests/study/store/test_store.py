"""Store of studies: results are kept with any number of writers."""

import json
import multiprocessing
import os
import signal
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import daqloom
from daqloom.base.version import commit
from daqloom.study import StudyError
from daqloom.study.store import store
from daqloom.study.store.record import compress, decompress
from daqloom.study.store.store import FORMAT, Store
from support.study_stores import (
    SCENARIO,
    cell,
    file_of,
    files,
    fill,
    fill_at_once,
    result,
    right_ones,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


def test_stored_results_have_their_origin(path: Path) -> None:
    kept = result(7, warnings=["a note, with “signs” and\nlines"])
    with Store.open(path, create=True, command="daqloom study run mine.toml") as opened:
        opened.put(cell(7), kept)
        assert cell(7).key in opened
    with Store.open(path, create=False) as opened:
        assert opened.keys() == [cell(7).key]
        assert len(opened) == 1
        record = opened.record(cell(7).key)
    assert record is not None
    assert record.result == kept
    assert datetime.fromisoformat(record.time).utcoffset() is not None
    assert record.session.command == "daqloom study run mine.toml"
    assert record.session.daqloom == daqloom.__version__
    assert record.session.commit == record.result.commit == commit()
    assert record.session.host
    assert datetime.fromisoformat(record.session.started) <= datetime.fromisoformat(record.time)


def test_a_record_of_an_earlier_version_has_no_commit(path: Path) -> None:
    fill(path, range(1))
    file = file_of(path, 0)
    head, scenario = decompress(file.read_bytes()).split(b"\n", 1)
    record = json.loads(head.removesuffix(b",") + b"}")
    assert "commit" not in record["result"]  # an earlier version would refuse it
    del record["session"]["commit"]
    file.write_bytes(compress(json.dumps(record).removesuffix("}").encode() + b",\n" + scenario))
    with Store.open(path, create=False) as opened:
        found = opened.record(cell(0).key)
    assert found is not None
    assert (found.session.commit, found.result.commit) == ("", "")


def test_a_cell_that_was_not_put_is_absent(path: Path) -> None:
    for seeds in (range(0), range(3)):
        fill(path, seeds)
        with Store.open(path, create=False) as opened:
            assert cell(5).key not in opened
            assert opened.get(cell(5).key) is None
            assert opened.record(cell(5).key) is None
            assert len(opened) == len(seeds)
            assert opened.damage == []


@pytest.mark.process
def test_a_file_is_small_and_read_by_common_tools(path: Path) -> None:
    fill(path, range(1))
    file = file_of(path, 0)
    text = subprocess.check_output(["zcat", file])
    found = json.loads(text)
    assert (found["key"], found["method"], found["seed"]) == (cell(0).key, "simulate", 0)
    assert found["scenario"] == SCENARIO.model_dump(mode="json")
    assert found["result"]["metrics"]["events_built"] == 0
    assert file.stat().st_size < len(text) / 2


def test_methods_are_kept_apart_with_their_courses_and_the_later_result_counts(path: Path) -> None:
    with Store.open(path, create=True) as one, Store.open(path, create=True) as other:
        for seed, opened in ((1, one), (2, other)):
            for method in ("analyse", "simulate"):
                opened.put(cell(seed, method), result(seed, method))
        assert len(one) == 3  # the closed forms draw nothing: one cell for both seeds
        assert one.get(cell(1).key) == result(1)
        assert one.get(cell(1, "analyse").key) == result(2, "analyse")
    course = {"buffer_peak_bytes.tor": [10.0, 20.0]}
    series = {"course": course, "tor_occupancy": {"time_s": [0.5, 1.5], "max_bytes": [10, 20]}}
    assumed = {"network.links.uplink.rate": "800 Gb/s"}
    with Store.open(path, create=True) as opened:
        opened.put(cell(1), result(1, series=series, assumed=assumed))
        assert opened.get(cell(1).key) == result(1, series={"course": course})


def test_a_store_that_is_only_read_is_not_written(path: Path) -> None:
    fill(path, range(2))
    before = {p: p.stat().st_mtime_ns for p in path.rglob("*")} | {path: path.stat().st_mtime_ns}
    with Store.open(path, create=True) as opened:
        assert right_ones(opened, range(2)) == 2
    after = {p: p.stat().st_mtime_ns for p in path.rglob("*")} | {path: path.stat().st_mtime_ns}
    assert after == before
    opened.prepare()
    assert len(files(path)) == 2


def test_results_of_other_processes_appear_at_once(path: Path) -> None:
    with Store.open(path, create=True) as one, Store.open(path, create=False) as two:
        for seed in range(0, 10, 2):
            one.put(cell(seed), result(seed))
            assert two.get(cell(seed).key) == result(seed)
            two.put(cell(seed + 1), result(seed + 1))
        assert right_ones(one, range(10)) == right_ones(two, range(10)) == 10


def test_a_store_that_another_process_completes_meanwhile_is_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_free = store._is_free

    def late(folder: Path) -> bool:
        store.write_mark(folder)
        (folder / "cells").mkdir()
        return is_free(folder)

    monkeypatch.setattr(store, "_is_free", late)
    Store.open(path, create=True)


@pytest.mark.process
def test_processes_write_at_once(path: Path) -> None:
    """Two that share all but what they write, and one that has nothing of them. Their cells
    overlap: the results of both are the same."""
    ways: list[Any] = [multiprocessing.get_context(way) for way in ("fork", "fork", "spawn")]
    start = ways[-1].Barrier(len(ways), timeout=600)  # where one of them does not come
    writers = [
        way.Process(target=fill_at_once, args=(path, range(n * 50, n * 50 + 75), start))
        for n, way in enumerate(ways)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    with Store.open(path, create=False) as opened:
        assert right_ones(opened, range(175)) == len(opened) == len(files(path)) == 175


@pytest.mark.process
def test_a_killed_writer_leaves_all_that_it_had_put(path: Path) -> None:
    context = multiprocessing.get_context("fork")
    mine, its = context.Pipe()

    def put_until_killed() -> None:
        with Store.open(path, create=True) as opened:
            for seed in range(1_000_000):
                opened.put(cell(seed), result(seed))
                its.send(seed)

    writer = context.Process(target=put_until_killed)
    writer.start()
    its.close()
    while mine.recv() < 100:
        pass
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    last = 100
    while mine.poll():
        try:
            last = mine.recv()
        except EOFError:
            break
    with Store.open(path, create=False) as opened:
        assert right_ones(opened, range(last + 1)) == last + 1
        # The last one may be there unreported, complete; what was cut off has another name.
        assert right_ones(opened, range(last + 2)) == len(opened)
        assert opened.damage == []
        opened.put(cell(last + 1), result(last + 1))


@pytest.mark.parametrize("create", [False, True])
def test_other_paths_than_stores_are_refused(path: Path, create: bool) -> None:
    path.mkdir()
    (path / "thesis.tex").write_text("do not touch")
    cases = {
        path / "thesis.tex": "is a file",
        path / "thesis.tex" / "below": "is a file",
        path: "not a store",
        path / "a\0b": "not the name of a folder",
        path / ("a" * 5000): "File name too long" if create else "",
    }
    for wrong, reason in cases.items():
        with pytest.raises(StudyError, match=f"(?i){reason}"):
            Store.open(wrong, create=create)
    assert [p.name for p in path.iterdir()] == ["thesis.tex"]


def test_an_empty_folder_becomes_a_store_with_create(path: Path) -> None:
    with pytest.raises(StudyError, match="there is no store"):
        Store.open(path, create=False)
    path.mkdir()
    with pytest.raises(StudyError, match=r"format\.json is missing"):
        Store.open(path, create=False)
    (path / ".format.json-left-by-a-killed-process").touch()
    fill(path, range(1))
    assert json.loads((path / "format.json").read_text()) == {"daqloom-store": FORMAT}


@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        (FORMAT + 1, "update daqloom"),
        (2, "convert it with `daqloom study convert --store "),
        (1, "use the daqloom that wrote it"),
    ],
)
def test_a_store_of_another_version_is_not_touched(path: Path, version: int, remedy: str) -> None:
    fill(path, range(1))
    (path / "format.json").write_text(json.dumps({"daqloom-store": version}))
    with pytest.raises(StudyError, match=f"format {version}, and this daqloom reads {FORMAT}; .*"):
        Store.open(path, create=True)
    with pytest.raises(StudyError, match=remedy):
        Store.open(path, create=False)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"daqloom-store": true}', '{"daqloom-store": 0}', "[" * 4000]
)
def test_a_folder_of_another_format_is_no_store(path: Path, text: str) -> None:
    path.mkdir()
    (path / "format.json").write_text(text)
    with pytest.raises(StudyError, match="is no mark of a store"):
        Store.open(path, create=True)
