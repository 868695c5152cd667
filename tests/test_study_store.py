"""The store of studies: nothing put is lost, and nothing damaged is believed."""

import errno
import functools
import json
import multiprocessing
import os
import shutil
import signal
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import daqloom
from daqloom.result import Result
from daqloom.scenario import Scenario
from daqloom.study.cell import SEEDED, Cell
from daqloom.study.errors import StoreFailure, StudyError
from daqloom.study.store import Store
from daqloom.study.store_folder import FORMAT
from daqloom.study.store_lines import (
    COPIES,
    PATTERN,
    RESULT,
    SESSION,
    DamageError,
    Line,
    framed,
    name_of,
    packed,
    unframed,
    unpacked,
)
from daqloom.study.store_writer import RESULTS_OF_A_PATTERN

SCENARIO = Scenario(name="small")


@functools.cache
def cell(seed: int, method: str = "simulate") -> Cell:
    drawn = seed if method in SEEDED else None
    return Cell(SCENARIO, {}, method, drawn, SCENARIO.hash())


def result(seed: int, method: str = "simulate", **more: Any) -> Result:
    """A result whose numbers tell which cell it belongs to."""
    more.setdefault("warnings", [])  # as they come back; a tuple would not be equal
    return Result(
        scenario=SCENARIO.name,
        scenario_hash=SCENARIO.hash(),
        method=method,
        seed=seed,
        version="1.2.3",
        metrics={"events_built": seed, "collection_latency_s": {"mean": 1 / (seed + 3)}},
        **more,
    )


def fill(path: Path, seeds: range) -> None:
    with Store.open(path, create=True) as store:
        for seed in seeds:
            store.put(cell(seed), result(seed))


def segments(path: Path) -> list[Path]:
    return sorted((path / "segments").iterdir())


def right_ones(store: Store, seeds: range) -> int:
    """How many of the cells are there; none may be there with another's numbers."""
    found = 0
    for seed in seeds:
        kept = store.get(cell(seed).key)
        if kept is not None:
            assert kept == result(seed)
            found += 1
    return found


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


@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_two_processes_write_at_once(path: Path, way: str) -> None:
    context = multiprocessing.get_context(way)
    parts = [range(0, 500), range(500, 1000)]
    writers = [context.Process(target=fill, args=(path, part)) for part in parts]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    with Store.open(path, create=False) as store:
        assert right_ones(store, range(1000)) == len(store) == 1000
        assert store.damaged == []


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
    for length in range(ends[-3], len(text)):
        segment.write_bytes(text[:length])
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


def changed(text: bytes, at: int, to: int) -> bytes:
    return text[:at] + bytes([to]) + text[at + 1 :]


def told(store: Store) -> int:
    """How many results the store says are lost."""
    return sum(damage.results_lost or 0 for damage in store.damages)


def flips(text: bytes) -> list[tuple[int, int]]:
    """Bits to flip, as (byte, bit): all around the ends of lines, a third in the frames of lines,
    and every 61st of the rest.

    3 and 61 have no factor in common with 8, so every bit of a byte is met.
    """
    starts = [0, *(at + 1 for at, byte in enumerate(text) if byte == ord("\n"))]
    ends = {at for start in starts for at in (start - 1, start)}
    frames = {at for start in starts for at in range(start, start + 80)}
    every = ((at, bit) for at in range(len(text)) for bit in range(8))
    return [
        (at, bit)
        for n, (at, bit) in enumerate(every)
        if at in ends or n % (3 if at in frames else 61) == 0
    ]


def test_a_flipped_bit_costs_one_result_at_most(path: Path) -> None:
    """Wherever it is: nothing wrong is read, and what is lost is told, with the place."""
    count = 4
    fill(path, range(count))
    [segment] = segments(path)
    text = segment.read_bytes()
    results = [text.index(b" result " + cell(seed).key.encode()) - 26 for seed in range(count)]
    for at, bit in flips(text):
        segment.write_bytes(changed(text, at, text[at] ^ 1 << bit))
        with Store.open(path, create=False) as store:
            found = right_ones(store, range(count))
            assert count - found == told(store)
            # A byte of a result's line costs that result; its end, or another line, costs none.
            assert found == count - (at >= results[0] and text[at] != ord("\n"))
            [damage] = store.damages
            assert damage.path == segment
            line = text.rindex(b"\n", 0, at) + 1 if b"\n" in text[:at] else 0
            assert damage.offset == (at if text[at] == ord("\n") else line)
            [sentence] = store.damaged
            assert f"at byte {damage.offset}" in sentence


def test_a_stray_end_of_a_line_costs_one_result_at_most(path: Path) -> None:
    fill(path, range(2))
    [segment] = segments(path)
    text = segment.read_bytes()
    for at in range(0, len(text), 3):
        if text[at] == ord("\n"):
            continue
        segment.write_bytes(changed(text, at, ord("\n")))
        with Store.open(path, create=False) as store:
            found = right_ones(store, range(2))
            assert found >= 1
            assert told(store) == 2 - found
            assert len(store.damages) == 1


def test_each_of_many_flipped_bits_costs_its_own_result_only(path: Path) -> None:
    count = RESULTS_OF_A_PATTERN + 50
    fill(path, range(count))
    [segment] = segments(path)
    text = bytearray(segment.read_bytes())
    hit = [3, 4, 100, 299]
    for seed in hit:
        text[text.index(b" result " + cell(seed).key.encode()) + 60] ^= 1
    first_pattern = text.index(b" pattern ")
    text[first_pattern + 60] ^= 1
    segment.write_bytes(text)
    with Store.open(path, create=False) as store:
        assert right_ones(store, range(count)) == count - len(hit)
        assert all(cell(seed).key not in store for seed in hit)
        assert [damage.results_lost for damage in store.damages] == [0, 2, 1, 1]  # 3 and 4 adjoin
        [sentence] = store.damaged
        # After seed 299 come 6 sound results, so that its number is known, not a least one.
        assert "; 4 results are lost" in sentence
        assert "and at 1 more" in sentence


def test_only_both_copies_of_a_pattern_are_worth_its_results(path: Path) -> None:
    fill(path, range(5))
    [segment] = segments(path)
    text = bytearray(segment.read_bytes())
    for line in text.splitlines(keepends=True)[1 : 1 + COPIES]:
        text[text.index(line, 1) + 60] ^= 1
    segment.write_bytes(text)
    with Store.open(path, create=False) as store:
        assert right_ones(store, range(5)) == 0
        assert told(store) == 5


def test_a_missing_stretch_is_told_by_the_numbers(path: Path) -> None:
    fill(path, range(6))
    [segment] = segments(path)
    lines = segment.read_bytes().splitlines(keepends=True)
    before = 1 + COPIES
    segment.write_bytes(b"".join(lines[: before + 1] + lines[before + 3 :]))  # without 1 and 2
    with Store.open(path, create=False) as store:
        assert right_ones(store, range(6)) == 4
        [damage] = store.damages
        assert (damage.results_lost, damage.offset) == (2, sum(map(len, lines[: before + 1])))


def test_behind_damage_at_the_end_the_least_is_told(path: Path) -> None:
    fill(path, range(4))
    [segment] = segments(path)
    text = bytearray(segment.read_bytes())
    for seed in (2, 3):
        text[text.index(b" result " + cell(seed).key.encode()) + 60] ^= 1
    segment.write_bytes(text)
    with Store.open(path, create=False) as store:
        assert right_ones(store, range(4)) == 2
        [sentence] = store.damaged
        assert "at least 1 result is lost" in sentence


def test_a_damaged_cell_can_be_put_again(path: Path) -> None:
    fill(path, range(4))
    [segment] = segments(path)
    text = bytearray(segment.read_bytes())
    text[-40] ^= 1
    segment.write_bytes(text)
    with Store.open(path, create=False) as store:
        assert right_ones(store, range(4)) == 3
        store.put(cell(3), result(3))
    with Store.open(path, create=False) as store:
        assert right_ones(store, range(4)) == 4


def test_damage_that_comes_after_opening_is_found_too(path: Path) -> None:
    fill(path, range(4))
    [segment] = segments(path)
    with Store.open(path, create=False) as store:
        text = bytearray(segment.read_bytes())
        text[-40] ^= 1
        segment.write_bytes(text)
        assert cell(3).key in store
        assert store.get(cell(3).key) is None
        assert cell(3).key not in store
        assert len(store.damaged) == 1
        segment.unlink()
        store.close()
        assert right_ones(store, range(4)) == 0
        [sentence] = store.damaged
        assert "4 results are lost" in sentence


def test_a_segment_that_cannot_be_read_is_named(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(path, range(2))
    with monkeypatch.context() as broken:
        broken.setattr(os, "fstat", refuse)
        with Store.open(path, create=False) as store:
            assert right_ones(store, range(2)) == 0
            [sentence] = store.damaged
            assert "cannot be read" in sentence
    store.refresh()
    assert right_ones(store, range(2)) == 2
    assert store.damaged == []
    store.close()


def foreign(path: Path, *lines: bytes) -> Store:
    """A store that someone else wrote, with sound checksums."""
    Store.open(path, create=True).close()
    (path / "segments").mkdir()
    (path / "segments" / "foreign.cells").write_bytes(b"".join(lines))
    return Store.open(path, create=False)


KEY = cell(1).key.encode()
EMPTY = b"{}"


def pattern(text: bytes, number: int = 0) -> bytes:
    return framed(number, PATTERN, name_of(text), packed(text))


def record(number: int, key: bytes, text: bytes, of: bytes = EMPTY) -> bytes:
    return framed(number, RESULT, key, name_of(of), packed(text, of))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        b"[" * 100_000,
        b'{"scenario": NaN}',
        b'{"scenario": {}, "method": "simulate", "seed": 1, "time": "", "result": {}}',
        b'{"scenario": {}, "method": "simulate", "seed": "1", "time": "", "result": {}}',
        b'{"scenario": {}, "method": "simulate", "seed": ' + b"9" * 5000 + b"}",
        b"\xff\xfe",
    ],
)
def test_a_record_that_says_nothing_is_absent(path: Path, text: bytes) -> None:
    with foreign(path, pattern(EMPTY), record(0, KEY, text)) as store:
        assert store.get(cell(1).key) is None
        assert len(store.damaged) == 1
        assert len(store) == 0


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"no line of a store\n",
        framed(0, RESULT, b"../../etc/passwd", name_of(EMPTY), packed(EMPTY, EMPTY)),
        framed(0, RESULT, KEY.upper(), name_of(EMPTY), packed(EMPTY, EMPTY)),
        framed(0, RESULT, KEY, name_of(EMPTY), packed(EMPTY, EMPTY)),  # no such pattern
        framed(0, RESULT, KEY, "²".encode(), b"AAAA"),
        framed(0, RESULT, KEY),
        framed(0, PATTERN, b"0", b"AAAA"),
        framed(0, SESSION, b"{}"),
        framed(0, SESSION, b"[" * 100_000),
    ],
)
def test_a_line_that_makes_no_sense_is_named(path: Path, line: bytes) -> None:
    store = foreign(path, line)
    assert len(store) == 0
    [sentence] = store.damaged
    assert sentence.isprintable()


def test_a_record_is_not_unpacked_against_another_pattern(path: Path) -> None:
    one, other = b'{"a": 1}', b'{"b": 2}'
    wrong = framed(0, PATTERN, name_of(one), packed(other))
    with foreign(path, wrong, record(0, KEY, EMPTY, one)) as store:
        assert store.get(cell(1).key) is None
        assert told(store) == 1
    with foreign(path / "more", pattern(other), record(0, KEY, EMPTY, other)) as store:
        assert store.damaged == []
    line = framed(0, RESULT, KEY, name_of(other), packed(b"{}", one))
    with foreign(path / "third", pattern(other), line) as store:
        assert store.get(cell(1).key) is None
        assert "cannot be unpacked" in store.damaged[0]


def test_a_record_does_not_unpack_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daqloom.study.store_lines.MOST_LINE_BYTES", 1000)
    assert unpacked(packed(b"a" * 1000, b"b"), b"b") == b"a" * 1000
    with pytest.raises(DamageError, match="too much"):
        unpacked(packed(b"a" * 1001, b"b"), b"b")


def test_a_line_of_later_versions_is_passed_over(path: Path) -> None:
    store = foreign(path, framed(0, b"comment", b"from the future"))
    assert (len(store), store.damaged) == (0, [])


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_without_end_is_not_read_into_memory(
    path: Path, end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(path, range(2))
    [segment] = segments(path)
    longest = max(map(len, segment.read_bytes().splitlines(keepends=True)))
    monkeypatch.setattr("daqloom.study.store_segment.MOST_LINE_BYTES", longest)
    with segment.open("ab") as file:
        file.write(b"x" * (5 * longest) + end)
    fill(path, range(2, 4))
    with Store.open(path, create=False) as store:
        assert right_ones(store, range(4)) == 4
        assert ["longer than any" in sentence for sentence in store.damaged] == [True]


def test_a_checksum_covers_all_of_a_line() -> None:
    line = framed(3, RESULT, KEY, b"AAAA")
    assert unframed(line) == Line(3, RESULT, KEY + b" AAAA")
    for wrong in (line[:-1], line[1:], line.upper(), b" " + line, line + b"\n", b"", b"\n"):
        with pytest.raises(DamageError):
            unframed(wrong)


def test_a_large_store_opens_without_reading_values(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 100_000
    text = packed(EMPTY, EMPTY)
    lines = (framed(n, RESULT, b"%032x" % n, name_of(EMPTY), text) for n in range(count))
    unread = pytest.fail
    monkeypatch.setattr("daqloom.study.store.read", unread)
    monkeypatch.setattr("daqloom.study.store_segment.unpacked", unread)
    store = foreign(path, pattern(EMPTY), *lines)
    assert len(store) == count
    assert store.damaged == []
    assert f"{count - 1:032x}" in store


def test_lines_whose_ends_are_all_overwritten_are_read(path: Path) -> None:
    lines = [pattern(EMPTY), *(record(n, b"%032x" % n, EMPTY) for n in range(50))]
    with foreign(path, *(line[:-1] + b"x" for line in lines)) as store:
        assert len(store) == 50
        assert told(store) == 0
        assert len(store.damages) == len(lines)


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


def test_a_store_that_cannot_be_written_can_be_read(path: Path) -> None:
    fill(path, range(2))
    store = Store.open(path, create=False)
    shutil.rmtree(path / "segments")
    (path / "segments").touch()  # no folder: for root as for others, nothing can be put there
    with pytest.raises(StudyError, match="cannot write"):
        store.prepare()
    with pytest.raises(StudyError, match="cannot write"):
        store.put(cell(3), result(3))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_store(path: Path) -> None:
    fill(path, range(2))
    folders = [path, path / "segments"]
    for folder in folders:
        folder.chmod(0o500)
    try:
        with Store.open(path, create=True) as store:
            assert right_ones(store, range(2)) == 2
            with pytest.raises(StudyError, match="cannot write"):
                store.put(cell(3), result(3))
        with pytest.raises(StudyError, match="cannot write"):
            Store.open(path / "new", create=True)
    finally:
        for folder in folders:
            folder.chmod(0o700)


@pytest.fixture(params=[errno.ENOSPC, errno.EDQUOT, errno.EIO])
def reason(request: pytest.FixtureRequest) -> int:
    code: int = request.param
    return code


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


@pytest.mark.parametrize("room", [0, 1, 100])
@pytest.mark.parametrize("truncates", [True, False])
def test_a_full_disk_loses_nothing_that_was_put(
    path: Path, room: int, truncates: bool, reason: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(path, create=True) as store:
        for seed in range(3):
            store.put(cell(seed), result(seed))
        with monkeypatch.context() as disk:
            fill_disk(disk, room, reason)
            if not truncates:
                disk.setattr(os, "ftruncate", refuse)
            with pytest.raises(StoreFailure, match="nothing stored so far is lost"):
                store.put(cell(3), result(3))
            with pytest.raises(StoreFailure):  # and nothing is left of the segment that it began
                store.put(cell(3), result(3))
        assert len(segments(path)) == 1
        assert segments(path)[0].read_bytes().endswith(b"\n") or not truncates
        assert right_ones(store, range(4)) == 3
        store.put(cell(3), result(3))  # there is room again
        assert right_ones(store, range(4)) == 4
    with Store.open(path, create=False) as store:
        assert right_ones(store, range(4)) == 4
        assert store.damaged == []


def refuse(*_: object) -> None:
    raise OSError(errno.EIO, "no")


def test_a_write_in_two_parts_is_a_whole_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:1000]))
    fill(path, range(3))
    with Store.open(path, create=False) as store:
        assert right_ones(store, range(3)) == 3


def test_a_disk_that_fails_late_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.open(path, create=True)
    store.put(cell(0), result(0))
    store.sync()
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StoreFailure):
        store.close()
    store.close()


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
        (segment,) = segments(path)
        assert synced == [segment, segment.parent, path]
        store.put(cell(1), result(1))
        store.sync()
        assert synced[3:] == [segment]


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
        store.refresh()
        assert right_ones(store, range(3)) == 3


def test_a_store_keeps_nothing_of_what_one_scenario_left_out(path: Path) -> None:
    assumed = {"network.links.uplink.rate": "800 Gb/s"}
    with Store.open(path, create=True) as store:
        store.put(cell(1), result(1, assumed=assumed))
    with Store.open(path, create=False) as store:
        assert store.get(cell(1).key) == result(1)
