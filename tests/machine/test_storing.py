"""Storage units and senders of accepted events: what is stored, by known answers."""

import secrets
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from daqloom._engine import MepState
from daqloom.buffers import BufferWriter, ServedBuffer, StorageRules
from daqloom.data import Mep, Mfp
from daqloom.machine.child import Child

pytestmark = pytest.mark.process
KEY, SEED, SHARE = 7, 3, 0.3
EVENTS = 100
WORD = struct.Struct("=Q")
EXPECTED = [n for n in range(EVENTS) if StorageRules(units=2, accepted=SHARE).accepts(n, SEED)]


def event(number: int) -> bytes:
    """An event with two fragments, of 5 and 7 bytes."""
    mfps = [Mfp(number, source, [(0, b"x" * (5 + 2 * source))]).encode() for source in range(2)]
    listed = [(source, MepState.COMPLETE, mfp) for source, mfp in enumerate(mfps)]
    return bytes(Mep(number, number, 1, listed).encode())


class Programs:
    """A sender and two storage units on this host."""

    def __init__(self, stack: ExitStack, generated: bool = False) -> None:
        program = (sys.executable, "-m", "daqloom.machine.storing")
        self.all = [stack.enter_context(Child(program, "storing")) for _ in range(3)]
        for child in self.all:
            child.send({"listen": "127.0.0.0/8", "key": KEY, "generated": generated})
        self.addresses = [tuple(child.answer().values()) for child in self.all]
        self.sender, self.storages = self.all[0], self.all[1:]
        self.output = f"daqloom/test-{secrets.token_hex(4)}/0/output"

    def accept(self, storages: list[tuple[Any, ...]]) -> None:
        orders = {"output": self.output, "storages": storages, "accepted": SHARE}
        self.sender.send({"accept": orders | {"seed": SEED, "timeout_s": 20.0}})
        self.sender.answer()

    def counted_when(self, child: Child, is_enough: Callable[[Any], bool]) -> Any:
        while True:
            child.send({"count": True})
            if is_enough(found := child.answer()):
                return found


@pytest.fixture
def programs() -> Iterator[Programs]:
    with ExitStack() as stack:
        yield Programs(stack)


@contextmanager
def built(output: str) -> Iterator[None]:
    """Serve an output with all events."""
    with ServedBuffer(output, bytes=100_000, pieces=128):
        writer = BufferWriter(output)
        for number in range(EVENTS):
            packet = event(number)
            room = writer.reserve(len(packet))
            assert room is not None
            room[:] = packet
            writer.commit(number, len(packet))
        writer.close()
        yield


def test_accepted_events_are_stored_by_the_unit_of_their_number(programs: Programs) -> None:
    programs.accept(programs.addresses[1:])
    with built(programs.output):
        sent = programs.counted_when(programs.sender, lambda now: now["stored"] == len(EXPECTED))
    assert sent["accepted"] == len(EXPECTED)
    assert sent["unstored"] == 0
    assert sent["payload_bytes"] == 12 * len(EXPECTED)
    for number, storage in enumerate(programs.storages):
        found = programs.counted_when(storage, lambda _: True)
        assert found["received"] == sum(n % 2 == number for n in EXPECTED)
        assert found["wrong"] == 0


def test_events_of_a_dead_storage_unit_go_to_the_next(programs: Programs) -> None:
    with socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))  # and does not listen
        programs.accept([dead.getsockname(), programs.addresses[1]])
        with built(programs.output):
            sent = programs.counted_when(
                programs.sender, lambda now: now["stored"] == len(EXPECTED)
            )
    assert sent["unstored"] == 0
    found = programs.counted_when(programs.storages[0], lambda _: True)
    assert found["received"] == len(EXPECTED)


def test_events_without_a_living_storage_unit_are_given_up(programs: Programs) -> None:
    with socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))
        programs.accept([dead.getsockname()])
        with built(programs.output):
            sent = programs.counted_when(
                programs.sender, lambda now: now["unstored"] == len(EXPECTED)
            )
    assert sent["stored"] == 0


@pytest.mark.parametrize("content", [b"no event", bytes(200)])
def test_bytes_that_are_no_event_are_counted_and_not_acknowledged(
    programs: Programs, content: bytes
) -> None:
    good = event(5)
    with socket.create_connection(programs.addresses[1]) as end:
        for packet in (content, good):
            head = WORD.pack(KEY) if packet is content else b""
            end.sendall(head + WORD.pack(len(packet)) + packet)
        assert end.recv(WORD.size, socket.MSG_WAITALL) == WORD.pack(5)
    found = programs.counted_when(programs.storages[0], lambda now: now["received"] == 2)
    assert found["wrong"] == 1


@pytest.mark.parametrize("beginning", [WORD.pack(KEY + 1), WORD.pack(KEY) + WORD.pack(1 << 31)])
def test_a_stranger_and_an_event_without_end_are_hung_up(
    programs: Programs, beginning: bytes
) -> None:
    with socket.create_connection(programs.addresses[1]) as end:
        end.sendall(beginning)
        assert end.recv(1) == b""
    assert programs.counted_when(programs.storages[0], lambda _: True)["received"] == 0


def test_events_with_other_bytes_than_generated_ones_are_wrong() -> None:
    with ExitStack() as stack:
        programs = Programs(stack, generated=True)
        programs.accept(programs.addresses[1:2])
        with built(programs.output):
            programs.counted_when(programs.sender, lambda now: now["stored"] > 0)
        found = programs.counted_when(programs.storages[0], lambda now: now["received"] > 0)
        assert found["wrong"] == found["received"]
