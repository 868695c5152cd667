"""Buffers of a running unit, for a source or a sink of one's own.

A unit serves each of its streams as ``daqloom/RUN/UNIT/stream-N``, for one process that writes
multi-fragment packets (MFPs), and its built events as ``daqloom/RUN/UNIT/output``, for one process
that reads multi-event packets (MEPs).

>>> served = ServedBuffer("daqloom/docs/0/stream-0", bytes=4096, pieces=8)
>>> writer = BufferWriter("daqloom/docs/0/stream-0")
>>> room = writer.reserve(5)
>>> room[:] = b"hello"
>>> writer.commit(7, 5)
>>> writer.close()
>>> reader = BufferReader("daqloom/docs/0/stream-0")
>>> tag, piece = reader.next()
>>> tag, bytes(piece)
(7, b'hello')
>>> reader.acknowledge()
True
>>> reader.is_at_end
True
"""

from types import TracebackType
from typing import Self

from daqloom import _engine


class BufferWriter:
    """The writing side of a unit's buffer, until it is deleted or the process ends.

    Waits up to `timeout_s` for the unit. ConnectionError if it does not come, or somebody else
    has this side. Not for several threads at once.
    """

    def __init__(self, name: str, timeout_s: float = 10.0) -> None:
        self._writer = _engine.BufferWriter(name, timeout_s)

    def reserve(self, size: int) -> memoryview | None:
        """Room for a piece of up to `size` bytes; None: the other side must acknowledge first.

        What it shows belongs to this process until the next `reserve` or `commit` only.
        """
        return self._writer.reserve(size)

    def commit(self, tag: int, size: int) -> None:
        """The first `size` bytes of what was reserved are complete; `tag`: the MFP's number."""
        self._writer.commit(tag, size)

    def wait(self, timeout_s: float) -> bool:
        """Sleep until more is acknowledged than when there was no room, or the unit is gone."""
        return self._writer.wait(timeout_s)

    def close(self) -> None:
        """No more will be committed: the reader knows that it is at the end."""
        self._writer.close()

    @property
    def committed(self) -> int:
        """Pieces that were ever committed, by writers before this one as well."""
        return self._writer.committed

    @property
    def acknowledged(self) -> int:
        """Of these, what the reader does not need any more."""
        return self._writer.acknowledged

    @property
    def is_abandoned(self) -> bool:
        """The unit is gone."""
        return self._writer.is_abandoned


class BufferReader:
    """The reading side of a unit's buffer, until it is deleted or the process ends.

    A new reader reads again what the one before had not acknowledged. Else as BufferWriter.
    """

    def __init__(self, name: str, timeout_s: float = 10.0) -> None:
        self._reader = _engine.BufferReader(name, timeout_s)

    def next(self) -> tuple[int, memoryview] | None:
        """Tag and bytes of the next piece, to be read only; None: there is none yet.

        The bytes are valid until the piece is acknowledged; then the writer uses their memory
        again. ConnectionError if the writer has damaged the buffer.
        """
        return self._reader.next()

    def acknowledge(self) -> bool:
        """The oldest piece that was read is not needed any more. False: there is none."""
        return self._reader.acknowledge()

    def wait(self, timeout_s: float) -> bool:
        """Sleep until there is a piece, the end, or the unit is gone. False: not by then."""
        return self._reader.wait(timeout_s)

    @property
    def outstanding(self) -> int:
        """Pieces that were read and are not acknowledged."""
        return self._reader.outstanding

    @property
    def is_at_end(self) -> bool:
        """The writer has closed the buffer, and all is read."""
        return self._reader.is_at_end

    @property
    def is_abandoned(self) -> bool:
        """The unit is gone."""
        return self._reader.is_abandoned


class ServedBuffer:
    """A buffer of one's own, with both sides free: to try a source against a sink without a unit.

    ValueError if the name is taken, or the sizes make no sense.
    """

    def __init__(self, name: str, bytes: int, pieces: int = 1024) -> None:
        self._served = _engine.ServedBuffer(name, bytes, pieces)

    def close(self) -> None:
        """Both sides see that it is gone."""
        self._served.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
