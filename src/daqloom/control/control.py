"""Control of a run: its run control with connections, processes and a clock in one asyncio loop.

>>> async with Control(plan, launcher) as control:  # doctest: +SKIP
...     control.want(Goal.RUNNING)
...     await control.until(lambda: control.run.phase is Phase.RUNNING)
"""

import asyncio
import secrets
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from daqloom._engine import (
    DropConnection,
    KillProcess,
    LaunchProcess,
    RunControl,
    SendOrder,
    UnitView,
)
from daqloom.base.output import OutputError
from daqloom.base.version import installed_version
from daqloom.control.calls.certificates import reachable_host
from daqloom.control.calls.connection import SOCKET, Certificates
from daqloom.control.calls.registry import publish
from daqloom.control.calls.service import Orders, Service
from daqloom.control.counters.arrivals import ArrivalLog
from daqloom.control.counters.pages import Pages
from daqloom.control.persistence.store import Store, StoredState
from daqloom.control.plan import Plan
from daqloom.control.protocol import wire
from daqloom.control.protocol.messages import (
    Answer,
    ConnectionRow,
    Heartbeat,
    Hello,
    Message,
    StageRow,
    Trace,
)
from daqloom.control.protocol.states import Goal, Phase, Refusal, ReportRefusal, State
from daqloom.control.publication import Publication
from daqloom.control.record.meter import Meter, Row, present
from daqloom.control.record.record import Record, Summary
from daqloom.control.record.summary import sums
from daqloom.control.run_log import About, RunEvent, log_entry
from daqloom.control.status import (
    MOST_CONNECTIONS,
    MOST_EVENTS,
    ConnectionStatus,
    Request,
    Status,
    UnitStatus,
    read_request,
)
from daqloom.control.steering import Steering, SteeringOptions
from daqloom.machine.addresses import join_address
from daqloom.machine.launch import Launcher, Mpirun
from daqloom.machine.machine import Machine
from daqloom.machine.processes import Processes, ProcessRecord
from daqloom.results.errors import MeasureError
from daqloom.scenario.schema.measure import Measure

TICKS_PER_HEARTBEAT = 2
LONGEST_ATTACHING_S = 10.0
"""Time in which units report to a run control that continues their run (s)."""
_EVERYWHERE = ("0.0.0.0", "::")


@dataclass
class _Peer:
    """Process that is connected as a unit."""

    session: int
    orders: Orders
    host: str
    pid: int


class Control(Steering):
    """A run: an asynchronous context with the run's processes.

    It also listens at `socket_file`, if given. `on_event` is called with each entry of the run's
    log, `on_count` with each unit that has reported its counters. Raises MeasureError on entering
    if it cannot listen. `record` receives series, events and the summary of the run, `publication`
    its status each second; `sink` is the scenario's measure.sink."""

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
        token: bytes = b"",
        certificates: Certificates | None = None,
        on_event: Callable[[RunEvent], None] | None = None,
        on_count: Callable[[int], None] | None = None,
        record: Record | None = None,
        publication: Publication | None = None,
        sink: str = "",
        steering: SteeringOptions | None = None,
        store: Store | None = None,
    ) -> None:
        super().__init__(steering or SteeringOptions())
        self.store = store
        self.token = store.about.token if store else token or secrets.token_bytes(16)
        self.steering = secrets.token_bytes(16)
        """Secret of operators on loopback."""
        self.address = ""
        """Address, host:port."""
        self._socket = f"{SOCKET}{socket_file.absolute()}" if socket_file else ""
        """Address of the socket for units in other namespaces."""
        self.refused: Counter[str] = Counter()
        former = store.state if store else None
        self.began_ns = min(former.began_ns, time.time_ns()) if former else time.time_ns()
        """Wall-clock time of the start of the run (since 1970)."""
        self._began_s = time.monotonic() - (time.time_ns() - self.began_ns) / 1e9
        self.plan = plan
        self.run = RunControl(plan.rules)
        self.name = name
        self._launcher = launcher
        together = isinstance(launcher, Mpirun)
        self._loss = "; mpirun ends all units when it loses one" if together else ""
        self._bind, self._port = bind, port
        self._certificates = certificates
        self._on_event = on_event or (lambda event: None)
        self._on_count = on_count or (lambda unit: None)
        self.record = record
        self._publication = publication or Publication(Measure())
        self._built_bytes = 0.0
        """Most bytes of fragments that were built; the estimate of a moment may be lower."""
        self.ending = "ended"
        """State of the run in its summary, once it is over."""
        self._sink = sink
        self.meter = Meter(self.run, plan.packing)
        self.events: list[RunEvent] = []
        """Log of the run."""
        self._peers: dict[int, _Peer] = {}
        self._sessions = former.snapshot.session if former else 0
        self.stages: dict[int, deque[StageRow]] = {}
        """Last stages of each unit, if the plan has any."""
        self.arrivals = ArrivalLog(plan.trace_arrivals)
        self.connections: dict[tuple[int, int], ConnectionRow] = {}
        """Last kernel counters of the TCP connection from a unit to another one."""
        self._changed = asyncio.Event()
        self._clock: asyncio.Task[None] | None = None
        self._pages = Pages(plan.run, plan.counters)
        self.processes = Processes(
            folder, self.token, self._log_exit, outlive=store is not None, on_start=self._save
        )
        self._service = Service(
            self,
            steering=self.steering,
            certificates=certificates,
            refused=self.refused,
            reception=self,
            token=self.token,
        )

    async def __aenter__(self) -> Self:
        try:
            return await self._enter_run()
        except BaseException:
            if self._clock:
                self._clock.cancel()
            await self._service.close()
            self._publication.close()
            raise

    async def _enter_run(self) -> Self:
        port = await self._listen()
        host = self._bind
        if host in _EVERYWHERE:
            host = socket.gethostname()
            if self._certificates:
                host = reachable_host(self._certificates, host)
        self.address = join_address(host, port)
        self._publication.open()
        self._clock = asyncio.create_task(self._tick())
        if self.store and self.store.state:
            self._resume(self.store, self.store.state)
        else:
            self.run.launch(self.now_s())
        self._act()
        if self.store:
            try:
                self.store.write_address(self.address)
            except OutputError as error:
                if port != self.store.former_port:  # no unit would find it
                    raise
                self.run.injected(self.now_s(), f"the address cannot be stored: {error}")
        return self

    async def _listen(self) -> int:
        """Listen; return the port: that of the former run control, if it is still free."""
        former = self.store.former_port if self.store and not self._port else 0
        if former:
            with suppress(MeasureError):
                return await self._service.listen(self._bind, former, self._socket)
        return await self._service.listen(self._bind, self._port, self._socket)

    def _resume(self, store: Store, former: StoredState) -> None:
        """Continue the run of a former run control: units join again, and the last counters of
        those that have ended are read. Raises MeasureError for the state of another run."""
        try:
            self.run.resume(self.now_s(), wire.record(former.snapshot))
        except ValueError as error:
            raise MeasureError(f"{store.folder}: {error}") from None
        if former.setup:
            self.continue_setups(former.setup)
        # Bins begin at the stored totals, so that what was built in the gap is spread over it.
        now_s = self.now_s()
        end_s = now_s + LONGEST_ATTACHING_S
        self.meter = Meter(self.run, self.plan.packing, min(former.saved_s, now_s), end_s)
        known = [ProcessRecord(row.units, row.pid, row.began) for row in former.processes]
        running = {unit for each in known if self.processes.adopt(each) for unit in each.units}
        ended = tuple(
            unit.number for unit in self.run.units if unit.process and unit.number not in running
        )
        for unit in ended:
            self._pages.watch(unit, 0)
        self._log_exit(ended, "it ended while there was no run control")

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the run, immediately if it was cancelled; no process is left."""
        try:
            self.want(Goal.ENDED)
            rules = self.plan.rules
            timeout_s = 6 * rules.fault_timeout_s + 5 + rules.finish_timeout_s
            if kind is asyncio.CancelledError:
                timeout_s = 0.0
            with suppress(TimeoutError):
                ended = self.until(lambda: self.run.phase is Phase.ENDED)
                await asyncio.wait_for(ended, timeout_s)
        finally:
            await self.end_hooks(at_once=kind is asyncio.CancelledError)
            if self._clock:
                self._clock.cancel()
            await self._service.close()
            await self.processes.end(are_ending=self.run.phase is Phase.ENDED)
            self._close_record(kind)
            self._publication.publish(self.status)
            self._publication.close()

    def _close_record(self, kind: type[BaseException] | None) -> None:
        if self.record:
            interrupted = kind is asyncio.CancelledError
            self.ending = "interrupted" if interrupted else "failed" if kind else self.ending
            self.record.add(self.now_s(), list(self.meter.close(self.now_s(), at_once=True)))
            self.record.close(self.summary(self.ending))

    def summary(self, state: str = "running") -> Summary:
        """Return the sums of the run until now, or at its end (`state`)."""
        offset_s = self.record.offset_s if self.record else 0.0
        losses = (each for each in self.events if each.about is About.UNIT and each.is_trouble)
        return sums(
            self.run,
            ((each.time_s + offset_s, each.text) for each in losses),
            parts=self.parts(has_ended=state != "running"),
            number=self.plan.run_number or None,
            sink=self._sink,
            state=state,
            length_s=self.now_s() + offset_s,
            building_s=self.record.building_s if self.record else 0.0,
        )

    def publish(self) -> AbstractContextManager[Path]:
        """Publish the run for operators of this machine; yield the file for the token of units."""
        return publish(self.address, self.steering, self.token, certificates=self._certificates)

    @property
    def units_address(self) -> str:
        """Address at which units find the run control."""
        return self._socket or self.address

    def now_s(self) -> float:
        """Return the time of the run control (s)."""
        return time.monotonic() - self._began_s

    # ---- the operator ------------------------------------------------------------------------

    def log_injection(self, text: str) -> None:
        """Log the begin or end of an injected fault."""
        self.run.injected(self.now_s(), text)
        self._act()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds()`, which is called after each possible change."""
        while not holds():
            self._changed.clear()
            await self._changed.wait()

    async def until_running(self) -> None:
        """Wait until the run is running. Raises MeasureError if it is in error instead."""
        await self.until(lambda: self.run.phase in (Phase.RUNNING, Phase.ERROR, Phase.ENDED))
        if self.run.phase is not Phase.RUNNING:
            raise MeasureError(self.failure())

    def failure(self) -> str:
        """Return the reason of the error, with the last output of the units concerned."""
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
        run, members = self.run, self.run.members
        rates, of_units = present(self.meter.last)
        summary = self.summary()
        self._built_bytes = max(self._built_bytes, summary.bytes)
        return Status(
            began_s=self.record.about.began.timestamp() if self.record else self.began_ns / 1e9,
            record=str(self.record.folder) if self.record else "",
            number=self.plan.run_number or None,
            rates=rates,
            built_events=summary.events,
            built_bytes=round(self._built_bytes),
            lost=summary.lost,
            run=self.plan.run,
            scenario=self.name,
            time_s=self.now_s(),
            phase=run.phase,
            goal=run.goal,
            epoch=run.epoch,
            first_mep=run.first_mep,
            failure=run.failure[:1000],
            units=tuple(
                self._unit_status(unit, unit.number in members, of_units.get(unit.number, {}))
                for unit in run.units
            ),
            events=tuple((event.time_s, event.text) for event in self.events[-MOST_EVENTS:]),
            counts={
                **run.counts,
                **{f"refused.{why}": n for why, n in self.refused.items()},
                "unsent_points": self._publication.unsent_points,
            },
            requests=self.requests,
            refusal=self.refusal,
            pending=self.pending,
            connections=self._slowest(members),
        )

    def _slowest(self, members: Iterable[int]) -> tuple[ConnectionStatus, ...]:
        """Return the slowest connections between members."""
        here = set(members)
        rows = [each for each in self.connections.items() if here.issuperset(each[0])]
        rows.sort(key=lambda each: each[1].round_trip_us, reverse=True)
        return tuple(
            ConnectionStatus(
                unit=unit,
                to=to,
                segments_retransmitted=row.segments_retransmitted,
                round_trip_us=row.round_trip_us,
            )
            for (unit, to), row in rows[:MOST_CONNECTIONS]
        )

    def steer(self, body: bytes) -> bytes:
        """Answer a request of an operator: see `Steerable`."""
        return self.obey(read_request(body)).encode()

    def obey(self, request: Request) -> Status:
        """Carry out a request of an operator."""
        if request.command != "status":
            self.change(request)
        return self.status()

    # ---- units -------------------------------------------------------------------------------

    def arrive(self, hello: Hello, orders: Orders) -> tuple[int, int] | Refusal:
        """Admit a process that joins: see `Reception`."""
        run, unit, units = self.run, hello.unit, self.plan.rules.units
        if hello.version != installed_version():
            return Refusal.VERSION
        if (
            unit is not None
            and unit < units
            and hello.rejoin
            and self._rejoins(unit, hello, orders)
        ):
            return unit, self._sessions
        if unit is None:
            unit = next((each for each in range(units) if run.is_free(each)), units)
        if unit >= units:
            return Refusal.UNKNOWN_UNIT
        if not run.is_free(unit):
            return Refusal.OCCUPIED
        self._sessions += 1
        before = self._peers.get(unit)
        self._peers[unit] = _Peer(self._sessions, orders, hello.host, hello.pid)
        run.joined(self.now_s(), unit, self._sessions)
        if before:
            before.orders.put_nowait(None)
        self._act()
        return unit, self._sessions

    def _rejoins(self, unit: int, hello: Hello, orders: Orders) -> bool:
        """Admit a process that has kept its node, if this run control awaits it."""
        assert hello.rejoin is not None
        # Known before the call, which may give the unit an order.
        former = self._peers.get(unit)
        self._peers[unit] = _Peer(self._sessions + 1, orders, hello.host, hello.pid)
        if self.run.rejoined(self.now_s(), unit, self._sessions + 1, wire.record(hello.rejoin)):
            self._sessions += 1
            self._act()
            return True
        del self._peers[unit]
        if former:
            self._peers[unit] = former
        return False

    def report(
        self, unit: int, session: int, report: Heartbeat | Answer | Trace
    ) -> ReportRefusal | None:
        """Process a report of a unit: see `Reception`."""
        if isinstance(report, Trace):
            return self._keep(unit, session, report)
        self._look(unit, report)
        refusal = self.run.reported(self.now_s(), unit, session, wire.record(report))
        self.meter.count(self.now_s(), unit)
        self._on_count(unit)
        self._act()
        return refusal

    def _keep(self, unit: int, session: int, report: Trace) -> ReportRefusal | None:
        if session != self.run.unit(unit).session:
            return ReportRefusal.SESSION
        for text in report.warnings:
            self.run.warned(self.now_s(), text)
        if report.arrivals:
            self.arrivals.add(report.arrivals)
        kept = self.stages.setdefault(unit, deque(maxlen=self.plan.trace_stages))
        kept.extend(report.stages)
        units = self.run.plan.units
        self.connections |= {(unit, row.to): row for row in report.connections if row.to < units}
        return None

    def read_last(self, unit: int) -> None:
        """Read the last counters of a unit of this machine that has ended."""
        if counted := self._pages.last(unit):
            self.run.counted(unit, counted)
            self.meter.count(self.now_s(), unit)
            self._on_count(unit)

    def _look(self, unit: int, report: Heartbeat | Answer) -> None:
        """Read the counters of a unit of this machine before they begin anew."""
        if report.counters and self.run.unit(unit).tally.begins_anew(report.engine_counters):
            self.read_last(unit)
        peer = self._peers.get(unit)
        if peer and not self._pages.watches(unit):
            state = report.pulse.state if isinstance(report, Heartbeat) else report.state
            if state in (State.READY, State.RUNNING):
                self._pages.watch(unit, peer.pid)

    def leave(self, unit: int, session: int) -> None:
        """Process the end of a connection: see `Reception`."""
        if (peer := self._peers.get(unit)) and peer.session == session:
            del self._peers[unit]
        self.run.left(self.now_s(), unit, session)
        if self.processes.stands_for_several(unit) and self.run.unit(unit).session == 0:
            # srun does not report it
            self.run.exited(self.now_s(), unit, f"its task has ended{self._loss}")
        self._act()

    def _log_exit(self, units: tuple[int, ...], how: str) -> None:
        for unit in units:
            self.read_last(unit)
            if self.run.unit(unit).process:
                self.run.exited(self.now_s(), unit, how + self._loss)
        self._act()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self.plan.rules.heartbeat_s / TICKS_PER_HEARTBEAT)
            self.run.tick(self.now_s())
            self._act()
            bins = list(self.meter.close(self.now_s()))
            if self.record:
                self.record.add(self.now_s(), bins, self.summary)
            if bins and (sentence := self._publication.publish(self.status)):
                self.remark(sentence)

    # ---- outputs of the run control ----------------------------------------------------------

    def _save(self) -> None:
        """Store the state of the run, if it is to outlive this process."""
        if not self.store:
            return
        before = self.store.failure
        records = self.processes.records
        self.store.save(self.run, self.now_s(), self.began_ns, records, self.setup)
        if self.store.failure and not before:
            self.run.injected(self.now_s(), f"the state cannot be stored: {self.store.failure}")

    def _act(self) -> None:
        self._save()
        outputs = self.run.take()
        if launched := [output.unit for output in outputs if isinstance(output, LaunchProcess)]:
            for task in self._launcher.tasks(launched, self.units_address):
                self.processes.start(task)
        for output in outputs:
            match output:
                case SendOrder(unit=unit, session=session):
                    order = wire.message(output.order, order=output.number, **vars(self.plan))
                    self._put(unit, session, order)
                case DropConnection(unit=unit, session=session):
                    self._put(unit, session, None)
                case KillProcess(unit=unit) if self.processes.stands_for_several(unit):
                    self._put(unit, self.run.unit(unit).session, None)
                case KillProcess(unit=unit):
                    self.processes.kill(unit)
        first = len(self.events)
        for event in self.run.events_from(first):
            self.events.append(log_entry(event, Machine()))
            if self.record:
                self.record.event(vars(self.events[-1]), self.run.epoch)
            self._on_event(self.events[-1])
        self.observe(self.events[first:])
        self._changed.set()

    def _put(self, unit: int, session: int, order: Message | None) -> None:
        peer = self._peers.get(unit)
        if peer and peer.session == session:
            peer.orders.put_nowait(order)

    def _unit_status(self, unit: UnitView, is_member: bool, rates: Row) -> UnitStatus:
        peer = self._peers.get(unit.number)
        return UnitStatus(
            unit=unit.number,
            standing=unit.standing,
            state=unit.state,
            member=is_member,
            host=peer.host if peer else "",
            pid=peer.pid if peer else 0,
            is_excluded=unit.is_excluded,
            is_source_excluded=unit.is_source_excluded,
            reason=unit.reason[:1000],
            counters=unit.tally.totals.numbers,
            rates=rates,
        )
