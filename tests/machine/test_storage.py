"""Programs of storage units and senders: what they store, refuse and count, by known answers."""

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from daqloom import _engine
from daqloom.buffers import BufferWriter, ServedBuffer
from daqloom.data import Mep, MepState, Mfp
from daqloom.machine.child import Child
from daqloom.machine.storage import HEAD, KEY, MOST_BYTES, Connection, Event, is_intact
from support.measure.live_nodes import HUNG_S

pytestmark = pytest.mark.process
PROGRAM = (sys.executable, "-m", "daqloom.machine.storage")
OWN = {"key": 7, "timeout_s": HUNG_S, "congestion": ""}


def mep(number: int, content: bytes = b"abc") -> bytes:
    mfps = [Mfp(event_id=number, source_id=0, fragments=((1, content),)).encode()]
    return bytes(Mep(number, number, 1, [(0, MepState.COMPLETE, mfp) for mfp in mfps]).encode())


def generated(number: int) -> bytes:
    sizes = _engine.PatternSizes(_engine.FragmentSizes.fixed, 100, 1)
    mfp = bytes(_engine.MfpGenerator(0, 1, 2, sizes).generate(number))
    return bytes(Mep(number, number, 1, [(0, MepState.COMPLETE, mfp)]).encode())


@pytest.fixture
def units() -> Iterator[list[tuple[Child, Any]]]:
    """Two storage units that check generated fragments, with their addresses."""
    with ExitStack() as stack:
        children = [stack.enter_context(Child(PROGRAM, "storage")) for _ in range(2)]
        for child in children:
            child.send({"listen": "127.0.0.0/8", "key": OWN["key"], "generated": True})
        yield [(child, tuple(child.answer())) for child in children]


def received(child: Child) -> int:
    child.send({"count": True})
    count: int = child.answer()["received"]
    return count


def test_each_event_goes_to_the_unit_of_its_number_and_wrong_content_is_counted(units) -> None:
    events = [generated(number) for number in range(9)] + [mep(9)]
    with ServedBuffer(name := "daqloom/test-storing/0/output", bytes=1 << 16) as served:
        writer = BufferWriter(name)
        with Child(PROGRAM, "sender") as sender:
            order = {"output": name, "storages": [at for _, at in units], "accepted": 1}
            sender.send(OWN | order | {"seed": 1, "window": 3})
            sender.answer()
            for number, packet in enumerate(events):
                writer.reserve(len(packet))[:] = packet
                writer.commit(number, len(packet))
            writer.close()
            sender.send({"finish": True})
            counts = sender.answer()
        served.close()
    payload = sum(Event(memoryview(packet)).mfp_bytes for packet in events)
    stored = {"accepted": 10, "sent": 10, "stored": 10, "unstored": 0, "wrong": 1}
    assert counts == stored | {"stored_bytes": payload}
    assert [received(child) for child, _ in units] == [5, 5]


def test_an_event_travels_without_the_room_between_its_mfps() -> None:
    mfps = [
        (source, MepState.COMPLETE, Mfp(5, source, fragments=((1, b"x"),)).encode())
        for source in (0, 1)
    ]
    packed = bytes(_engine.encode_mep(5, 5, 1, mfps))
    assert Event(memoryview(packed)).packet == packed
    with pytest.raises(ValueError, match="MEP"):
        Event(memoryview(packed[:20]))


@pytest.mark.parametrize(
    "message",
    [
        KEY.pack(8) + HEAD.pack(0, 3) + b"abc",
        KEY.pack(7) + HEAD.pack(0, MOST_BYTES + 1),
    ],
)
def test_a_stranger_and_an_impossible_size_get_no_answer(units, message) -> None:
    [(child, address), _] = units
    with socket.create_connection(address, HUNG_S) as end:
        end.sendall(message)
        end.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            assert end.recv(1) == b""
    assert received(child) == 0


def test_an_event_whose_unit_has_ended_is_not_stored(units) -> None:
    [(child, address), _] = units
    connection, event = Connection(address, OWN), Event(memoryview(generated(3)))
    assert connection.store(event) is False
    child.kill()
    child.__exit__()
    assert connection.store(event) is None


def test_content_is_that_of_the_number_and_of_the_generator() -> None:
    right = generated(3)
    assert is_intact(right, 3, generated=True)
    assert not is_intact(right, 4, generated=True)
    assert not is_intact(right[:-1] + bytes([right[-1] ^ 1]), 3, generated=True)
    assert not is_intact(right[:30], 3, generated=False)
    assert is_intact(mep(3), 3, generated=False)
    assert not is_intact(mep(3), 3, generated=True)
