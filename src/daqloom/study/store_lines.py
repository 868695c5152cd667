r"""The lines of a store: each stands for itself, so that damage ends with the line that it hit.

A segment, the file of one process, is made of lines:

    <crc> <length> <number> session <JSON>                  first: who writes
    <crc> <length> <number> pattern <name> <base64>         a record to pack others against
    <crc> <length> <number> result <key> <name> <base64>    a cell's record, and its pattern

`<number>` counts the results before this line, `<length>` the bytes from there to the end of the
line (`\n`, not counted), and `<crc>` is the CRC-32 (as in zlib) of `<length>` and all that follows;
each has eight hexadecimal digits. A line is found again behind damage by the `\n` before it, or,
where just that is damaged, by the length of the line before; what is missing between two sound
lines is told by their numbers.

Records of one study differ in a few keys and in digits. They are deflated (zlib format, RFC 1950)
with a pattern as preset dictionary, which makes them a tenth; its `<name>` is the CRC-32 of its
text. A pattern stands twice, for with it all would be lost that builds on it.
"""

import binascii
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

SESSION, PATTERN, RESULT = b"session", b"pattern", b"result"

MOST_LINE_BYTES = 64 << 20
"""A longer line, or a record that unpacks to more, is damage."""

COPIES = 2
"""Copies of every pattern."""

_HEAD_BYTES = 18  # of `<crc> <length> `
_DICTIONARY_BYTES = 32 << 10
"""Deflate looks back no further (RFC 1951, section 3.2.5)."""
_HEAD = re.compile(rb"[0-9a-f]{8} ([0-9a-f]{8}) ")
_NUMBER = re.compile(rb"[0-9a-f]{8}")
_NAMES = re.compile(rb"([0-9a-f]{32}) ([0-9a-f]{8}) ")


class DamageError(ValueError):
    """A line that is not what was written; the text says why."""


class Line(NamedTuple):
    """A line of a segment that is sound."""

    number: int
    kind: bytes
    rest: bytes


def framed(number: int, kind: bytes, *parts: bytes) -> bytes:
    """A whole line, the `number`-th result of its segment or what stands before it. No part may
    hold a newline."""
    content = b" ".join((b"%08x" % number, kind, *parts))
    checked = b"%08x %b" % (len(content), content)
    return b"%08x %b\n" % (zlib.crc32(checked), checked)


def length_of(text: bytes, start: int = 0) -> int | None:
    """How long the line at `start` says that it is, its end included; None if it says nothing."""
    head = _HEAD.match(text, start)
    return None if head is None else _HEAD_BYTES + int(head[1], 16) + 1


def parts(text: bytes) -> Iterator[bytes]:
    """The lines in what one `\\n` ends: several where others of their ends were overwritten."""
    start = 0
    while start < len(text):
        length = length_of(text, start) or len(text)
        yield text[start : start + length]
        start += length


def unframed(line: bytes) -> Line:
    """What a line holds; its end is not looked at. Raises DamageError."""
    if line[:9] != b"%08x " % zlib.crc32(memoryview(line)[9:-1]) or length_of(line) != len(line):
        raise DamageError("the checksum does not fit")
    number, _, content = line[_HEAD_BYTES:-1].partition(b" ")
    if not _NUMBER.fullmatch(number):
        raise DamageError("it has no number")
    kind, _, rest = content.partition(b" ")
    return Line(int(number, 16), kind, rest)


def names_of(rest: bytes) -> tuple[str, bytes, bytes]:
    """Key, pattern's name and packed record of a `result`. Raises DamageError."""
    found = _NAMES.match(rest)
    if found is None:
        raise DamageError("its key or its pattern is not hexadecimal digits")
    return found[1].decode(), found[2], rest[found.end() :]


def pattern_of(rest: bytes) -> tuple[bytes, bytes]:
    """Name and packed text of a `pattern`. Raises DamageError."""
    name, _, text = rest.partition(b" ")
    if not _NUMBER.fullmatch(name):
        raise DamageError("its name is not hexadecimal digits")
    return name, text


def name_of(pattern: bytes) -> bytes:
    """The name of a pattern, from its text."""
    return b"%08x" % zlib.crc32(pattern)


def packed(text: bytes, pattern: bytes = b"") -> bytes:
    """`text` in terms of `pattern`, without spaces and newlines."""
    deflate = zlib.compressobj(zdict=pattern[:_DICTIONARY_BYTES])
    return binascii.b2a_base64(deflate.compress(text) + deflate.flush(), newline=False)


def unpacked(text: bytes, pattern: bytes = b"") -> bytes:
    """The inverse of `packed`. Raises DamageError, also where `pattern` is another than then."""
    inflate = zlib.decompressobj(zdict=pattern[:_DICTIONARY_BYTES])
    try:
        record = inflate.decompress(binascii.a2b_base64(text, strict_mode=True), MOST_LINE_BYTES)
    except (zlib.error, binascii.Error) as error:
        raise DamageError(f"it cannot be unpacked ({error})") from None
    if not inflate.eof:
        raise DamageError("it unpacks to too much or is cut short")
    return record


_MOST_TOLD = 3
_WAY_OUT = "to hear no more of it, delete the file: its other results are computed anew too"


@dataclass
class Damage:
    """One place of a segment that cannot be used. `results_lost` is the least number where nothing
    sound follows (`at_least`), and None where the file cannot be read at all."""

    path: Path
    offset: int  # B, from the start of the file
    results_lost: int | None
    reason: str
    at_least: bool = False


def sentence(path: Path, damages: Sequence[Damage]) -> str:
    """About all damage of one segment."""
    for each in damages:
        if each.results_lost is None:
            return (
                f"{path} cannot be read: {each.reason}; its results count as absent and are "
                "computed anew where a study needs them"
            )
    told = [f"at byte {each.offset}: {each.reason}" for each in damages[:_MOST_TOLD]]
    if rest := len(damages) - _MOST_TOLD:
        told += [f"and at {rest} more"] if rest > 0 else []
    where = f"{path} is damaged ({'; '.join(told)})"
    lost = sum(each.results_lost or 0 for each in damages)
    least = "at least " if any(each.at_least for each in damages) else ""
    if not lost:
        return f"{where}; no result is lost; {_WAY_OUT}"
    results = "1 result is" if lost == 1 else f"{lost} results are"
    return f"{where}; {least}{results} lost and computed anew where a study needs them; {_WAY_OUT}"
