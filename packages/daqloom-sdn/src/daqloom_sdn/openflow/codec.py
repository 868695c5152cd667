"""Structures of a binary protocol, described by tables: one encoder and one bounded decoder.

A structure has a head of numbers in network byte order, followed by parts: structures, lists, and
trailing bytes. Malformed bytes raise RefusedError and no other exception.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Protocol

from daqloom_sdn.openflow.errors import Error, RefusedError


class Record(SimpleNamespace):
    """Values of a decoded structure by name, and its `layout`."""

    def replace(self, **values: Any) -> Record:
        """Return a copy in which these values are replaced."""
        return Record(**(vars(self) | values))


class Part(Protocol):
    """Part of a structure after its head."""

    @property
    def default(self) -> Any:
        """Value of the part if it is not given."""

    def read(self, data: bytes, at: int, end: int) -> tuple[Any, int]:
        """Return the value that begins at `at` and ends at `end` or earlier, and its end. Raises
        RefusedError."""

    def write(self, value: Any) -> bytes:
        """Return the bytes of a value."""


class Layout:
    """Layout of a structure: its head and its parts. A layout is also a Part, so structures nest.

    `head`: words such as "port:I reason:B=2 4x". A word is NAME:FORMAT or NAME:FORMAT=DEFAULT, with
    a format of the module `struct`, or a number of padding bytes such as 4x.

    A field `length` in the head counts the bytes of the structure, except for the first `uncounted`
    bytes and the padding at the end, which extends the structure to a multiple of `align`.
    """

    def __init__(self, head: str, align: int = 1, uncounted: int = 0, /, **parts: Part) -> None:
        words = [word.partition(":")[::2] for word in head.split()]
        self.head = {name: text.partition("=")[0] for name, text in words if text}
        self.parts = parts
        self._struct = struct.Struct("!" + "".join(self.head.get(name, name) for name, _ in words))
        self._uncounted, self._align = uncounted, align
        self._has_length = "length" in self.head
        self._defaults: dict[str, Any] = {name: part.default for name, part in parts.items()}
        for name, text in words:
            if text and name != "length":
                is_text, default = self.head[name].endswith("s"), text.partition("=")[2]
                self._defaults[name] = b"" if is_text else int(default or "0", 0)

    @property
    def type(self) -> int:
        """Default of the number `type` in the head."""
        return int(self._defaults["type"])

    @property
    def default(self) -> Record:
        """Structure with the default of each value."""
        return self()

    def __call__(self, **values: Any) -> Record:
        """Return a structure with these values, and defaults for all others."""
        if unknown := values.keys() - self._defaults.keys():
            raise TypeError(f"structure with {', '.join(self.head)} has no {', '.join(unknown)}")
        return Record(layout=self, **(self._defaults | values))

    def decode(self, data: bytes) -> Record:
        """Return the structure that occupies all of `data`. Raises RefusedError."""
        record, end = self.read(data, 0, len(data))
        if end != len(data):
            raise RefusedError(Error.OFPBRC_BAD_LEN)
        return record

    def read(self, data: bytes, at: int, end: int) -> tuple[Record, int]:
        """See Part."""
        first = at + self._struct.size
        if first > end:
            raise RefusedError(Error.OFPBRC_BAD_LEN)
        values = dict(zip(self.head, self._struct.unpack_from(data, at), strict=True))
        if self._has_length:
            stop = at + values.pop("length") + self._uncounted
        else:
            stop = end if self.parts else first
        filled = stop + (at - stop) % self._align
        if not first <= stop <= filled <= end:
            raise RefusedError(Error.OFPBRC_BAD_LEN)
        for name, part in self.parts.items():
            values[name], first = part.read(data, first, stop)
        if first != stop:
            raise RefusedError(Error.OFPBRC_BAD_LEN)
        return Record(layout=self, **values), filled

    def write(self, value: Record) -> bytes:
        """See Part."""
        values = vars(value)
        body = b"".join(part.write(values[name]) for name, part in self.parts.items())
        length = self._struct.size + len(body) - self._uncounted
        numbers = [length if name == "length" else values[name] for name in self.head]
        data = self._struct.pack(*numbers) + body
        return data + bytes(-len(data) % self._align)


class Choice:
    """Choice among structures that begin with a 16-bit type. Types in `refused` raise their errors,
    other unknown types raise `otherwise`."""

    def __init__(
        self, *layouts: Layout, otherwise: Error, refused: Mapping[int, Error] | None = None
    ) -> None:
        self.layouts = {each.type: each for each in layouts}
        self._refused, self._otherwise = refused or {}, otherwise

    def read(self, data: bytes, at: int, end: int) -> tuple[Record, int]:
        """See Part."""
        kind = int.from_bytes(data[at : at + 2])
        if kind not in self.layouts:
            raise RefusedError(self._refused.get(kind, self._otherwise))
        return self.layouts[kind].read(data, at, end)


class Several:
    """List of structures up to the end of the enclosing one; more than `most` raise `excess`."""

    default = ()

    def __init__(self, item: Layout | Choice, most: int, excess: Error) -> None:
        self.item, self.most, self._excess = item, most, excess

    def read(self, data: bytes, at: int, end: int) -> tuple[tuple[Record, ...], int]:
        """See Part."""
        records: list[Record] = []
        while at < end:
            if len(records) == self.most:
                raise RefusedError(self._excess)
            record, at = self.item.read(data, at, end)
            records.append(record)
        return tuple(records), at

    def write(self, value: tuple[Record, ...]) -> bytes:
        """See Part."""
        return b"".join(record.layout.write(record) for record in value)


class Rest:
    """Bytes up to the end of the enclosing structure."""

    default = b""

    def read(self, data: bytes, at: int, end: int) -> tuple[bytes, int]:
        """See Part."""
        return data[at:end], end

    def write(self, value: bytes) -> bytes:
        """See Part."""
        return value
