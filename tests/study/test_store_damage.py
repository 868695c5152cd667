"""The store of studies: nothing damaged is believed, and nothing else is lost with it."""

import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from daqloom.study import store_segment
from daqloom.study.store import Store
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
from support.study_stores import (
    cell,
    changed,
    fill,
    refuse,
    result,
    right_ones,
    segments,
    told,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


SEED = 20_251_128
SAMPLE = 60
"""Places that are drawn, beside those of every kind."""


def fields(text: bytes) -> list[tuple[bytes, int, int]]:
    """The fields of all lines, as (kind of line, start, end): every word, which takes in its
    separator, and last the end of the line.

    The words are those of the frame, the names and the packed record or the JSON of the session
    (see `store_lines`).
    """
    found, start = [], 0
    for line in text.splitlines(keepends=True):
        _, _, _, kind, *_ = line.split(b" ")
        end = start + len(line) - 1
        while start < end:
            space = -1 if text[start] == ord("{") else text.find(b" ", start, end)
            until = end if space < 0 else space + 1
            found.append((kind, start, until))
            start = until
        found.append((kind, end, end + 1))
        start = end + 1
    return found


def places(text: bytes) -> list[int]:
    """Places in every field of every line: its first byte, its last two (the separator is the
    last), and some that are drawn from all."""
    edges = {at for _, start, end in fields(text) for at in (start, max(start, end - 2), end - 1)}
    return sorted(edges | set(random.Random(SEED).sample(range(len(text)), SAMPLE)))


def flips(text: bytes) -> list[tuple[int, int]]:
    """Bits to flip, as (byte, bit): one that is drawn at all `places`; all bits of the first and
    the last byte of each field of the first line of each kind, and all around the ends of lines;
    and what makes an end of a line, or a separator, of another byte."""
    draw = random.Random(SEED)
    found = {(at, draw.randrange(8)) for at in places(text)}
    seen: dict[bytes, int] = {}
    for kind, start, end in fields(text):
        if text[start] == ord("\n"):
            seen[kind] = 1
            found |= {(at, bit) for at in (start - 1, start, start + 1) for bit in range(8)}
        elif kind not in seen:
            found |= {(at, bit) for at in (start, end - 1) for bit in range(8)}
    for made in (ord("\n"), ord(" ")):
        near = [(at, byte ^ made) for at, byte in enumerate(text) if (byte ^ made).bit_count() == 1]
        found |= {(at, bits.bit_length() - 1) for at, bits in draw.sample(near, min(20, len(near)))}
    return sorted((at, bit) for at, bit in found if at < len(text))


def every_flip(text: bytes) -> list[tuple[int, int]]:
    return [(at, bit) for at in range(len(text)) for bit in range(8)]


EXHAUSTIVE = pytest.mark.soak


@pytest.mark.parametrize("chosen", [flips, pytest.param(every_flip, marks=EXHAUSTIVE)])
def test_a_flipped_bit_costs_one_result_at_most(
    path: Path, chosen: Callable[[bytes], list[tuple[int, int]]]
) -> None:
    """Wherever it is: nothing wrong is read, and what is lost is told, with the place."""
    count = 4
    fill(path, range(count))
    [segment] = segments(path)
    text = segment.read_bytes()
    results = [text.index(b" result " + cell(seed).key.encode()) - 26 for seed in range(count)]
    for at, bit in chosen(text):
        with (
            changed(segment, at, text[at] ^ 1 << bit),
            Store.open(path, create=False) as store,
        ):
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
    assert segment.read_bytes() == text


def every_third(text: bytes) -> range:
    return range(0, len(text), 3)


@pytest.mark.parametrize("chosen", [places, pytest.param(every_third, marks=EXHAUSTIVE)])
def test_a_stray_end_of_a_line_costs_one_result_at_most(
    path: Path, chosen: Callable[[bytes], Iterable[int]]
) -> None:
    fill(path, range(2))
    [segment] = segments(path)
    text = segment.read_bytes()
    for at in chosen(text):
        if text[at] == ord("\n"):
            continue
        with (
            changed(segment, at, ord("\n")),
            Store.open(path, create=False) as store,
        ):
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
        broken.setattr(store_segment, "open_regular", refuse)
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
    # Lines of later cells may be somewhat longer: they hold numbers of any length.
    longest = 2 * max(map(len, segment.read_bytes().splitlines(keepends=True)))
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
    count = 20_000
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
