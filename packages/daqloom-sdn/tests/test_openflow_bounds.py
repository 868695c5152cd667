"""Tests of limits on what one OpenFlow controller can do to the switch and other controllers."""

import asyncio
import os
import socket
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from support.softswitch.switches import DAQLOOM

pytest.importorskip("daqloom._switch", reason="daqloom was built without DPDK")
from daqloom.results.errors import MeasureError
from daqloom_sdn.openflow import connection
from daqloom_sdn.openflow.address import Address
from daqloom_sdn.openflow.connection import MOST_CONTROLLERS, controllers
from daqloom_sdn.openflow.errors import Error
from support.openflow_switch import (
    CONTROLLER,
    FLOWS,
    HELLO,
    MAKE,
    OF,
    Switch,
    flow,
    ip,
    packed,
    unpacked,
)

PATIENCE_S = 60.0
GREETING = b"\x04\0\0\x08\0\0\0\1"
"""Hello message of the switch."""
BARRIER = packed(MAKE.OFPBarrierRequest(CONTROLLER))


def many(count: int) -> list[bytes]:
    return [packed(flow(*ip(f"10.0.{n >> 8}.{n & 255}"), cookie=n)) for n in range(count)]


def test_new_entries_reach_the_switch_together_and_answers_are_made_step_by_step():
    switch = Switch()
    switch.receive(b"".join(many(200)))
    assert len(switch.table) == switch.engine.steps == 200
    assert switch.engine.turns == 4  # 64 at a time
    turns = switch.engine.turns
    switch.receive(packed(flow(priority=1)) + BARRIER + packed(flow(priority=2)))
    assert switch.engine.turns == turns + 2  # what comes before a barrier has been done
    switch = Switch()
    switch.receive(b"".join(many(60)))
    switch.sent.clear()
    steps = switch.session.steps(FLOWS * 3)
    for _ in range(60):
        next(steps)
    assert switch.sent == []
    assert sum(1 for _ in steps) >= 2 * 60
    assert len(switch.sent) == 3


def test_of_entries_that_come_together_the_refused_one_alone_is_refused():
    switch = Switch()
    apply, refused = switch.engine.apply, iter([5, 0])

    def refuses(changes):
        apply(changes)
        return next(refused, -1)

    switch.engine.apply = refuses
    switch.sent.clear()
    switch.receive(b"".join(many(10)))
    errors = [unpacked(each) for each in switch.sent]
    assert {(e.type, e.code) for e in errors} == {Error.OFPFMFC_TABLE_FULL.value}
    assert [error.data for error in errors] == [many(10)[5], many(10)[6]]
    assert [entry.message.cookie for entry in switch.table.entries()] == [0, 1, 2, 3, 4, 7, 8, 9]
    switch.receive(b"".join(many(10)))  # their places are free again
    assert len(switch.table) == 10
    assert len({entry.index for entry in switch.table.entries()}) == 10


Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Clients:
    """Controllers that connect to the Unix socket at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writers: list[asyncio.StreamWriter] = []

    async def silent(self) -> Client:
        """Return a connected controller that has sent nothing."""
        reader, writer = await asyncio.open_unix_connection(str(self.path))
        self._writers.append(writer)
        return reader, writer

    async def greeted(self) -> Client:
        """Return a controller that has exchanged hello messages."""
        reader, writer = await self.silent()
        writer.write(HELLO)
        assert await reader.readexactly(8) == GREETING
        return reader, writer

    async def close(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0)


Scene = Callable[[Switch, Clients], Awaitable[None]]


def played(path: Path, scene: Scene) -> None:
    """Run `scene` with a switch that listens on the Unix socket at `path`."""

    async def play() -> None:
        switch, clients = Switch(), Clients(path)
        switch.session.close()
        async with controllers(switch.datapath, [Address("punix", path=str(path))], None):
            try:
                await asyncio.wait_for(scene(switch, clients), PATIENCE_S)
            finally:
                await clients.close()

    asyncio.run(play())


async def echoed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(packed(MAKE.OFPEchoRequest(CONTROLLER)))
    while (head := await reader.readexactly(8))[1] != OF.OFPT_ECHO_REPLY:
        await reader.readexactly(int.from_bytes(head[2:4]) - 8)
    assert int.from_bytes(head[4:8]) == 7


@pytest.mark.process
def test_a_controller_that_reads_no_answers_holds_up_no_other_and_is_left(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.setattr(connection, "QUIET_S", 0.3)
    monkeypatch.setattr(connection, "UNREAD_BYTES", 1 << 16)

    async def scene(switch: Switch, clients: Clients) -> None:
        deaf, hearing = await clients.greeted(), await clients.greeted()
        hearing[1].write(b"".join(many(500)))
        await echoed(*hearing)
        # Each answer has 40 kB; together they have 100 MB and take long to make.
        deaf[1].write(FLOWS * 2340)
        for _ in range(20):
            await echoed(*hearing)
        while len(switch.datapath.sessions) > 1:
            await echoed(*hearing)
        with suppress(ConnectionError):
            while await deaf[0].read(1 << 20):
                pass

    played(tmp_path / "of", scene)
    assert "raised exception" not in capfd.readouterr().err


@pytest.mark.process
def test_silent_controllers_make_room(tmp_path):
    async def scene(switch: Switch, clients: Clients) -> None:
        idle = [await clients.greeted() for _ in range(4)]
        silent = [await clients.silent() for _ in range(MOST_CONTROLLERS)]
        busy = []
        for _ in range(connection.MOST_OF_PEER):
            busy.append(await clients.greeted())
            busy[-1][1].write(BARRIER)
            await busy[-1][0].readexactly(8)
        # Controllers that sent a request have taken all places; the others were disconnected.
        for reader, _ in silent + idle:
            with suppress(ConnectionError):
                await reader.read()
        reader, _ = await clients.silent()
        with suppress(ConnectionError):
            assert await reader.read() == b""
        for each in busy:
            await echoed(*each)

    played(tmp_path / "of", scene)


@pytest.mark.process
def test_a_controller_that_does_not_greet_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "GREETING_S", 0.1)

    async def scene(switch: Switch, clients: Clients) -> None:
        reader, writer = await clients.silent()
        writer.write(b"\x04")
        assert await reader.read() == GREETING

    played(tmp_path / "of", scene)


async def nothing(switch: Switch, clients: Clients) -> None:
    """End the scene at once."""


async def greets(switch: Switch, clients: Clients) -> None:
    await clients.greeted()


@pytest.mark.process
def test_a_path_in_use_is_not_taken_over(tmp_path):
    path = tmp_path / "of"

    async def scene(switch: Switch, clients: Clients) -> None:
        second = controllers(switch.datapath, [Address("punix", path=str(path))], None)
        with pytest.raises(MeasureError, match=f"in use by another switch, process {os.getpid()};"):
            await second.__aenter__()
        await clients.greeted()

    played(path, scene)
    assert not path.exists()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(MeasureError, match="another program listens there"):
            played(path, nothing)
    played(path, greets)  # what a killed one has left is no hindrance
    path.write_text("mine")
    with pytest.raises(MeasureError, match="cannot listen at"):
        played(path, nothing)
    assert path.read_text() == "mine"


@pytest.mark.process
def test_a_path_that_is_another_ones_by_now_is_not_removed(tmp_path):
    path = tmp_path / "of"

    async def replaced(switch: Switch, clients: Clients) -> None:
        path.unlink()
        path.write_text("mine")

    played(path, replaced)
    assert path.read_text() == "mine"


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """Return a folder with a certificate authority and certificates of it."""
    command = [*DAQLOOM, "control", "certificates", str(tmp_path)]
    assert subprocess.run(command, capture_output=True, timeout=60).returncode == 0
    return tmp_path


def trust(certificates: Path, purpose: ssl.Purpose, owner: str = "") -> ssl.SSLContext:
    """Return a TLS context with the certificate of `owner`, or none if it is empty."""
    context = ssl.create_default_context(purpose, cafile=certificates / "ca.pem")
    context.check_hostname, context.verify_mode = False, ssl.CERT_REQUIRED
    if owner:
        context.load_cert_chain(certificates / f"{owner}.pem", certificates / f"{owner}.key")
    return context


@pytest.mark.process
def test_a_controller_to_which_it_connects_has_a_certificate_of_the_authority(certificates):
    async def first_bytes() -> bytes:
        first = asyncio.get_running_loop().create_future()

        async def accept(reader, writer):
            first.set_result(await reader.read(8))
            writer.close()

        context = trust(certificates, ssl.Purpose.CLIENT_AUTH, "control")
        server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
        at = [Address("ssl", *server.sockets[0].getsockname())]
        async with server, controllers(Switch().datapath, at, certificates):
            return await asyncio.wait_for(first, PATIENCE_S)

    assert asyncio.run(first_bytes()) == GREETING


@pytest.mark.process
def test_a_controller_that_comes_by_tls_needs_the_certificate_of_a_control(certificates):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = probe.getsockname()

    async def first_bytes(owner: str) -> bytes:
        context = trust(certificates, ssl.Purpose.SERVER_AUTH, owner)
        reader, writer = await asyncio.open_connection(*address, ssl=context)
        try:
            return await reader.read(8)
        except OSError:
            return b""
        finally:
            writer.transport.abort()

    async def play() -> list[bytes]:
        async with controllers(Switch().datapath, [Address("pssl", *address)], certificates):
            return [await first_bytes(owner) for owner in ("", "unit", "control")]

    assert asyncio.run(play()) == [b"", b"", GREETING]
