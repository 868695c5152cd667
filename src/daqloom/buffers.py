"""Buffers of a running unit, for processes that write its input or read its output.

The buffer of stream N is named ``daqloom/RUN/UNIT/stream-N``; one process writes multi-fragment
packets (MFPs) into it with a `BufferWriter`. The buffer of built events is named
``daqloom/RUN/UNIT/output``; one process reads multi-event packets (MEPs) from it with a
`BufferReader`. Each side is occupied until its object is deleted or the process ends. The accepted
events of a simulation with storage units are those that `StorageRules` accepts.

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
from daqloom._engine import BufferReader, BufferWriter, StorageRules

__all__ = ["BufferReader", "BufferWriter", "ServedBuffer", "StorageRules"]


class ServedBuffer(_engine.ServedBuffer):
    """A buffer of this process that needs no unit, for tests of a writer against a reader. Raises
    ValueError if the name is in use or a size is invalid."""

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
