"""The store of studies: what is put is there, whoever writes at the same time."""

import json
import multiprocessing
import os
import signal
from datetime import datetime
from pathlib import Path

import pytest

import daqloom
from daqloom.study import StudyError, store_folder
from daqloom.study.store import Store
from daqloom.study.store_folder import FORMAT
from daqloom.study.store_lines import (
    COPIES,
)
from daqloom.study.store_writer import RESULTS_OF_A_PATTERN
from support.study_stores import SCENARIO, cell, fill, fill_at_once, result, right_ones, segments


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


def test_what_was_put_is_there_with_its_origin(path: Path) -> None:
    with Store.open(path, create=True, command="daqloom study run mine.toml") as store:
        store.put(cell(7), result(7, warnings=["a note, with “signs” and\nlines"]))
        assert cell(7).key in store
    with Store.open(path, create=False) as store:
        assert store.keys() == [cell(7).key]
        assert len(store) == 1
        record = store.record(cell(7).key)
    assert record is not None
    assert record.result == result(7, warnings=["a note, with “signs” and\nlines"])
    assert (record.key, record.method, record.seed) == (cell(7).key, "simulate", 7)
    assert record.scenario == SCENARIO.model_dump(mode="json")
    assert datetime.fromisoformat(record.time).utcoffset() is not None
    assert record.session is not None
    assert record.session.command == "daqloom study run mine.toml"
    assert record.session.daqloom == daqloom.__version__
    assert record.session.host
    assert datetime.fromisoformat(record.session.started) <= datetime.fromisoformat(record.time)


def test_a_cell_that_was_not_put_is_absent(path: Path) -> None:
    fill(path, range(3))
    with Store.open(path, create=False) as store:
        assert cell(5).key not in store
        assert store.get(cell(5).key) is None
        assert store.record(cell(5).key) is None
        assert store.damaged == []


def test_methods_are_kept_apart(path: Path) -> None:
    with Store.open(path, create=True) as store:
        for seed in (1, 2):
            for method in ("analyse", "simulate"):
                store.put(cell(seed, method), result(seed, method))
        assert len(store) == 3  # the closed forms draw nothing: one cell for both seeds
        assert store.get(cell(1).key) == result(1)
        assert store.get(cell(1, "analyse").key) == result(2, "analyse")


def test_of_the_time_series_the_course_of_metrics_is_kept(path: Path) -> None:
    course = {"buffer_peak_bytes.tor": [10.0, 20.0]}
    occupancy = {"time_s": [0.5, 1.5], "max_bytes": [10, 20]}
    with Store.open(path, create=True) as store:
        store.put(cell(1), result(1, series={"course": course, "tor_occupancy": occupancy}))
    with Store.open(path, create=False) as store:
        kept = store.get(cell(1).key)
    assert kept is not None
    assert kept.series == {"course": course}


def test_the_later_of_two_results_counts(path: Path) -> None:
    with Store.open(path, create=True) as store:
        store.put(cell(1), result(1))
        store.put(cell(1), result(1, warnings=["again"]))
    with Store.open(path, create=False) as store:
        assert len(store) == 1
        assert store.get(cell(1).key) == result(1, warnings=["again"])


def test_records_are_small(path: Path) -> None:
    fill(path, range(1000))
    [segment] = segments(path)
    record = len(json.dumps(SCENARIO.model_dump(mode="json")) + result(1).to_json(indent=None))
    assert segment.stat().st_size < 1000 * record / 5
    lines = segment.read_bytes().splitlines()
    patterns = COPIES * -(-1000 // RESULTS_OF_A_PATTERN)
    assert len(lines) == 1 + patterns + 1000
    assert sum(b" pattern " in line for line in lines) == patterns


def test_a_store_that_is_only_read_is_not_written(path: Path) -> None:
    fill(path, range(2))
    before = {p: p.stat().st_mtime_ns for p in path.rglob("*")} | {path: path.stat().st_mtime_ns}
    with Store.open(path, create=True) as store:
        assert right_ones(store, range(2)) == 2
        store.refresh()
    after = {p: p.stat().st_mtime_ns for p in path.rglob("*")} | {path: path.stat().st_mtime_ns}
    assert after == before


def test_a_process_that_puts_nothing_leaves_no_segment(path: Path) -> None:
    with Store.open(path, create=True) as store:
        store.prepare()
        assert len(segments(path)) == 1
    assert segments(path) == []


def test_others_cells_are_seen_after_refresh(path: Path) -> None:
    with Store.open(path, create=True) as one, Store.open(path, create=False) as two:
        for seed in range(0, 10, 2):
            one.put(cell(seed), result(seed))
            assert cell(seed).key not in two
            two.refresh()
            assert two.get(cell(seed).key) == result(seed)
            two.put(cell(seed + 1), result(seed + 1))
        one.refresh()
        assert right_ones(one, range(10)) == right_ones(two, range(10)) == 10
        assert one.damaged == two.damaged == []
    assert len(segments(path)) == 2


def test_a_store_that_another_process_completes_meanwhile_is_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_free = store_folder._is_free

    def late(folder: Path) -> bool:
        store_folder._write_mark(folder)
        (folder / "results").mkdir()
        return is_free(folder)

    monkeypatch.setattr(store_folder, "_is_free", late)
    store_folder.open_folder(path, create=True)


@pytest.mark.process
def test_processes_write_at_once(path: Path) -> None:
    """Two that share all but what they write, and one that has nothing of them."""
    each = RESULTS_OF_A_PATTERN + 20
    ways = [multiprocessing.get_context(way) for way in ("fork", "fork", "spawn")]
    start = ways[-1].Barrier(len(ways), timeout=600)  # where one of them does not come
    writers = [
        way.Process(target=fill_at_once, args=(path, range(n * each, (n + 1) * each), start))
        for n, way in enumerate(ways)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    count = len(writers) * each
    with Store.open(path, create=False) as store:
        assert right_ones(store, range(count)) == len(store) == count
        assert store.damaged == []


@pytest.mark.process
def test_a_child_of_the_writer_writes_to_its_own_segment(path: Path) -> None:
    context = multiprocessing.get_context("fork")
    with Store.open(path, create=True) as store:
        store.put(cell(0), result(0))

        def put_in_child() -> None:
            for seed in range(1, 5):
                store.put(cell(seed), result(seed))
            store.close()

        child = context.Process(target=put_in_child)
        child.start()
        for seed in range(5, 10):
            store.put(cell(seed), result(seed))
        child.join()
        assert child.exitcode == 0
        store.refresh()
        assert right_ones(store, range(10)) == 10
    assert len(segments(path)) == 2


@pytest.mark.process
def test_a_killed_writer_leaves_all_that_it_had_put(path: Path) -> None:
    context = multiprocessing.get_context("fork")
    mine, its = context.Pipe()

    def put_until_killed() -> None:
        with Store.open(path, create=True) as store:
            for seed in range(1_000_000):
                store.put(cell(seed), result(seed))
                its.send(seed)

    writer = context.Process(target=put_until_killed)
    writer.start()
    its.close()
    while mine.recv() < 300:
        pass
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    last = 300
    while mine.poll():
        try:
            last = mine.recv()
        except EOFError:
            break
    with Store.open(path, create=False) as store:
        assert right_ones(store, range(last + 1)) == last + 1
        assert store.damaged == []


def test_a_torn_end_loses_only_its_own_cell(path: Path) -> None:
    fill(path, range(6))
    [segment] = segments(path)
    text = segment.read_bytes()
    ends = [at + 1 for at, byte in enumerate(text) if byte == ord("\n")]
    assert len(ends) == 1 + COPIES + 6  # the session, the pattern and six cells
    for length in reversed(range(ends[-3], len(text))):
        os.truncate(segment, length)
        whole = sum(end <= length for end in ends) - 1 - COPIES
        with Store.open(path, create=False) as store:
            assert right_ones(store, range(6)) == len(store) == whole
            assert store.damaged == []  # the end of a process is no damage


def test_a_line_is_seen_once_its_writer_has_ended_it(path: Path) -> None:
    fill(path, range(3))
    [segment] = segments(path)
    text = segment.read_bytes()
    segment.write_bytes(text[:-10])
    with Store.open(path, create=False) as store:
        store.refresh()
        assert len(store) == 2
        with segment.open("ab") as file:
            file.write(text[-10:])
        store.refresh()
        assert right_ones(store, range(3)) == 3
        assert store.damaged == []


def test_there_must_be_a_store_to_read(path: Path) -> None:
    with pytest.raises(StudyError, match="there is no store"):
        Store.open(path, create=False)
    assert not path.exists()


@pytest.mark.parametrize("create", [False, True])
def test_a_file_is_no_store(path: Path, create: bool) -> None:
    path.write_text("something")
    for wrong in (path, path / "below"):
        with pytest.raises(StudyError, match="is a file"):
            Store.open(wrong, create=create)


@pytest.mark.parametrize("create", [False, True])
def test_a_folder_with_other_things_is_no_store(path: Path, create: bool) -> None:
    path.mkdir()
    (path / "thesis.tex").write_text("do not touch")
    with pytest.raises(StudyError, match="not a store"):
        Store.open(path, create=create)
    assert [p.name for p in path.iterdir()] == ["thesis.tex"]


def test_an_empty_folder_becomes_a_store_when_told(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StudyError, match=r"format\.json is missing"):
        Store.open(path, create=False)
    (path / ".format-left-by-a-killed-process").touch()
    fill(path, range(1))
    assert json.loads((path / "format.json").read_text()) == {"daqloom-store": FORMAT}


@pytest.mark.parametrize("name", ["a\0b", "a" * 5000])
def test_a_name_that_no_folder_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(StudyError):
        Store.open(tmp_path / name, create=True)


def test_a_newer_store_is_not_touched(path: Path) -> None:
    fill(path, range(1))
    (path / "format.json").write_text(json.dumps({"daqloom-store": FORMAT + 1}))
    with pytest.raises(StudyError, match=f"format {FORMAT + 1}, and this daqloom knows {FORMAT}"):
        Store.open(path, create=True)


def test_an_older_store_is_not_taken_for_a_damaged_one(path: Path) -> None:
    fill(path, range(1))
    (path / "format.json").write_text(json.dumps({"daqloom-store": FORMAT - 1}))
    with pytest.raises(StudyError, match=f"format {FORMAT - 1}, and this daqloom knows {FORMAT}"):
        Store.open(path, create=True)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"daqloom-store": true}', '{"daqloom-store": 0}', "[" * 4000]
)
def test_a_folder_of_another_format_is_no_store(path: Path, text: str) -> None:
    path.mkdir()
    (path / "format.json").write_text(text)
    with pytest.raises(StudyError, match="not what a store has there"):
        Store.open(path, create=True)


def test_a_store_keeps_nothing_of_what_one_scenario_left_out(path: Path) -> None:
    assumed = {"network.links.uplink.rate": "800 Gb/s"}
    with Store.open(path, create=True) as store:
        store.put(cell(1), result(1, assumed=assumed))
    with Store.open(path, create=False) as store:
        assert store.get(cell(1).key) == result(1)
