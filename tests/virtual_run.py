"""A run in virtual time: the run control and units as they are, processes and a network made up."""

import heapq
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from daqloom.measure.messages import Message, Prepare, Start
from daqloom.measure.outputs import Drop, Kill, Launch, Send
from daqloom.measure.plan import Plan
from daqloom.measure.run_control import BUILDING, RunControl
from daqloom.measure.states import Standing
from daqloom.measure.unit import Unit

LATENCY_S = 0.002
BOOT_S = 0.3
ORDER_S = 0.05
TICK_S = 0.1


class VirtualNode:
    """Builds a MEP a millisecond, with those it can reach."""

    def __init__(self, world: "World", number: int) -> None:
        self.world, self.number = world, number
        self.epoch, self.members = 0, ()
        self.first_mep, self.since = 0, None

    def prepare(self, epoch: int, members: Sequence[int]) -> bytes:
        self.epoch, self.members = epoch, tuple(members)
        return f"{self.number}@{epoch}".encode()

    def connect(self, addresses: Sequence[tuple[int, bytes]], timeout_s: float) -> list[int]:
        assert tuple(unit for unit, _ in addresses) == self.members
        assert {address for _, address in addresses} == {
            f"{unit}@{self.epoch}".encode() for unit in self.members
        }
        return self.suspects()

    def start(self, first_mep: int) -> None:
        self.first_mep, self.since = first_mep, self.world.now

    def halt(self, lost: Sequence[int], timeout_s: float) -> Mapping[str, Any]:
        assert self.number not in lost
        self.first_mep, self.since = self.next_mep(), None
        return {"next_mep": self.first_mep, "missing": []}

    def counters(self) -> Mapping[str, int | float]:
        process = self.world.processes[self.number]
        return {
            "beats": 0 if process and process.stuck else round(1e6 * self.world.now),
            "steps": 0 if self.suspects() else self.next_mep(),
            "next_mep": self.next_mep(),
            "streams_broken": 1 if process and process.broken else 0,
        }

    def suspects(self) -> list[int]:
        return [unit for unit in self.members if not self.world.reaches(self.number, unit)]

    def shut(self) -> None:
        self.since = None

    def next_mep(self) -> int:
        if self.since is None:
            return self.first_mep
        return self.first_mep + round(1000 * (self.world.now - self.since))


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
    inbox: list[Message] = field(default_factory=list)


class World:
    """`after(seconds, something)` schedules; `run(seconds)` lets time pass."""

    def __init__(self, units: int = 4, **changes: Any) -> None:
        given: dict[str, Any] = {"run": "virtual", "units": units, "scenario": {}}
        self.now = 0.0
        self.control = RunControl(Plan(**(given | changes)), 0.0)
        self.processes: list[Process | None] = [None] * units
        self.cuts: set[frozenset[int]] = set()
        self.epochs: dict[int, tuple[int, ...]] = {}
        self.first_meps: list[int] = []
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

    # ---- what a fault does -------------------------------------------------------------------

    def kill(self, number: int) -> None:
        process, self.processes[number] = self.processes[number], None
        if process:
            self._close(number, process)
            self.control.exited(self.now, number, "SIGKILL")
            self.act()

    def stop(self, number: int) -> None:
        if process := self.processes[number]:
            process.stopped = True

    def go_on(self, number: int) -> None:
        if (process := self.processes[number]) and process.stopped:
            process.stopped = False
            self._deliver(number, process)

    def hang(self, number: int) -> None:
        if process := self.processes[number]:
            process.hung = True

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
                case Launch(unit=unit):
                    self.after(BOOT_S, lambda unit=unit: self._boot(unit))
                case Kill(unit=unit):
                    self.after(LATENCY_S, lambda unit=unit: self.kill(unit))
                case Drop(unit=unit, session=session):
                    process = self.processes[unit]
                    if process and process.session == session:
                        self.after(LATENCY_S, lambda unit=unit: self.disconnect(unit))
                case Send(unit=unit, session=session, message=message):
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
        if control.phase in BUILDING:
            assert control.members

    def _look(self, unit: int, message: Message) -> None:
        if isinstance(message, Prepare):
            assert unit in message.members
            known = self.epochs.setdefault(message.epoch, message.members)
            assert known == message.members
            assert message.epoch == max(self.epochs)
        elif isinstance(message, Start):
            assert message.first_mep >= max(self.first_meps, default=0)
            self.first_meps.append(message.first_mep)

    def _tick(self) -> None:
        self.control.tick(self.now)
        self.act()
        self.after(TICK_S, self._tick)

    def _boot(self, number: int) -> None:
        assert self.processes[number] is None
        process = Process(Unit(bytes(16), lambda document, unit, run: VirtualNode(self, unit)))
        self.processes[number] = process
        self._join(number, process)
        self._beat(number, process)

    def _join(self, number: int, process: Process) -> None:
        if self.processes[number] is not process or process.session:
            return
        if process.stopped or not self.control.is_free(number):
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
        if self.processes[number] is not process or process.stopped or process.hung:
            return
        while process.inbox:
            session, order = process.session, process.inbox.pop(0)
            if order.kind in ("reset", "configure"):
                process.stuck = process.broken = False
            answer = process.unit.obey(order)
            if order.kind == "exit":
                self.after(3 * ORDER_S, lambda: self._exit(number, process))
            self.after(
                ORDER_S,
                lambda session=session, answer=answer: self._say(
                    number, session, process.unit.with_counters(answer)
                ),
            )

    def _exit(self, number: int, process: Process) -> None:
        if self.processes[number] is process:
            self.kill(number)

    def _say(self, number: int, session: int, report: Any) -> None:
        process = self.processes[number]
        if process and process.session == session and not process.stopped:
            refusal = self.control.reported(self.now, number, session, report)
            assert refusal is None or self.control.units[number].standing is Standing.LOST
            self.act()

    def _beat(self, number: int, process: Process) -> None:
        if self.processes[number] is not process:
            return
        if process.session and not process.stopped:
            self._say(number, process.session, process.unit.heartbeat())
        self.after(self.control.plan.heartbeat_s, lambda: self._beat(number, process))
