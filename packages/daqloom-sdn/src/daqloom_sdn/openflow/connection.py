"""The connections of a switch with its controllers: it looks for them, or listens for them.

Addresses are written as Open vSwitch does: tcp:HOST:PORT or ssl:HOST:PORT to look for a controller,
pssl:PORT:HOST, ptcp:PORT:HOST or punix:PATH to listen.

No controller is trusted. It is served in turns of a bounded time, not while it does not read its
answers, and in a thread that no operator waits for; one that is silent makes room for others.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import stat
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daqloom.measure import MeasureError
from daqloom.measure.connection import CONTROL, is_loopback, joined, split
from daqloom.softswitch.configure import meters_of
from daqloom.softswitch.devices import locked_as, process_and_user
from daqloom.softswitch.running import RunningSwitch
from daqloom.words import reason_of
from daqloom_sdn.openflow.datapath import Datapath
from daqloom_sdn.openflow.session import HungUpError, Session
from daqloom_sdn.openflow.statistics import Statistics
from daqloom_sdn.openflow.table import FlowTable
from daqloom_sdn.supervised import Supervised

DEFAULT_PORT = 6653
AT_ONCE_BYTES = 1 << 16
TURN_S = 0.002
"""How long a controller is served before others are (s)."""
UNREAD_BYTES = 1 << 20
"""A controller that has not read so much is not served until it has."""
MOST_UNREAD_BYTES = 8 << 20
"""A controller that has not read so much, messages that answer none included, is left."""
MOST_CONTROLLERS = 32
"""That come to a switch and are talked to at a time."""
MOST_OF_PEER = 16
"""Of these, from one address, or of one user of this machine."""
GREETING_S = 2.0
"""Time limit for a controller's hello, after which its connection is closed (s)."""
QUIET_S = 5.0
"""A controller that says nothing for so long is asked whether it is there, and after three times as
long left; so is one that reads nothing for so long."""
SHORTEST_RETRY_S, LONGEST_RETRY_S = 0.5, 8.0
LOOKS_EVERY_S = 1.0
"""Interval of the checks for timeouts of entries and for links of ports (s)."""
ENDS_S = 0.05
"""How often the thread of controllers looks whether it is to end (s)."""


@dataclass(frozen=True)
class Address:
    """Where a controller is, or where one is waited for."""

    kind: str
    """tcp, ssl, pssl, ptcp or punix."""
    host: str = ""
    port: int = 0
    path: str = ""


def address_of(text: str, key: str) -> Address:
    """Return the address that a text says; `key`: where it stands. Raises MeasureError."""
    kind, _, rest = text.partition(":")
    if kind == "punix" and rest:
        return Address(kind, path=rest)
    if kind in ("tcp", "ssl") and rest:
        has_port = ":" in rest.rpartition("]")[2] if "[" in rest else ":" in rest
        host, port = split(rest if has_port else f"{rest}:{DEFAULT_PORT}")
        return Address(kind, host, port)
    if kind in ("ptcp", "pssl"):
        number, _, host = rest.partition(":")
        host, port = split(f"{host or '127.0.0.1'}:{number or DEFAULT_PORT}")
        if kind == "ptcp" and not is_loopback(host):
            raise MeasureError(
                f'{key} = "{text[:80]}" is reachable from other machines, and OpenFlow over TCP is '
                "not authenticated; use pssl:PORT:HOST"
            )
        return Address(kind, host, port)
    raise MeasureError(
        f'{key} = "{text[:80]}" is no controller; expected tcp:HOST:PORT or ssl:HOST:PORT to '
        "look for it, or pssl:PORT or punix:PATH to listen for it"
    )


class Controllers:
    """Lets the controllers of its file steer a switch, in a thread, until closed."""

    def __init__(self, running: RunningSwitch) -> None:
        """Raises MeasureError where controllers cannot be waited for."""
        control = running.file.control
        table = FlowTable(running, len(running.file.ports), meters=meters_of(running.file))
        statistics = Statistics(table, running.status, running.meter_counts)
        self._datapath = Datapath(control.datapath, table, statistics, running.links)
        self._addresses = [address_of(text, "control.openflow") for text in control.openflow]
        self._certificates = Path(control.certificates) if control.certificates else None
        self._thread = Supervised("control.openflow", lambda of: asyncio.run(self._serve(of)))

    def status(self) -> dict[str, Any]:
        """Return fields of SwitchStatus; from any thread."""
        return {"openflow": self._datapath.counts(), "openflow_failure": self._thread.failure}

    def close(self) -> None:
        """Leave all controllers."""
        self._thread.close()

    async def _serve(self, thread: Supervised) -> None:
        async with controllers(self._datapath, self._addresses, self._certificates) as looking:
            thread.started()
            thread.goes_on()
            while not thread.ends.is_set():
                await asyncio.wait([looking], timeout=ENDS_S)
                if looking.done():
                    looking.result()


@asynccontextmanager
async def controllers(
    datapath: Datapath, addresses: list[Address], certificates: Path | None
) -> AsyncIterator[asyncio.Task[None]]:
    """Talk to controllers as long as this lasts; yield the task that looks after entries and links.
    Raises MeasureError where none can be waited for."""
    tasks: list[asyncio.Task[Any]] = []
    visits = _Visits(datapath)
    async with AsyncExitStack() as stack:
        stack.callback(datapath.sessions.clear)
        stack.push_async_callback(_cancel, tasks)
        stack.push_async_callback(visits.close)
        for address in addresses:
            context = (
                _context(certificates, address.kind) if address.kind in ("ssl", "pssl") else None
            )
            if address.kind in ("tcp", "ssl"):
                tasks.append(asyncio.create_task(_look_for(datapath, address, context)))
            else:
                await _listen(stack, address, context, visits.receive)
        tasks.append(asyncio.create_task(_look_after(datapath)))
        yield tasks[-1]


async def _cancel(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _listen(
    stack: AsyncExitStack,
    address: Address,
    context: ssl.SSLContext | None,
    received: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]],
) -> None:
    """Listen until the stack ends. Raises MeasureError."""
    try:
        if address.kind == "punix":
            listener = stack.enter_context(_listener_at(address.path))
            server = await asyncio.start_unix_server(received, sock=listener)
        else:
            limit_s = None if context is None else GREETING_S
            server = await asyncio.start_server(
                received, address.host, address.port, ssl=context, ssl_handshake_timeout=limit_s
            )
    except OSError as error:
        where = address.path or joined(address.host, address.port)
        raise MeasureError(
            f"control.openflow: the switch cannot listen at {where}: {reason_of(error)}; give "
            "another address"
        ) from None
    stack.callback(server.close)


@contextmanager
def _listener_at(path: str) -> Iterator[socket.socket]:
    """Return a socket at a path that only this user reaches, which is removed at the end. Raises
    MeasureError or OSError where the path is in use."""
    name = f'control.openflow = "punix:{path}"'
    with (
        locked_as(f"socket {os.path.realpath(path)}", name),
        socket.socket(socket.AF_UNIX) as listener,
    ):
        with suppress(FileNotFoundError):
            _remove_abandoned(path)
        listener.bind(path)
        os.chmod(path, 0o600)  # before the first connection
        own = os.stat(path)
        try:
            yield listener
        finally:
            with suppress(FileNotFoundError):
                if os.path.samestat(own, os.stat(path)):
                    os.unlink(path)


def _remove_abandoned(path: str) -> None:
    """Remove the socket of a process that has ended. Raises OSError where a program
    listens."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(GREETING_S)
        with suppress(ConnectionRefusedError):
            asking.connect(path)
            raise OSError(errno.EADDRINUSE, "another program listens there")
    if stat.S_ISSOCK(os.lstat(path).st_mode):
        os.unlink(path)


async def _look_for(datapath: Datapath, address: Address, context: ssl.SSLContext | None) -> None:
    """Connect, again and again."""
    retry_s = SHORTEST_RETRY_S
    while True:
        try:
            async with asyncio.timeout(QUIET_S):
                reader, writer = await asyncio.open_connection(
                    address.host, address.port, ssl=context
                )
        except OSError:
            await asyncio.sleep(retry_s)
            retry_s = min(2 * retry_s, LONGEST_RETRY_S)
        else:
            retry_s = SHORTEST_RETRY_S
            await _talk(_session(datapath, writer), reader, writer)
            await asyncio.sleep(retry_s)


@dataclass(eq=False)
class _Visit:
    peer: str
    """Its address, or its user on this machine."""
    session: Session
    task: asyncio.Task[Any]


class _Visits:
    """The controllers that have come, in their order."""

    def __init__(self, datapath: Datapath) -> None:
        self._datapath = datapath
        self._visits: list[_Visit] = []

    async def receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talk to one that has come."""
        peer, task = _peer_of(writer), asyncio.current_task()
        if task is None or not _may_steer(writer) or not self._has_room(peer):
            writer.close()
            return
        visit = _Visit(peer, _session(self._datapath, writer), task)
        self._visits.append(visit)
        try:
            await _talk(visit.session, reader, writer)
        except asyncio.CancelledError:
            pass  # cancelled to make room; no other task waits for this one
        finally:
            with suppress(ValueError):
                self._visits.remove(visit)

    async def close(self) -> None:
        """Leave all."""
        await _cancel([visit.task for visit in self._visits])

    def _has_room(self, peer: str) -> bool:
        """Return whether one more may come. The oldest that has asked for nothing makes room, first
        of those without a hello."""
        rivals = [visit for visit in self._visits if visit.peer == peer]
        if len(rivals) < MOST_OF_PEER:
            if len(self._visits) < MOST_CONTROLLERS:
                return True
            rivals = self._visits
        silent = [visit for visit in rivals if not visit.session.has_asked]
        if not silent:
            return False
        left = min(silent, key=lambda visit: visit.session.is_greeted)
        self._visits.remove(left)
        left.task.cancel()
        return True


def _peer_of(writer: asyncio.StreamWriter) -> str:
    connection = writer.get_extra_info("socket")
    if connection.family == socket.AF_UNIX:
        return f"user {process_and_user(connection)[1]}"
    return str((writer.get_extra_info("peername") or ("",))[0])


def _may_steer(writer: asyncio.StreamWriter) -> bool:
    """Return whether a certificate, if it takes one, is that of a control, not of a unit."""
    shown = writer.get_extra_info("peercert")
    subject = [] if shown is None else [pair for name in shown["subject"] for pair in name]
    return shown is None or ("commonName", CONTROL) in subject


def _session(datapath: Datapath, writer: asyncio.StreamWriter) -> Session:
    transport = writer.transport
    transport.set_write_buffer_limits(high=UNREAD_BYTES)

    def write(data: bytes) -> None:
        if transport.get_write_buffer_size() > MOST_UNREAD_BYTES:
            transport.abort()
        if not transport.is_closing():
            transport.write(data)

    return Session(datapath, write)


async def _talk(
    session: Session, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Talk to one controller until it, or the switch, has enough."""
    greeted_by_s = time.monotonic() + GREETING_S
    quiet = 0
    try:
        while quiet < 3:
            left_s = QUIET_S if session.is_greeted else greeted_by_s - time.monotonic()
            if left_s <= 0:
                break
            try:
                async with asyncio.timeout(left_s):
                    data = await reader.read(AT_ONCE_BYTES)
            except TimeoutError:
                if session.is_greeted:
                    quiet += 1
                    session.ask_for_echo()
                continue
            if not data:
                break
            quiet = 0
            await _serve(session, data, writer)
    except (HungUpError, OSError):
        pass
    finally:
        session.close()
        writer.close()
        # One that reads no answers would keep them for ever.
        asyncio.get_running_loop().call_later(GREETING_S, writer.transport.abort)


async def _serve(session: Session, data: bytes, writer: asyncio.StreamWriter) -> None:
    """Answer received data, in turns with others, and not faster than the answers are read. Raises
    HungUpError or OSError."""
    until_s = time.monotonic() + TURN_S
    for _ in session.steps(data):
        if writer.transport.is_closing():
            raise HungUpError
        if writer.transport.get_write_buffer_size() > UNREAD_BYTES:
            await _read(writer)
        elif time.monotonic() >= until_s:
            await asyncio.sleep(0)
        else:
            continue
        until_s = time.monotonic() + TURN_S


async def _read(writer: asyncio.StreamWriter) -> None:
    """Wait until most answers have been read. Raises TimeoutError where none is for a while."""
    is_done = False
    while not is_done:
        before = writer.transport.get_write_buffer_size()
        try:
            async with asyncio.timeout(QUIET_S):
                await writer.drain()
            is_done = True
        except TimeoutError:
            if writer.transport.get_write_buffer_size() >= before:
                raise


async def _look_after(datapath: Datapath) -> None:
    """Remove what is too old, and tell of links that come and go."""
    while True:
        await asyncio.sleep(LOOKS_EVERY_S)
        for _ in datapath.notify_removed(datapath.table.expire()):
            await asyncio.sleep(0)
        datapath.look_at_links()


def _context(folder: Path | None, kind: str) -> ssl.SSLContext:
    if folder is None:
        raise MeasureError(
            f"control.openflow: {kind} needs control.certificates, the folder that `daqloom "
            "control certificates` makes"
        )
    try:
        purpose = ssl.Purpose.CLIENT_AUTH if kind == "pssl" else ssl.Purpose.SERVER_AUTH
        context = ssl.create_default_context(purpose, cafile=folder / "ca.pem")
        who = "control" if kind == "pssl" else "unit"
        context.load_cert_chain(folder / f"{who}.pem", folder / f"{who}.key")
    except (OSError, ssl.SSLError) as error:
        raise MeasureError(
            f"control.openflow: the certificates of {folder} cannot be used: {reason_of(error)}; "
            f"`daqloom control certificates {folder}` makes them"
        ) from None
    context.verify_mode = ssl.CERT_REQUIRED
    context.check_hostname = False  # who has a certificate of this authority is trusted
    return context
