"""Buffers of a running unit, from Python."""

import os
from collections.abc import Iterator

import pytest

from daqloom.buffers import BufferReader, BufferWriter, ServedBuffer


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return f"daqloom/{request.node.name[:40]}/{os.getpid()}/stream-0"


@pytest.fixture
def served(name: str) -> Iterator[ServedBuffer]:
    with ServedBuffer(name, bytes=1024, pieces=4) as buffer:
        yield buffer


def test_pieces_come_in_order_with_tag_and_bytes(served: ServedBuffer, name: str) -> None:
    writer, reader = BufferWriter(name), BufferReader(name)
    assert reader.next() is None
    for tag in range(3):
        room = writer.reserve(100)
        assert room is not None
        room[: tag + 1] = bytes([tag] * (tag + 1))
        writer.commit(tag, tag + 1)
    assert writer.committed == 3
    for tag in range(3):
        piece = reader.next()
        assert piece is not None
        assert (piece[0], bytes(piece[1])) == (tag, bytes([tag] * (tag + 1)))
    assert reader.outstanding == 3
    assert reader.acknowledge()
    assert writer.acknowledged == 1


def test_read_pieces_are_read_only(served: ServedBuffer, name: str) -> None:
    writer, reader = BufferWriter(name), BufferReader(name)
    writer.reserve(1)
    writer.commit(0, 1)
    piece = reader.next()
    assert piece is not None
    assert piece[1].readonly
    with pytest.raises(TypeError):
        piece[1][0] = 1


def test_views_outlive_writer_and_reader_safely(served: ServedBuffer, name: str) -> None:
    writer, reader = BufferWriter(name), BufferReader(name)
    room = writer.reserve(4)
    assert room is not None
    room[:] = b"kept"
    writer.commit(0, 4)
    piece = reader.next()
    assert piece is not None
    del writer, reader
    served.close()
    assert bytes(piece[1]) == b"kept"
    room[0] = 0
    assert bytes(piece[1]) == b"\0ept"


def test_full_buffer_gives_no_room_until_more_is_acknowledged(served, name: str) -> None:
    writer, reader = BufferWriter(name), BufferReader(name)
    for tag in range(4):
        assert writer.reserve(1) is not None
        writer.commit(tag, 1)
    assert writer.reserve(1) is None
    assert not writer.wait(0)
    reader.next()
    reader.acknowledge()
    assert writer.wait(60)
    assert writer.reserve(1) is not None


def test_end_and_loss_of_the_unit_are_detected(served: ServedBuffer, name: str) -> None:
    writer, reader = BufferWriter(name), BufferReader(name)
    assert not reader.wait(0)
    writer.close()
    assert reader.wait(60)
    assert reader.is_at_end
    assert not reader.is_abandoned
    served.close()
    assert reader.is_abandoned
    assert writer.is_abandoned
    assert writer.wait(60)


def test_one_process_has_a_side(served: ServedBuffer, name: str) -> None:
    writer = BufferWriter(name)
    with pytest.raises(ConnectionError, match=rf"{name}: process \d+ has this side"):
        BufferWriter(name)
    del writer
    BufferWriter(name)


def test_impossible_sizes_and_unserved_names_are_refused(name: str, served: ServedBuffer) -> None:
    with pytest.raises(ConnectionError, match="cannot connect"):
        BufferReader(name + "-other", timeout_s=0)
    with pytest.raises(ValueError, match="power of two"):
        ServedBuffer(name + "-other", bytes=10, pieces=3)
    with pytest.raises(OSError, match="cannot listen"):
        ServedBuffer(name, bytes=10, pieces=4)
    with pytest.raises(ValueError, match="negative"):
        BufferWriter(name).reserve(-1)
