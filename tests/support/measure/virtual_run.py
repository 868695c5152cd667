"""A run in virtual time: the run control and units as they are, processes and a network made up."""

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from daqloom._engine import (
    Counters,
    DropConnection,
    KillProcess,
    LaunchProcess,
    RunControl,
    RunPlan,
    SendOrder,
    UnitAnswer,
)
from daqloom.control.plan import Plan
from daqloom.control.protocol import wire
from daqloom.control.protocol.messages import Message, Prepare, Renew, Start
from daqloom.control.protocol.states import Goal, Phase, Standing
from daqloom.control.unit import Unit

LATENCY_S = 0.002
BOOT_S = 0.3
ORDER_S = 0.05
TICK_S = 0.1


class Building:
    """Progress of the members of an epoch: a MEP a millisecond, while all of them take part and
    have a lease."""

    def __init__(self, world: "World", members: tuple[int, ...], first_mep: int) -> None:
        self.world, self.members = world, members
        self.nodes: dict[int, VirtualNode] = {}
        self.active: set[int] = set()
        self.exact = float(first_mep)
        self.since = world.now

    def change(self, unit: int, active: bool) -> None:
        self.advance()
        (self.active.add if active else self.active.discard)(unit)

    def advance(self) -> int:
        now, nodes = self.world.now, self.nodes.values()
        if self.active == set(self.members):
            until_s = min(now, *(node.until_s for node in nodes))
            done = self.exact + 1000 * max(0.0, until_s - self.since)
            self.exact = max(self.exact, min(done, *(node.mep_end for node in nodes)))
        self.since = now
        return int(self.exact)

    def answer_one_more(self) -> None:
        """Answer a MEP late, as a unit stopped between looking at its lease and answering."""
        if self.active == set(self.members) and all(
            self.exact + 1 <= node.mep_end for node in self.nodes.values()
        ):
            self.exact += 1


class VirtualNode:
    """Builds with the members of its epoch."""

    def __init__(self, world: "World", number: int) -> None:
        self.world, self.number, self.made_s = world, number, world.now
        self.epoch, self.members = 0, ()
        self.building: Building | None = None
        self.mep_end, self.until_s = 0, 0.0
        self.is_paused = False

    def prepare(
        self,
        epoch: int,
        members: Sequence[int],
        moved: Sequence[tuple[int, int, int]],
        *schedule: Sequence[int],
    ) -> bytes:
        self.shut()
        self.epoch, self.members = epoch, tuple(members)
        return f"{self.number}@{epoch}".encode()

    def connect(self, addresses: Sequence[tuple[int, bytes]], timeout_s: float) -> list[int]:
        assert tuple(unit for unit, _ in addresses) == self.members
        assert {address for _, address in addresses} == {
            f"{unit}@{self.epoch}".encode() for unit in self.members
        }
        return self.suspects()

    def start(self, first_mep: int) -> None:
        self.building = self.world.built.setdefault(
            self.epoch, Building(self.world, self.members, first_mep)
        )
        self.building.advance()
        self.building.nodes[self.number] = self
        self.building.change(self.number, active=True)

    def close(self, lost: Sequence[int]) -> None:
        assert self.number not in lost
        self.shut()

    def drain(self, wait_until_s: float, until_s: float) -> int:
        return self.next_mep()

    def lease(self, mep_end: int, until_s: float, beat: int) -> None:
        if self.building:
            self.building.advance()
        self.mep_end, self.until_s = mep_end, until_s

    def counters(self) -> Counters:
        process = self.world.processes[self.number]
        return Counters(
            {
                "elapsed_s": self.world.now - self.made_s,
                "beats": 0 if process and process.stuck else round(1e6 * self.world.now),
                "steps": 0 if self.suspects() or self.world.stalled else self.next_mep(),
                "next_mep": self.next_mep(),
                "streams_broken": 1 if process and process.broken else 0,
            }
        )

    def suspects(self) -> list[int]:
        return [unit for unit in self.members if not self.world.reaches(self.number, unit)]

    def pause(self) -> None:
        if self.building and self.number in self.building.active:
            self.building.change(self.number, active=False)
            self.is_paused = True

    def go_on(self) -> None:
        if self.building and self.is_paused:
            self.building.change(self.number, active=True)
            self.building.answer_one_more()
        self.is_paused = False

    def shut(self) -> None:
        if self.building:
            self.building.change(self.number, active=False)

    def next_mep(self) -> int:
        return self.building.advance() if self.building else 0


@dataclass
class Process:
    unit: Unit
    session: int = 0
    stopped: bool = False
    hung: bool = False
    """Its main thread never comes back from the node; heartbeats go on."""
    stuck: bool = False
    """Its data thread stands still."""
    broken: bool = False
    """A stream of it brings nothing any more."""
    cut_off: bool = False
    """From the run control."""
    inbox: list[Message] = field(default_factory=list)
    outbox: list[tuple[int, Any]] = field(default_factory=list)
    """Sessions and reports."""

    @property
    def node(self) -> VirtualNode | None:
        """Return the node of the unit."""
        return self.unit._node


class World:
    """`after(seconds, something)` schedules; `run(seconds)` lets time pass.

    `here`: units are on the machine of the run control, which sees what they counted when they end.
    """

    def __init__(self, units: int = 4, *, here: bool = True, **changes: Any) -> None:
        self.now = 0.0
        self.here = here
        self.stalled = False
        """Nothing is built, and nobody knows why."""
        self.built: dict[int, Building] = {}
        """By epoch."""
        self.plan = Plan(run="virtual", rules=RunPlan(units=units, **changes), scenario={})
        self.control = RunControl(self.plan.rules)
        self.processes: list[Process | None] = [None] * units
        self.cuts: set[frozenset[int]] = set()
        self.epochs: dict[int, tuple[int, ...]] = {}
        self.first_meps: list[int] = []
        self.first_meps_of: dict[int, int] = {}
        """By epoch."""
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._number = itertools.count()
        self._sessions = itertools.count(1)
        self.control.launch(0.0)
        self.act()
        self._tick()

    def after(self, seconds: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now + seconds, next(self._number), what))

    def run(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        end = self.now + seconds
        while self._queue and self._queue[0][0] <= end and not until():
            self.now, _, what = heapq.heappop(self._queue)
            what()
        if not until():
            self.now = end
        return until()

    def want(self, goal: Goal) -> None:
        self.control.want(self.now, goal)
        self.act()

    def reset(self, *units: int) -> None:
        for unit in units:
            self.control.reset(self.now, unit)
        self.act()

    # ---- what a fault does -------------------------------------------------------------------

    def kill(self, number: int) -> None:
        process, self.processes[number] = self.processes[number], None
        if process:
            if process.node:
                process.node.shut()
                if self.here:
                    self.control.counted(number, process.node.counters())
            self._close(number, process)
            self.control.exited(self.now, number, "SIGKILL")
            self.act()

    def stop(self, number: int) -> None:
        if (process := self.processes[number]) and not process.stopped:
            process.stopped = True
            if process.node:
                process.node.pause()

    def go_on(self, number: int) -> None:
        if (process := self.processes[number]) and process.stopped:
            process.stopped = False
            if process.node:
                process.node.go_on()
            self._deliver(number, process)

    def cut_off(self, number: int) -> None:
        """From the run control, which it does not notice; what was said meanwhile comes late."""
        if process := self.processes[number]:
            process.cut_off = True

    def all(self, fault: str) -> None:
        """To all units at the same time."""
        for number in range(len(self.processes)):
            getattr(self, fault)(number)

    def hang(self, number: int) -> None:
        if process := self.processes[number]:
            process.hung = True

    def unhang(self, number: int) -> None:
        if process := self.processes[number]:
            process.hung = False
            self._deliver(number, process)

    def stick(self, number: int) -> None:
        if process := self.processes[number]:
            process.stuck = True

    def break_stream(self, number: int) -> None:
        if process := self.processes[number]:
            process.broken = True

    def disconnect(self, number: int) -> None:
        """From the run control; the unit joins again."""
        if process := self.processes[number]:
            self._close(number, process)
            self.after(0.2, lambda: self._join(number, process))

    def cut(self, a: int, b: int) -> None:
        self.cuts.add(frozenset({a, b}))

    def heal(self) -> None:
        """No cause of new faults is left."""
        self.cuts.clear()
        for number in range(len(self.processes)):
            self.go_on(number)
            if (process := self.processes[number]) and process.cut_off:
                process.cut_off = False
                self._receive(number, process)
                self._deliver(number, process)

    def reaches(self, a: int, b: int) -> bool:
        mine, other = self.processes[a], self.processes[b]
        if mine is None or other is None or other.stopped or frozenset({a, b}) in self.cuts:
            return a == b
        return True

    # ---- the world ---------------------------------------------------------------------------

    def act(self) -> None:
        """Carries out what the run control wants, and looks at it."""
        for output in self.control.take():
            match output:
                case LaunchProcess(unit=unit):
                    self.after(BOOT_S, lambda unit=unit: self._boot(unit))
                case KillProcess(unit=unit):
                    self.after(LATENCY_S, lambda unit=unit: self.kill(unit))
                case DropConnection(unit=unit, session=session):
                    process = self.processes[unit]
                    if process and process.session == session:
                        self.after(LATENCY_S, lambda unit=unit: self.disconnect(unit))
                case SendOrder(unit=unit, session=session):
                    message = wire.message(output.order, order=output.number, **vars(self.plan))
                    self._look(unit, message)
                    process = self.processes[unit]
                    if process and process.session == session:
                        self.after(
                            LATENCY_S,
                            lambda unit=unit, process=process, message=message: self._put(
                                unit, process, message
                            ),
                        )
        control = self.control
        for number in control.members:
            assert control.units[number].standing is Standing.AVAILABLE
        if control.phase in (Phase.STARTING, Phase.RUNNING):
            assert control.members
        self._look_for_repeated()

    def _look_for_repeated(self) -> None:
        """No epoch has answered a MEP that a later one begins with, nor ever will."""
        later = None
        for epoch in sorted(self.built, reverse=True):
            building = self.built[epoch]
            assert later is None or building.advance() <= later, f"of epoch {epoch}"
            later = self.first_meps_of[epoch]

    def _look(self, unit: int, message: Message) -> None:
        if isinstance(message, Prepare):
            assert unit in message.members
            known = self.epochs.setdefault(message.epoch, message.members)
            assert known == message.members
            assert message.epoch == max(self.epochs)
        elif isinstance(message, Start):
            assert message.first_mep >= max(self.first_meps, default=0)
            self.first_meps.append(message.first_mep)
            self.first_meps_of[max(self.epochs)] = message.first_mep

    def _tick(self) -> None:
        self.control.tick(self.now)
        self.act()
        self.after(TICK_S, self._tick)

    def _boot(self, number: int) -> None:
        assert self.processes[number] is None
        process = Process(
            Unit(
                bytes(16),
                lambda order, *_: VirtualNode(self, order.unit),
                clock=lambda: self.now,
            )
        )
        self.processes[number] = process
        self._join(number, process)
        self._beat(number, process)

    def _join(self, number: int, process: Process) -> None:
        if self.processes[number] is not process or process.session:
            return
        if process.stopped or process.cut_off or not self.control.is_free(number):
            self.after(0.2, lambda: self._join(number, process))
            return
        process.session = next(self._sessions)
        process.unit.shut()
        self.control.joined(self.now, number, process.session)
        self.act()

    def _close(self, number: int, process: Process) -> None:
        session, process.session = process.session, 0
        process.inbox.clear()
        if session:
            self.control.left(self.now, number, session)
            self.act()

    def _put(self, number: int, process: Process, message: Message) -> None:
        process.inbox.append(message)
        self._deliver(number, process)

    def _deliver(self, number: int, process: Process) -> None:
        if self.processes[number] is not process or process.stopped or process.cut_off:
            return
        for order in [order for order in process.inbox if isinstance(order, Renew)]:
            process.inbox.remove(order)
            process.unit.renew(order)
        while process.inbox and not process.hung:
            session, order = process.session, process.inbox.pop(0)
            if order.kind in ("reset", "configure"):
                process.stuck = process.broken = False
            answer = process.unit.obey(order)
            if order.kind == "exit":
                self.after(3 * ORDER_S, lambda: self._exit(number, process))
            self.after(
                ORDER_S,
                lambda session=session, answer=answer: self._send(number, session, answer),
            )

    def _exit(self, number: int, process: Process) -> None:
        if self.processes[number] is process:
            self.kill(number)

    def _send(self, number: int, session: int, answer: UnitAnswer | None = None) -> None:
        process = self.processes[number]
        if process and process.session == session and not process.stopped:
            process.outbox += [(session, report) for report in process.unit.reports(answer)]
            self._receive(number, process)

    def _receive(self, number: int, process: Process) -> None:
        while process.outbox and not process.cut_off:
            session, report = process.outbox.pop(0)
            if session != process.session:
                continue
            refusal = self.control.reported(self.now, number, session, wire.record(report))
            assert refusal is None or self.control.units[number].standing is Standing.LOST
            self.act()

    def _beat(self, number: int, process: Process) -> None:
        if self.processes[number] is not process:
            return
        if process.session and not process.stopped:
            self._send(number, process.session)
        self.after(self.control.plan.heartbeat_s, lambda: self._beat(number, process))
