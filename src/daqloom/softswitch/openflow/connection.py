"""The connections of a switch with its controllers: it looks for them, or listens for them.

Addresses are written as Open vSwitch does: tcp:HOST:PORT or ssl:HOST:PORT to look for a controller,
ptcp:PORT:HOST or punix:PATH to listen.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from daqloom.measure import MeasureError
from daqloom.measure.connection import is_loopback, joined, split
from daqloom.softswitch.configure import meters_of
from daqloom.softswitch.openflow.datapath import Datapath
from daqloom.softswitch.openflow.session import HungUpError, Session
from daqloom.softswitch.openflow.statistics import Statistics
from daqloom.softswitch.openflow.table import FlowTable
from daqloom.softswitch.running import RunningSwitch
from daqloom.words import reason_of

DEFAULT_PORT = 6653
AT_ONCE_BYTES = 1 << 16
MOST_UNSENT_BYTES = 64 << 20
"""A controller that reads no answers is left."""
MOST_CONTROLLERS = 32
"""That a switch talks to at a time."""
QUIET_S = 5.0
"""A controller that says nothing for so long is asked whether it is there, and after three times as
long left."""
SHORTEST_RETRY_S, LONGEST_RETRY_S = 0.5, 8.0
LOOKS_EVERY_S = 1.0
"""For time-outs of entries and for links of ports."""


@dataclass(frozen=True)
class Address:
    """Where a controller is, or where one is waited for."""

    kind: str
    """tcp, ssl, ptcp or punix."""
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
    if kind == "ptcp":
        number, _, host = rest.partition(":")
        host, port = split(f"{host or '127.0.0.1'}:{number or DEFAULT_PORT}")
        if not is_loopback(host):
            raise MeasureError(
                f'{key} = "{text[:80]}" listens to others than this machine, and OpenFlow proves '
                "nobody's name; let the switch look for the controller: ssl:HOST:PORT"
            )
        return Address(kind, host, port)
    raise MeasureError(
        f'{key} = "{text[:80]}" is no controller; expected tcp:HOST:PORT or ssl:HOST:PORT to '
        "look for it, or ptcp:PORT or punix:PATH to listen for it"
    )


@asynccontextmanager
async def steered(running: RunningSwitch) -> AsyncIterator[Datapath]:
    """Let the controllers of its file steer a switch. Raises MeasureError."""
    control = running.file.control
    table = FlowTable(running, len(running.file.ports), meters=meters_of(running.file))
    statistics = Statistics(table, running.status, running.meter_counts)
    datapath = Datapath(control.datapath, table, statistics, running.links)
    addresses = [address_of(text, "control.openflow") for text in control.openflow]
    certificates = Path(control.certificates) if control.certificates else None
    async with controllers(datapath, addresses, certificates):
        yield datapath


@asynccontextmanager
async def controllers(
    datapath: Datapath, addresses: list[Address], certificates: Path | None
) -> AsyncIterator[None]:
    """Talk to controllers as long as this lasts. Raises MeasureError where none can be waited
    for."""
    tasks: list[asyncio.Task[None]] = []
    servers: list[asyncio.Server] = []
    paths: list[str] = []

    async def came(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _talk(datapath, reader, writer)

    try:
        for address in addresses:
            if address.kind in ("tcp", "ssl"):
                context = _context(certificates) if address.kind == "ssl" else None
                tasks.append(asyncio.create_task(_look_for(datapath, address, context)))
            else:
                servers.append(await _listen(address, came))
                paths += [address.path] if address.path else []
        tasks.append(asyncio.create_task(_look_after(datapath)))
        yield
    finally:
        for server in servers:
            server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        datapath.sessions.clear()
        for path in paths:
            Path(path).unlink(missing_ok=True)


async def _listen(
    address: Address,
    came: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> asyncio.Server:
    try:
        if address.kind == "ptcp":
            return await asyncio.start_server(came, address.host, address.port)
        server = await asyncio.start_unix_server(came, address.path, start_serving=False)
        os.chmod(address.path, 0o600)  # before anybody is let in
        await server.start_serving()
    except OSError as error:
        where = address.path or joined(address.host, address.port)
        raise MeasureError(
            f"control.openflow: the switch cannot listen at {where}: {reason_of(error)}; give "
            "another address"
        ) from None
    return server


async def _look_for(datapath: Datapath, address: Address, context: ssl.SSLContext | None) -> None:
    """Connect, again and again."""
    retry_s = SHORTEST_RETRY_S
    while True:
        try:
            reader, writer = await asyncio.open_connection(address.host, address.port, ssl=context)
        except OSError:
            await asyncio.sleep(retry_s)
            retry_s = min(2 * retry_s, LONGEST_RETRY_S)
        else:
            retry_s = SHORTEST_RETRY_S
            await _talk(datapath, reader, writer)
            await asyncio.sleep(retry_s)


async def _talk(
    datapath: Datapath, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Talk to one controller until it, or the switch, has enough."""
    if len(datapath.sessions) >= MOST_CONTROLLERS:
        writer.close()
        return
    session = Session(datapath, writer.write)
    quiet = 0
    try:
        while quiet < 3 and writer.transport.get_write_buffer_size() < MOST_UNSENT_BYTES:
            try:
                async with asyncio.timeout(QUIET_S):
                    data = await reader.read(AT_ONCE_BYTES)
            except TimeoutError:
                quiet += 1
                session.ask_for_echo()
                continue
            if not data:
                break
            quiet = 0
            session.receive(data)
            async with asyncio.timeout(QUIET_S):
                await writer.drain()
    except (HungUpError, OSError, TimeoutError):
        pass
    finally:
        session.close()
        writer.close()


async def _look_after(datapath: Datapath) -> None:
    """Remove what is too old, and tell of links that come and go."""
    while True:
        await asyncio.sleep(LOOKS_EVERY_S)
        datapath.tell_removed(datapath.table.expire())
        datapath.look_at_links()


def _context(folder: Path | None) -> ssl.SSLContext:
    if folder is None:
        raise MeasureError(
            "control.openflow: ssl needs control.certificates, the folder that `daqloom control "
            "certificates` makes"
        )
    try:
        context = ssl.create_default_context(cafile=folder / "ca.pem")
        context.load_cert_chain(folder / "unit.pem", folder / "unit.key")
    except (OSError, ssl.SSLError) as error:
        raise MeasureError(
            f"control.openflow: the certificates of {folder} cannot be used: {reason_of(error)}; "
            f"`daqloom control certificates {folder}` makes them"
        ) from None
    context.check_hostname = False  # who has a certificate of this authority is trusted
    return context
