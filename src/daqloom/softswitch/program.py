"""Program of a software switch; it runs until a signal or an operator stops it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import socket
import struct
import time
from collections import ChainMap, Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

from daqloom.control.calls.connection import SOCKET, Certificates, read_certificates
from daqloom.control.calls.registry import publish, runs_folder
from daqloom.control.calls.service import Service
from daqloom.control.counters.exporter import Exporter
from daqloom.machine.addresses import is_loopback, join_address, split_address
from daqloom.scenario.errors import ScenarioError
from daqloom.softswitch.controllers import Controller, controller_type
from daqloom.softswitch.counters import SwitchCollector
from daqloom.softswitch.devices import lock
from daqloom.softswitch.document import Control, SwitchFile
from daqloom.softswitch.running import RunningSwitch
from daqloom.softswitch.signals import Signals, watched_signals
from daqloom.softswitch.status import (
    SWITCH,
    Ask,
    Change,
    ForgetPeaks,
    Stop,
    SwitchStatus,
    read_request,
)

SIOCGIFFLAGS = 0x8913
"""Ioctl for the flags of an interface, see netdevice(7); bit 0: it is up."""
DRAIN_S = 0.8
"""Time limit for draining rings after a signal (s); a second signal ends the drain."""
DRAIN_STEP_S = 0.1
GRACE_S = 0.2
"""Time for the last answers to operators (s)."""


def run(file: SwitchFile, on_start: Callable[[str, SwitchStatus], None]) -> SwitchStatus:
    """Run a switch in the main thread until SIGINT, SIGTERM or a request to stop; return its last
    status. `on_start` is called with the service's address and a status. Raises MeasureError."""
    with (
        watched_signals() as signals,
        lock({name: port.device for name, port in file.ports.items()}),
    ):
        shown = _certificates(file.control)
        types = [
            controller_type(name, f"control.{name}")
            for name in ("ovsdb", "openflow")
            if getattr(file.control, name)
        ]
        running = RunningSwitch(file)
        try:
            return asyncio.run(_Program(running, shown, signals, types).run(on_start))
        finally:
            running.stop()


def warnings(control: Control) -> Iterator[str]:
    """Yield warnings about addresses that cannot be reached."""
    address = control.prometheus
    if address and is_loopback(split_address(address)[0]) and not _is_up("lo"):
        yield (
            f"control.prometheus = {address} cannot be reached, as lo is down in this network "
            "namespace; run `ip link set lo up`"
        )


def _is_up(interface: str) -> bool:
    request = struct.pack("16sH14x", interface.encode(), 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        try:
            return bool(struct.unpack("16sH14x", fcntl.ioctl(opened, SIOCGIFFLAGS, request))[1] & 1)
        except OSError:
            return False


def _certificates(control: Control) -> Certificates | None:
    return (
        read_certificates(Path(control.certificates), "control") if control.certificates else None
    )


@contextmanager
def _socket() -> Iterator[str]:
    """Yield the address of a Unix socket for requests of this user only."""
    path = runs_folder() / f"{os.getpid()}.socket"
    path.unlink(missing_ok=True)
    try:
        yield f"{SOCKET}{path}"
    finally:
        path.unlink(missing_ok=True)


class _Program:
    """A running switch together with its service for operators."""

    def __init__(
        self,
        running: RunningSwitch,
        certificates: Certificates | None,
        signals: Signals,
        controller_types: list[type[Controller]],
    ) -> None:
        self._running, self._certificates, self._signals = running, certificates, signals
        self._controller_types = controller_types
        self._steering = secrets.token_bytes(16)
        self._controllers: list[Controller] = []
        self._stop = asyncio.Event()
        self._drained_by_s = float("inf")

    async def run(self, on_start: Callable[[str, SwitchStatus], None]) -> SwitchStatus:
        control = self._running.file.control
        service = Service(
            self, steering=self._steering, certificates=self._certificates, refused=Counter()
        )
        host, port = split_address(control.listen)
        async with AsyncExitStack() as stack:
            # The service answers the operator who stopped the switch before it closes.
            stack.push_async_callback(service.close, grace_s=GRACE_S)
            # A Unix socket also reaches the switch from another network namespace, unlike loopback.
            path = "" if self._certificates else stack.enter_context(_socket())
            bound = await service.listen(
                host, port, path, keys=("control.listen", "control.certificates")
            )
            address = join_address(host, bound)
            shown = self._certificates
            stack.enter_context(
                publish(address, self._steering, kind=SWITCH, socket=path, certificates=shown)
            )
            if control.prometheus:
                collector = SwitchCollector(self._status)
                fix = "set control.prometheus to an address of this machine and a free port"
                exporter = Exporter(collector, *split_address(control.prometheus), fix)
                stack.callback(exporter.close)
            for each in self._controller_types:
                controller = each(self._running)
                stack.callback(controller.close)
                self._controllers.append(controller)
            loop = asyncio.get_running_loop()
            self._signals.end = lambda: loop.call_soon_threadsafe(self._interrupt)
            on_start(address, self._status())
            await self._stop.wait()
            # The service continues while the switch drains its rings.
            while not await asyncio.to_thread(self._running.drain, self._step_s()):
                if time.monotonic() >= self._drained_by_s:
                    break
            return self._status()

    def steer(self, body: bytes) -> bytes:
        """Answer a request of an operator, as `Steerable` requires."""
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
        found = [controller.status() for controller in self._controllers]
        return self._running.status(failure).model_copy(update=dict(ChainMap(*found)))

    def _end(self, drain_s: float) -> None:
        self._drained_by_s = min(self._drained_by_s, time.monotonic() + drain_s)
        self._stop.set()

    def _step_s(self) -> float:
        return min(DRAIN_STEP_S, max(0.0, self._drained_by_s - time.monotonic()))

    def _interrupt(self) -> None:
        """Stop after a signal; a second signal stops without draining."""
        self._end(0.0 if self._stop.is_set() else DRAIN_S)
