"""Connections between a switch and its OpenFlow controllers.

Controllers are not trusted. Each one is served in turns of bounded time, only while it reads its
answers, and in a thread separate from operators. Idle ones are closed if others need their place.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daqloom.base.words import reason_of
from daqloom.control.calls.connection import CONTROL
from daqloom.machine.addresses import join_address
from daqloom.results.errors import MeasureError
from daqloom.softswitch.devices import process_and_user
from daqloom.softswitch.running import RunningSwitch
from daqloom_sdn.openflow.address import Address, address_of, context_of, listener_at
from daqloom_sdn.openflow.datapath import Datapath
from daqloom_sdn.openflow.session import HungUpError, Session
from daqloom_sdn.supervision import Supervision

AT_ONCE_BYTES = 1 << 16
TURN_S = 0.002
"""Length of a turn that serves one controller (s)."""
UNREAD_BYTES = 1 << 20
"""Size of unread answers above which a controller is not served (B)."""
MOST_UNREAD_BYTES = 8 << 20
"""Size of unread messages of all kinds above which a connection is closed (B)."""
MOST_CONTROLLERS = 32
"""Limit on accepted connections that are open at the same time."""
MOST_OF_PEER = 16
"""Limit on open accepted connections from one address, or from one user of this machine."""
GREETING_S = 2.0
"""Time limit for a controller's hello; without it, the connection is closed (s)."""
QUIET_S = 5.0
"""Silence after which a controller is sent an echo request (s). A connection is closed after three
times this silence, or if the controller reads nothing for this time."""
SHORTEST_RETRY_S, LONGEST_RETRY_S = 0.5, 8.0
CHECK_S = 1.0
"""Interval at which timeouts of entries and links of ports are checked (s)."""
END_CHECK_S = 0.05
"""Interval at which the controllers' thread checks whether it must end (s)."""


class Controllers:
    """Server for the controllers that a switch's file lists; it runs in a thread until closed."""

    def __init__(self, running: RunningSwitch) -> None:
        """Start the thread. Raises MeasureError if the switch cannot listen."""
        control = running.file.control
        self._datapath = Datapath(running)
        self._addresses = [address_of(text) for text in control.openflow]
        self._certificates = Path(control.certificates) if control.certificates else None
        self._thread = Supervision(
            "control.openflow", lambda thread: asyncio.run(self._serve(thread))
        )

    def status(self) -> dict[str, Any]:
        """Return fields of SwitchStatus; may be called from any thread."""
        return {"openflow": self._datapath.counts(), "openflow_failure": self._thread.failure}

    def close(self) -> None:
        """Close all connections."""
        self._thread.close()

    async def _serve(self, thread: Supervision) -> None:
        async with controllers(self._datapath, self._addresses, self._certificates) as checks:
            thread.report_start()
            thread.goes_on()
            while not thread.ends.is_set():
                await asyncio.wait([checks], timeout=END_CHECK_S)
                if checks.done():
                    checks.result()


@asynccontextmanager
async def controllers(
    datapath: Datapath, addresses: list[Address], certificates: Path | None
) -> AsyncIterator[asyncio.Task[None]]:
    """Serve controllers until the context ends; yield the task that checks timeouts and links.
    Raises MeasureError if the switch cannot listen."""
    tasks: list[asyncio.Task[Any]] = []
    accepted = _Connections(datapath)
    async with AsyncExitStack() as stack:
        stack.callback(datapath.sessions.clear)
        stack.push_async_callback(_cancel, tasks)
        stack.push_async_callback(accepted.close)
        for address in addresses:
            context = context_of(address.kind, certificates)
            if address.kind in ("tcp", "ssl"):
                tasks.append(asyncio.create_task(_connect(datapath, address, context)))
            else:
                await _listen(stack, address, context, accepted)
        tasks.append(asyncio.create_task(_check(datapath)))
        yield tasks[-1]


async def _cancel(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _listen(
    stack: AsyncExitStack, address: Address, context: ssl.SSLContext | None, accepted: _Connections
) -> None:
    """Listen for controllers until the stack is closed. Raises MeasureError."""
    try:
        if address.kind == "punix":
            listener = stack.enter_context(listener_at(address.path))
            server = await asyncio.start_unix_server(accepted.serve, sock=listener)
        else:
            limit_s = None if context is None else GREETING_S
            host, port = address.host, address.port
            server = await asyncio.start_server(
                accepted.serve, host, port, ssl=context, ssl_handshake_timeout=limit_s
            )
    except OSError as error:
        where = address.path or join_address(address.host, address.port)
        raise MeasureError(
            f"control.openflow: the switch cannot listen at {where}: {reason_of(error)}; give "
            "another address"
        ) from None
    stack.callback(server.close)


async def _connect(datapath: Datapath, address: Address, context: ssl.SSLContext | None) -> None:
    """Connect to a controller repeatedly, and serve it while connected."""
    retry_s = SHORTEST_RETRY_S
    host, port = address.host, address.port
    while True:
        try:
            async with asyncio.timeout(QUIET_S):
                reader, writer = await asyncio.open_connection(host, port, ssl=context)
        except OSError:
            await asyncio.sleep(retry_s)
            retry_s = min(2 * retry_s, LONGEST_RETRY_S)
        else:
            retry_s = SHORTEST_RETRY_S
            await _converse(_session(datapath, writer), reader, writer)
            await asyncio.sleep(retry_s)


@dataclass(eq=False)
class _Connection:
    peer: str
    """Network address of the controller, or its user on this machine."""
    session: Session
    task: asyncio.Task[Any]


class _Connections:
    """Accepted connections, ordered from the oldest to the newest."""

    def __init__(self, datapath: Datapath) -> None:
        self._datapath = datapath
        self._connections: list[_Connection] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a new connection, or close it if too many connections are open."""
        peer, task = _peer_of(writer), asyncio.current_task()
        if task is None or not _may_steer(writer) or not self._has_room(peer):
            writer.close()
            return
        connection = _Connection(peer, _session(self._datapath, writer), task)
        self._connections.append(connection)
        try:
            await _converse(connection.session, reader, writer)
        except asyncio.CancelledError:
            pass  # cancelled to make room; no other task waits for this one
        finally:
            with suppress(ValueError):
                self._connections.remove(connection)

    async def close(self) -> None:
        """Close all accepted connections."""
        await _cancel([connection.task for connection in self._connections])

    def _has_room(self, peer: str) -> bool:
        """Return whether one more connection is possible. If necessary, the oldest one without
        requests is closed, preferably one without a hello."""
        rivals = [each for each in self._connections if each.peer == peer]
        if len(rivals) < MOST_OF_PEER:
            if len(self._connections) < MOST_CONTROLLERS:
                return True
            rivals = self._connections
        idle = [each for each in rivals if not each.session.has_requested]
        if not idle:
            return False
        closed = min(idle, key=lambda each: each.session.is_greeted)
        self._connections.remove(closed)
        closed.task.cancel()
        return True


def _peer_of(writer: asyncio.StreamWriter) -> str:
    connection = writer.get_extra_info("socket")
    if connection.family == socket.AF_UNIX:
        return f"user {process_and_user(connection)[1]}"
    return str((writer.get_extra_info("peername") or ("",))[0])


def _may_steer(writer: asyncio.StreamWriter) -> bool:
    """Return whether the controller has a control certificate, if the connection uses TLS."""
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


async def _converse(
    session: Session, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Serve one controller until it or the switch ends the connection."""
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
                    session.request_echo()
                continue
            if not data:
                break
            quiet = 0
            await _answer(session, data, writer)
    except (HungUpError, OSError):
        pass
    finally:
        session.close()
        writer.close()
        # The transport is aborted later, as unread answers would keep it open forever.
        asyncio.get_running_loop().call_later(GREETING_S, writer.transport.abort)


async def _answer(session: Session, data: bytes, writer: asyncio.StreamWriter) -> None:
    """Answer received bytes in turns with other controllers, and no faster than the controller
    reads the answers. Raises HungUpError or OSError."""
    until_s = time.monotonic() + TURN_S
    for _ in session.steps(data):
        if writer.transport.is_closing():
            raise HungUpError
        if writer.transport.get_write_buffer_size() > UNREAD_BYTES:
            await _drain(writer)
        elif time.monotonic() >= until_s:
            await asyncio.sleep(0)
        else:
            continue
        until_s = time.monotonic() + TURN_S


async def _drain(writer: asyncio.StreamWriter) -> None:
    """Wait until most answers are read. Raises TimeoutError if none is read for QUIET_S."""
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


async def _check(datapath: Datapath) -> None:
    """Remove expired entries and notify controllers of link changes, periodically."""
    while True:
        await asyncio.sleep(CHECK_S)
        for _ in datapath.notify_removed(datapath.table.expire()):
            await asyncio.sleep(0)
        datapath.notify_links()
