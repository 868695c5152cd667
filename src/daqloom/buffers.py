"""Buffers of a running unit, for another source or sink.

A unit serves each of its streams as ``daqloom/RUN/UNIT/stream-N``, for one process that writes
multi-fragment packets (MFPs) with a `BufferWriter`, and its built events as
``daqloom/RUN/UNIT/output``, for one process that reads multi-event packets (MEPs) with a
`BufferReader`. A side is taken until its object is deleted or the process ends.

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
from daqloom._engine import BufferReader, BufferWriter

__all__ = ["BufferReader", "BufferWriter", "ServedBuffer"]


class ServedBuffer(_engine.ServedBuffer):
    """A buffer of one's own, with both sides free: to try a source against a sink without a unit.

    ValueError if the name is taken, or the sizes make no sense.
    """

    def __init__(self, name: str, bytes: int, pieces: int = 1024) -> None:
        super().__init__(name, bytes, pieces)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
