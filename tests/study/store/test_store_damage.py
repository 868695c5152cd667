"""The store of studies: nothing damaged is believed, and nothing else is lost with it."""

import json
import os
import random
import zlib
from pathlib import Path
from typing import Any

import pytest

from daqloom.study.store import record as store_record
from daqloom.study.store import store
from daqloom.study.store.record import compress
from daqloom.study.store.store import Store
from support.study_stores import (
    cell,
    file_of,
    files,
    fill,
    refuse,
    result,
    rewrite,
    right_ones,
    with_flipped_bit,
)

COUNT = 3
KEY = cell(0).key
GZIP_HEADER_BYTES = 10
SAMPLE = 100


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with `COUNT` results."""
    fill(tmp_path / "store", range(COUNT))
    return tmp_path / "store"


def assert_lost(path: Path, reason: str = "") -> None:
    """Only the result of cell 0 is lost; it is named once, with its file."""
    with Store.open(path, create=False) as opened:
        assert right_ones(opened, range(COUNT)) == COUNT - 1
        [damage] = opened.damages
        assert damage.path == path / "cells" / KEY[0] / f"{KEY}.json.gz"
        [sentence] = opened.damage
    assert sentence.startswith(f"{path} is damaged ({damage.path}: {damage.reason}); 1 result is ")
    assert sentence.isprintable()
    assert reason in sentence


def gunzipped(content: bytes) -> bytes | None:
    """Return the text of a gzip file; None if it is damaged."""
    try:
        return zlib.decompress(content, wbits=31)
    except zlib.error:
        return None


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_flipped_bit_costs_its_own_result_only(path: Path, every: bool) -> None:
    """A flip costs nothing exactly where gzip unpacks the same text: unread fields of its header,
    bits that fill up the last byte of its data, another distance to an equal text."""
    file = file_of(path, 0)
    sound = file.read_bytes()
    bits = [(at, bit) for at in range(len(sound)) for bit in range(8)]
    drawn = random.Random(20_251_128).sample(bits, SAMPLE)
    edges = [(at, bit) for at, bit in bits if at < GZIP_HEADER_BYTES or at >= len(sound) - 8]
    for at, bit in bits if every else {*drawn, *edges}:
        flipped = with_flipped_bit(sound, at, bit)
        file.write_bytes(flipped)
        with Store.open(path, create=False) as opened:
            found = right_ones(opened, range(COUNT))
            assert found + len(opened.damages) == COUNT
            assert found == COUNT - (gunzipped(flipped) != gunzipped(sound))


def test_a_file_that_is_cut_short_or_longer_costs_its_own_result_only(path: Path) -> None:
    file = file_of(path, 0)
    sound = file.read_bytes()
    for length in range(0, len(sound), 7):
        file.write_bytes(sound[:length])
        assert_lost(path)
    for more in (b"\0", b"x", sound):
        file.write_bytes(sound + more)
        assert_lost(path, "has more behind its end")


def test_damage_is_one_sentence_until_the_result_is_put_again(path: Path, tmp_path: Path) -> None:
    rewrite(file_of(path, 0), with_flipped_bit)
    with Store.open(path, create=False) as opened:
        assert right_ones(opened, range(COUNT)) == COUNT - 1
        opened.put(cell(0), result(0))
        assert right_ones(opened, range(COUNT)) == COUNT
        assert len(opened.damages) == 1  # a command reports what it has met
    with Store.open(path, create=False) as opened:
        assert right_ones(opened, range(COUNT)) == COUNT
        assert opened.damage == []
    fill(tmp_path / "store", range(9))
    for file in files(tmp_path / "store")[2:]:
        rewrite(file, with_flipped_bit)
    with Store.open(tmp_path / "store", create=False) as opened:
        for _ in range(2):
            assert right_ones(opened, range(9)) == 2
        assert len(opened.damages) == 7
        [sentence] = opened.damage
    assert sentence.count(".json.gz: ") == 3
    assert "; and 4 more); 7 results are lost and computed anew" in sentence


def test_a_file_that_cannot_be_read_now_is_read_later(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(path, create=False) as opened:
        with monkeypatch.context() as broken:
            broken.setattr(store, "open_regular", refuse)
            assert right_ones(opened, range(COUNT)) == 0
        assert {damage.reason for damage in opened.damages} == {"no"}
        assert right_ones(opened, range(COUNT)) == COUNT


@pytest.mark.parametrize("kind", ["folder", "pipe", "endless"])
def test_other_than_regular_files_are_damage(path: Path, kind: str) -> None:
    file = file_of(path, 0)
    file.unlink()
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("/dev/zero")
    assert_lost(path, "not a regular file")


def test_other_names_and_other_cells_are_no_results(path: Path) -> None:
    for name in (f".{KEY}.json.gz-left", "README", f"{KEY}.json"):
        (path / "cells" / KEY[0] / name).write_text("x")
    (path / "cells" / "notes").touch()
    with Store.open(path, create=False) as opened:
        assert len(opened) == COUNT
        assert right_ones(opened, range(COUNT)) == COUNT
    file = file_of(path, 0)
    record = json.loads(zlib.decompress(file.read_bytes(), 31))
    record["session"]["colour"] = record["comment"] = "from the future"
    file.write_bytes(compress(json.dumps(record).encode()))
    with Store.open(path, create=False) as opened:
        assert right_ones(opened, range(COUNT)) == COUNT
    file_of(path, 1).rename(file_of(path, 0))
    with Store.open(path, create=False) as opened:
        assert right_ones(opened, range(COUNT)) == COUNT - 2
        assert "another cell" in opened.damage[0]


def test_a_record_does_not_unpack_without_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file_of(path, 0).write_bytes(zlib.compress(b" " * 100_000, wbits=31))
    monkeypatch.setattr(store_record, "MOST_BYTES", 99_999)
    assert_lost(path, "too large")
    monkeypatch.setattr(store, "MOST_BYTES", 50)
    with Store.open(path, create=False) as opened:
        assert opened.get(KEY) is None
        assert "larger than 50 bytes" in opened.damage[0]


CASES = [
    b"",
    b"[]",
    b"{}",
    b"null",
    b"[" * 100_000,
    b'{"key": NaN}',
    b'{"key": ' + b"9" * 5000 + b"}",
    b"\xff\xfe",
    {"result": {}},
    {"result": []},
    {"time": None},
    {"session": {}},
    {"session": 1},
]


@pytest.mark.parametrize("wrong", CASES, ids=lambda wrong: str(wrong)[:20])
def test_a_record_without_valid_content_is_damage(
    path: Path, wrong: bytes | dict[str, Any]
) -> None:
    file = file_of(path, 0)
    if isinstance(wrong, dict):
        record = json.loads(zlib.decompress(file.read_bytes(), 31))
        wrong = json.dumps(record | wrong).encode()
    file.write_bytes(compress(wrong))
    assert_lost(path)
