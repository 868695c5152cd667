"""Conversion of a store of format 2, in which each process appended lines to its own file:

    <crc> <length> <number> session <JSON>                  first: the process that writes
    <crc> <length> <number> pattern <name> <base64>         a record, twice
    <crc> <length> <number> result <key> <name> <base64>    a cell's record, and its pattern

`<crc>` is the CRC-32 of all that follows in the line. Records are deflated (RFC 1950) with their
pattern as preset dictionary.
"""

import binascii
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from daqloom.base.words import reason_of
from daqloom.scenario.files import open_regular
from daqloom.study import StudyError
from daqloom.study.store.record import MOST_BYTES, Session, compress, decompress
from daqloom.study.store.store import CONVERTED, FORMAT, Store, format_of, write_mark

_LINE = re.compile(rb"([0-9a-f]{8}) ([0-9a-f]{8} [0-9a-f]{8} ([a-z]+) ([^\n]*))\n")
_NAMES = re.compile(rb"([0-9a-f]{32}) ([0-9a-f]{8}) (.*)")
_DICTIONARY_BYTES = 32 << 10
_UNKNOWN = asdict(Session("", "unknown", "unknown", 1, "unknown", "unknown", "unknown"))
"""Session of results whose own session is damaged."""


class Conversion(NamedTuple):
    """Numbers of converted results and damaged lines; the old folder, which can be deleted."""

    results: int
    damaged: int
    old: Path


def convert(path: Path) -> Conversion:
    """Convert a store of format 2 in place; the old files are kept. No process may write to the
    store during the conversion. An interrupted conversion can be repeated. Raises StudyError, or
    StoreFailure if the disk is full."""
    version = format_of(path)
    if version != CONVERTED:
        raise StudyError(
            f"{path} is a store of format {version}; expected format {CONVERTED}, which is "
            f"converted to {FORMAT}"
        )
    store, old = Store(path), path / "segments"
    results = damaged = 0
    for segment in sorted(old.glob("*.cells")):  # oldest first: later results replace earlier ones
        try:
            for found in _results(segment):
                if found is None:
                    damaged += 1
                else:
                    store.write(*found)
                    results += 1
        except OSError as error:
            raise StudyError(
                f"cannot read {segment}: {reason_of(error)}; make it readable, or move it away to "
                "convert the others"
            ) from None
    store.sync()
    write_mark(path)
    return Conversion(results, damaged, old)


def _results(segment: Path) -> Iterator[tuple[str, bytes] | None]:
    """Yield (key, file content) of a segment's results, None for a damaged line. Raises OSError."""
    session: dict[str, Any] = _UNKNOWN
    patterns: dict[bytes, bytes] = {}
    with open_regular(segment) as file:
        while line := file.readline(MOST_BYTES):
            if len(line) < MOST_BYTES and not line.endswith(b"\n"):
                return  # its process was killed
            sound = _LINE.fullmatch(line)
            if sound is None or int(sound[1], 16) != zlib.crc32(sound[2]):
                yield None
                continue
            kind, rest = sound[3], sound[4]
            try:
                if kind == b"session":
                    session = json.loads(rest)
                elif kind == b"pattern":
                    name, _, text = rest.partition(b" ")
                    patterns[name] = _inflate(text, b"")
                elif kind == b"result" and (names := _NAMES.fullmatch(rest)):
                    record = json.loads(_inflate(names[3], patterns[names[2]]))
                    key = names[1].decode()
                    content = {"key": key} | record | {"session": session}
                    yield key, compress(json.dumps(content).encode() + b"\n")
            except (ValueError, KeyError, TypeError, RecursionError):
                yield None


def _inflate(text: bytes, pattern: bytes) -> bytes:
    """Return the decompressed record or pattern from a line's base64 text. Raises ValueError."""
    content = binascii.a2b_base64(text)
    return decompress(content, zlib.MAX_WBITS, pattern[:_DICTIONARY_BYTES])
