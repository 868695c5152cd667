"""Connects the run control to connections, processes and the clock: one asyncio loop, no locks.

>>> async with Control(plan, launcher) as control:  # doctest: +SKIP
...     control.want(Goal.RUNNING)
...     await control.until(lambda: control.run.phase is Phase.RUNNING)
"""

import asyncio
import secrets
import socket
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from daqloom.measure import MeasureError
from daqloom.measure.connection import SOCKET, Certificates, joined
from daqloom.measure.launch import Launcher
from daqloom.measure.messages import Answer, Heartbeat, Hello, Message, StageRow, Trace
from daqloom.measure.outputs import Drop, Kill, Launch, RunEvent, Send
from daqloom.measure.plan import Plan
from daqloom.measure.processes import Processes
from daqloom.measure.run_control import RunControl
from daqloom.measure.service import Orders, Service
from daqloom.measure.states import Goal, Phase, Refused, State
from daqloom.measure.status import MOST_EVENTS_TOLD, Request, Status, UnitStatus
from daqloom.measure.tally import Pages

TICKS_PER_HEARTBEAT = 2
_EVERYWHERE = ("0.0.0.0", "::")
GOALS = {
    "configure": Goal.READY,
    "start": Goal.RUNNING,
    "stop": Goal.READY,
    "exit": Goal.ENDED,
}
"""Goals that requests of an operator set."""


@dataclass
class _Guest:
    """The process connected as a unit."""

    session: int
    orders: Orders
    host: str
    pid: int


class Control:
    """A run: an asynchronous context that owns the run's processes.

    It listens for units at `socket_file` as well, if there is one. `on_event` is called with each
    entry of the run's log, `on_count` with each unit that has reported its counters. Raises
    MeasureError on entering where it cannot listen.
    """

    def __init__(
        self,
        plan: Plan,
        launcher: Launcher,
        *,
        folder: Path,
        name: str = "",
        bind: str = "127.0.0.1",
        port: int = 0,
        socket_file: Path | None = None,
        certificates: Certificates | None = None,
        on_event: Callable[[RunEvent], None] | None = None,
        on_count: Callable[[int], None] | None = None,
    ) -> None:
        self.token = secrets.token_bytes(16)
        self.steering = secrets.token_bytes(16)
        """The secret that an operator needs on loopback."""
        self.address = ""
        """Its address, host:port."""
        self._socket = f"{SOCKET}{socket_file.absolute()}" if socket_file else ""
        """Address for units that do not reach the other one."""
        self.refused: Counter[str] = Counter()
        self.began_s = time.monotonic()
        self.began_ns = time.time_ns()
        """The same moment as wall-clock time (since 1970)."""
        self.run = RunControl(plan, self.began_s)
        self._name = name
        self._launcher = launcher
        self._bind, self._port = bind, port
        self._certificates = certificates
        self._on_event = on_event or (lambda event: None)
        self._on_count = on_count or (lambda unit: None)
        self._told = 0
        self._guests: dict[int, _Guest] = {}
        self._sessions = 0
        self.stages: dict[int, deque[StageRow]] = {}
        """The last stages of each unit, if the plan asks for any."""
        self._host = socket.gethostname()[:200]
        self._changed = asyncio.Event()
        self._clock: asyncio.Task[None] | None = None
        self._pages = Pages(plan.run)
        self.processes = Processes(folder, self.token, self._exited)
        self._service = Service(
            self,
            token=self.token,
            steering=self.steering,
            certificates=certificates,
            refused=self.refused,
        )

    async def __aenter__(self) -> Self:
        port = await self._service.listen(self._bind, self._port, self._socket)
        host = socket.gethostname() if self._bind in _EVERYWHERE else self._bind
        self.address = joined(host, port)
        self._clock = asyncio.create_task(self._tick())
        self.run.launch(time.monotonic())
        self._act()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the run if it has not ended, at once if it was cancelled; no process is left."""
        try:
            self.want(Goal.ENDED)
            plan = self.run.plan
            timeout_s = 6 * plan.fault_timeout_s + 5 + plan.finish_timeout_s
            if kind is asyncio.CancelledError:
                timeout_s = 0.0
            with suppress(TimeoutError):
                ended = self.until(lambda: self.run.phase is Phase.ENDED)
                await asyncio.wait_for(ended, timeout_s)
        finally:
            if self._clock:
                self._clock.cancel()
            await self._service.close()
            await self.processes.end()

    # ---- the operator ------------------------------------------------------------------------

    def want(self, goal: Goal) -> None:
        """Set the goal of the run."""
        self.run.want(time.monotonic(), goal)
        self._act()

    def reset(self, unit: int) -> None:
        """Bring a unit back."""
        self.run.reset(time.monotonic(), unit)
        self._act()

    def injected(self, text: str) -> None:
        """Log that something is broken on purpose, or mended."""
        self.run.injected(time.monotonic(), text)
        self._act()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds()` is true; it is called whenever something may have changed."""
        while not holds():
            self._changed.clear()
            await self._changed.wait()

    async def until_running(self) -> None:
        """Wait until the run is running. Raises MeasureError if it is in error instead."""
        await self.until(lambda: self.run.phase in (Phase.RUNNING, Phase.ERROR, Phase.ENDED))
        if self.run.phase is not Phase.RUNNING:
            raise MeasureError(self.failure())

    def failure(self) -> str:
        """Return why the run is in error, with the last output of the units concerned."""
        sentence = self.run.failure or "the run has ended"
        lines = [
            f"unit {unit.number}: {line}"
            for unit in self.run.units
            if unit.reason
            for line in self.processes.last_lines(unit.number, 2)
        ]
        return sentence + (f" (last lines: {' | '.join(lines[:6])})" if lines else "")

    def status(self) -> Status:
        """Return the state of the run and of all its units."""
        run = self.run
        return Status(
            run=run.plan.run,
            scenario=self._name,
            time_s=time.monotonic() - self.began_s,
            phase=run.phase,
            goal=run.goal,
            epoch=run.epoch,
            first_mep=run.first_mep,
            failure=run.failure[:1000],
            units=tuple(self._unit_status(number) for number in range(run.plan.units)),
            events=tuple(
                (event.time_s - self.began_s, event.text)
                for event in run.events[-MOST_EVENTS_TOLD:]
            ),
            counts={**run.counts, **{f"refused.{why}": n for why, n in self.refused.items()}},
        )

    def steer(self, request: Request) -> Message:
        """Carry out a request of an operator: see `Desk`."""
        if goal := GOALS.get(request.command):
            self.want(goal)
        elif request.unit is not None and request.unit < self.run.plan.units:
            self.reset(request.unit)
        return self.status()

    # ---- what the world says -----------------------------------------------------------------

    def arrive(self, hello: Hello, orders: Orders) -> tuple[int, int] | Refused:
        """Take in a process that wants to join: see `Desk`."""
        run, unit = self.run, hello.unit
        if unit is None:
            unit = next((u.number for u in run.units if run.is_free(u.number)), run.plan.units)
        if unit >= run.plan.units:
            return Refused.UNKNOWN_UNIT
        if not run.is_free(unit):
            return Refused.OCCUPIED
        self._sessions += 1
        before = self._guests.get(unit)
        self._guests[unit] = _Guest(self._sessions, orders, hello.host, hello.pid)
        run.joined(time.monotonic(), unit, self._sessions)
        if before:
            before.orders.put_nowait(None)
        self._act()
        return unit, self._sessions

    def report(self, unit: int, session: int, report: Heartbeat | Answer | Trace) -> Refused | None:
        """Take in a report of a unit: see `Desk`."""
        if isinstance(report, Trace):
            return self._keep(unit, session, report)
        self._look(unit, report)
        refusal = self.run.reported(time.monotonic(), unit, session, report)
        self._on_count(unit)
        self._act()
        return refusal

    def _keep(self, unit: int, session: int, report: Trace) -> Refused | None:
        if session != self.run.units[unit].session:
            return Refused.SESSION
        kept = self.stages.setdefault(unit, deque(maxlen=self.run.plan.trace_stages))
        kept.extend(report.stages)
        return None

    def read_last(self, unit: int) -> None:
        """Count what a unit of this machine that has ended counted up to its end."""
        if counted := self._pages.last(unit):
            self.run.counted(unit, counted)
            self._on_count(unit)

    def _look(self, unit: int, report: Heartbeat | Answer) -> None:
        """Read the counters of a unit of this machine, as long as they are the same ones."""
        if report.counters and self.run.units[unit].tally.begins_anew(report.counted):
            self.read_last(unit)
        guest = self._guests.get(unit)
        if guest and guest.host == self._host and not self._pages.watches(unit):
            state = report.pulse.state if isinstance(report, Heartbeat) else report.state
            if state in (State.READY, State.RUNNING):
                self._pages.watch(unit)

    def leave(self, unit: int, session: int) -> None:
        """Take in that a connection has ended: see `Desk`."""
        if (guest := self._guests.get(unit)) and guest.session == session:
            del self._guests[unit]
        self.run.left(time.monotonic(), unit, session)
        if self.processes.stands_for_several(unit) and self.run.units[unit].session == 0:
            self.run.exited(time.monotonic(), unit, "its task has ended")  # nobody else would tell
        self._act()

    def _exited(self, units: tuple[int, ...], how: str) -> None:
        for unit in units:
            self.read_last(unit)
            if self.run.units[unit].process:
                self.run.exited(time.monotonic(), unit, how)
        self._act()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self.run.plan.heartbeat_s / TICKS_PER_HEARTBEAT)
            self.run.tick(time.monotonic())
            self._act()

    # ---- what the run control wants ----------------------------------------------------------

    def _act(self) -> None:
        outputs = self.run.take()
        if launched := [output.unit for output in outputs if isinstance(output, Launch)]:
            for task in self._launcher.tasks(launched, self._socket or self.address):
                self.processes.start(task)
        for output in outputs:
            match output:
                case Send(unit=unit, session=session, message=message):
                    self._put(unit, session, message)
                case Drop(unit=unit, session=session):
                    self._put(unit, session, None)
                case Kill(unit=unit) if self.processes.stands_for_several(unit):
                    self._put(unit, self.run.units[unit].session, None)
                case Kill(unit=unit):
                    self.processes.kill(unit)
        for event in self.run.events[self._told :]:
            self._on_event(event)
        self._told = len(self.run.events)
        self._changed.set()

    def _put(self, unit: int, session: int, message: Message | None) -> None:
        guest = self._guests.get(unit)
        if guest and guest.session == session:
            guest.orders.put_nowait(message)

    def _unit_status(self, number: int) -> UnitStatus:
        unit, guest = self.run.units[number], self._guests.get(number)
        return UnitStatus(
            unit=number,
            standing=unit.standing,
            state=unit.state,
            member=number in self.run.members,
            host=guest.host if guest else "",
            pid=guest.pid if guest else 0,
            reason=unit.reason[:1000],
            counters=unit.tally.totals.numbers,
        )
