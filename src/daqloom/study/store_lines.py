r"""The lines of a store: each carries its checksum, and most are packed against an earlier one.

A segment, the file of one process, is made of lines that end in `\n`:

    <crc> session <JSON>                  first: who writes
    <crc> whole <key> <JSON>              a cell's record as plain text
    <crc> delta <key> <offset> <base64>   a cell's record, deflated (zlib format, RFC 1950) with
                                          the whole record at byte <offset> as preset dictionary

`<crc>` is the CRC-32 (as in zlib, eight hexadecimal digits) of all between it and the end of the
line. Records of one study differ in a few keys and in digits, so a delta is a tenth of a whole.
"""

from __future__ import annotations

import binascii
import re
import zlib

SESSION, WHOLE, DELTA = b"session", b"whole", b"delta"

MOST_LINE_BYTES = 64 << 20
"""A longer line, or a record that unpacks to more, is damage."""

_DICTIONARY_BYTES = 32 << 10
"""Deflate looks back no further (RFC 1951, section 3.2.5)."""
_KEY = re.compile(rb"[0-9a-f]{32}")


class DamageError(ValueError):
    """A line that is not what was written; the text says why."""


def framed(kind: bytes, *parts: bytes) -> bytes:
    """A whole line with its checksum. No part may hold a newline."""
    content = b" ".join((kind, *parts))
    return b"%08x %b\n" % (zlib.crc32(content), content)


def unframed(line: bytes) -> tuple[bytes, bytes]:
    """Kind and remainder of a line. Raises DamageError where the checksum does not fit."""
    content = memoryview(line)[9:-1]
    if line[:9] != b"%08x " % zlib.crc32(content) or line[-1:] != b"\n":
        raise DamageError("the checksum does not fit")
    kind, _, rest = bytes(content).partition(b" ")
    return kind, rest


def key_of(rest: bytes) -> tuple[str, bytes]:
    """Key and remainder of what follows `whole` or `delta`. Raises DamageError."""
    key, _, rest = rest.partition(b" ")
    if not _KEY.fullmatch(key):
        raise DamageError("the key is not 32 hexadecimal digits")
    return key.decode(), rest


def offset_of(rest: bytes) -> tuple[int, bytes]:
    """Where the whole record of a delta begins (B), and the packed text. Raises DamageError."""
    offset, _, packed = rest.partition(b" ")
    if not offset.isdigit() or len(offset) > 18:
        raise DamageError("the offset is no number")
    return int(offset), packed


def packed(text: bytes, whole: bytes) -> bytes:
    """`text` in terms of `whole`, without spaces and newlines."""
    deflate = zlib.compressobj(zdict=whole[:_DICTIONARY_BYTES])
    return binascii.b2a_base64(deflate.compress(text) + deflate.flush(), newline=False)


def unpacked(delta: bytes, whole: bytes) -> bytes:
    """The inverse of `packed`. Raises DamageError, also where `whole` is another than then."""
    inflate = zlib.decompressobj(zdict=whole[:_DICTIONARY_BYTES])
    try:
        text = inflate.decompress(binascii.a2b_base64(delta, strict_mode=True), MOST_LINE_BYTES)
    except (zlib.error, binascii.Error) as error:
        raise DamageError(f"it cannot be unpacked ({error})") from None
    if not inflate.eof:
        raise DamageError("it unpacks to too much or is cut short")
    return text
