"""The program of a switch: it runs until it is stopped, by a signal or an operator."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from daqloom.measure import MeasureError
from daqloom.measure.connection import SOCKET, Certificates, joined, read_certificates, split
from daqloom.measure.exporter import Exporter
from daqloom.measure.runs_here import published, runs_folder
from daqloom.measure.service import Service
from daqloom.scenario.errors import ScenarioError
from daqloom.softswitch.counters import SwitchCollector
from daqloom.softswitch.document import Control, SwitchFile
from daqloom.softswitch.running import RunningSwitch
from daqloom.softswitch.status import (
    SWITCH,
    Ask,
    Change,
    ForgetPeaks,
    Stop,
    SwitchStatus,
    read_request,
)

if TYPE_CHECKING:
    from daqloom.softswitch.openflow.datapath import Datapath
    from daqloom.softswitch.ovsdb import OvsdbClient

DRAIN_S = 10.0
"""How long a switch that is stopped by a signal may drain (s)."""


def run(file: SwitchFile, on_start: Callable[[str, SwitchStatus], None]) -> SwitchStatus:
    """Run a switch until SIGINT, SIGTERM or a request to stop; return its last status.
    `on_start`: is told the address at which it listens. Raises MeasureError."""
    shown = _certificates(file.control)
    running = RunningSwitch(file)
    try:
        return asyncio.run(_Program(running, shown).run(on_start))
    finally:
        running.stop()


def _certificates(control: Control) -> Certificates | None:
    return (
        read_certificates(Path(control.certificates), "control") if control.certificates else None
    )


def _follow(running: RunningSwitch, control: Control) -> OvsdbClient:
    """Start to follow a database of Open vSwitch. Raises MeasureError."""
    try:
        from daqloom.softswitch.ovsdb import OvsdbClient
    except ImportError:
        raise MeasureError(
            "control.ovsdb needs the Python package ovs; install daqloom[ovsdb]"
        ) from None
    return OvsdbClient(running, control.ovsdb, control.bridge)


def _steered(running: RunningSwitch) -> AbstractAsyncContextManager[Datapath]:
    """Let controllers of OpenFlow steer a switch. Raises MeasureError."""
    try:
        from daqloom.softswitch.openflow.connection import steered
    except ImportError:
        raise MeasureError(
            "control.openflow needs the Python package python-openflow; install daqloom[openflow]"
        ) from None
    return steered(running)


@contextmanager
def _socket() -> Iterator[str]:
    """The address of a socket that only this user reaches."""
    path = runs_folder() / f"{os.getpid()}.socket"
    path.unlink(missing_ok=True)
    try:
        yield f"{SOCKET}{path}"
    finally:
        path.unlink(missing_ok=True)


class _Program:
    """A running switch with what listens for operators."""

    def __init__(self, running: RunningSwitch, certificates: Certificates | None) -> None:
        self._running, self._certificates = running, certificates
        self._steering = secrets.token_bytes(16)
        self._datapath: Datapath | None = None
        self._stop: asyncio.Future[float]

    async def run(self, on_start: Callable[[str, SwitchStatus], None]) -> SwitchStatus:
        control = self._running.file.control
        self._stop = asyncio.get_running_loop().create_future()
        service = Service(
            self, steering=self._steering, certificates=self._certificates, refused=Counter()
        )
        host, port = split(control.listen)
        async with AsyncExitStack() as stack:
            # Whoever stopped it gets the answer.
            stack.push_async_callback(service.close, grace_s=1.0)
            # Loopback is another one in each network namespace; a socket is the same.
            socket = "" if self._certificates else stack.enter_context(_socket())
            bound = await service.listen(
                host, port, socket, keys=("control.listen", "control.certificates")
            )
            address = joined(host, bound)
            stack.enter_context(published(address, self._steering, kind=SWITCH, socket=socket))
            if control.prometheus:
                collector = SwitchCollector(self._running.status)
                fix = "set control.prometheus to an address of this machine and a free port"
                exporter = Exporter(collector, *split(control.prometheus), fix)
                stack.callback(exporter.close)
            if control.ovsdb:
                stack.callback(_follow(self._running, control).close)
            if control.openflow:
                self._datapath = await stack.enter_async_context(_steered(self._running))
            stack.enter_context(self._stopped_by_signals())
            on_start(address, self._status())
            drain_s = await self._stop
            # The service goes on: others may watch it drain.
            await asyncio.to_thread(self._running.drain, drain_s)
            return self._status()

    def steer(self, body: bytes) -> bytes:
        """Answer a request of an operator: see `Steered`."""
        request = read_request(body)
        failure = ""
        match request:
            case Ask():
                pass
            case Change(keys=keys):
                try:
                    self._running.change(keys)
                except ScenarioError as error:
                    failure = str(error)
            case ForgetPeaks():
                self._running.forget_peaks()
            case Stop(drain_s=drain_s):
                self._end(drain_s)
        return self._status(failure).encode()

    def _status(self, failure: str = "") -> SwitchStatus:
        openflow = {} if self._datapath is None else self._datapath.counts()
        return self._running.status(failure).model_copy(update={"openflow": openflow})

    def _end(self, drain_s: float) -> None:
        if not self._stop.done():
            self._stop.set_result(drain_s)

    @contextmanager
    def _stopped_by_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._end, DRAIN_S)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
