"""The run control: who is a member of a run, and what each unit has to do next.

Sans I/O: inputs are what units, processes, the operator and the clock say; outputs are orders to
units and to whoever starts processes. A run is a sequence of epochs, each with a fixed set of
members. Whatever breaks leads to the same: the members that are left halt, and prepare, connect and
start with the next epoch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from daqloom.measure.accusers import Accusers, accusers_among, convicted, worst
from daqloom.measure.messages import (
    Answer,
    Configure,
    Connect,
    Exit,
    Halt,
    Heartbeat,
    Message,
    Prepare,
    Pulse,
    Reset,
    Start,
)
from daqloom.measure.outputs import Drop, Kill, Launch, Output, RunEvent, Send
from daqloom.measure.plan import Plan
from daqloom.measure.refused import Refused
from daqloom.measure.states import Goal, Phase, Standing, State
from daqloom.measure.unit_view import Asked, UnitView

MOST_EVENTS = 10_000
"""Of the log of a run; later ones are only counted."""
LONGEST_PAUSE_S = 60.0
"""Before a unit that is lost again and again comes back."""
MOST_TROUBLES = 3
"""Regroupings in a row of which none helps."""
HEALTHY_TIMEOUTS = 10
"""After so many fault timeouts without trouble, the next is a new one."""

ASKING = (Phase.PREPARING, Phase.CONNECTING, Phase.STARTING, Phase.HALTING)
"""Phases that end when all members have answered."""
BUILDING = (Phase.STARTING, Phase.RUNNING)
"""Phases in which data may be under way."""


class RunControl:
    """The state of a run. Every input has the time `now`, in seconds, which never goes back."""

    def __init__(self, plan: Plan, now: float) -> None:
        self.plan = plan
        self.units = [UnitView(number) for number in range(plan.units)]
        self.phase = Phase.WAITING
        self.goal = Goal.IDLE
        self.epoch = 0
        self.first_mep = 0
        self.members: frozenset[int] = frozenset()
        self.failure = ""
        """Why the run is in error, in one sentence."""
        self.events: list[RunEvent] = []
        self.counts: Counter[str] = Counter()
        self._out: list[Output] = []
        self._order = 0
        self._broken = ""
        """Why the members have to regroup; empty: they need not."""
        self._was_ready = False
        self._deadline_s = now + plan.launch_timeout_s
        self._ticked_s = now
        self._running_since_s = now
        self._progress_s = now
        self._suspected_s: float | None = None
        self._troubles = 0
        self._connect_tries = 0
        self._next_mep = 0

    def take(self) -> list[Output]:
        """The outputs since the last call, in order."""
        out, self._out = self._out, []
        return out

    # ---- inputs ------------------------------------------------------------------------------

    def launch(self, now: float) -> None:
        """Starts all processes; those of a run whose units come by themselves are awaited."""
        for unit in self.units:
            self._launch(now, unit)

    def is_free(self, unit: int) -> bool:
        """Whether a process may join as this unit: none that is relied on has."""
        return self.goal is not Goal.ENDED and self.units[unit].standing in (
            Standing.ABSENT,
            Standing.LOST,
        )

    def joined(self, now: float, number: int, session: int) -> None:
        """A process has said hello for a unit that `is_free`."""
        unit = self.units[number]
        if unit.session:
            self._out.append(Drop(number, unit.session))
        unit.session, unit.standing, unit.state = session, Standing.JOINING, State.NOT_READY
        unit.heard_s, unit.join_by_s, unit.returns_s = now, None, None
        self._ask(
            now,
            unit,
            lambda order: Configure(
                order=order,
                unit=number,
                run=self.plan.run,
                units=self.plan.units,
                heartbeat_s=self.plan.heartbeat_s,
                trace_stages=self.plan.trace_stages,
                scenario=dict(self.plan.scenario),
            ),
            self.plan.order_timeout_s,
        )
        self._advance(now)

    def reported(
        self, now: float, number: int, session: int, report: Heartbeat | Answer
    ) -> Refused | None:
        """A unit has spoken. Returns why the report is refused, if it is."""
        unit = self.units[number]
        if session != unit.session:
            return Refused.SESSION
        unit.heard_s = now
        if isinstance(report, Answer):
            refusal = self._on_answer(now, unit, report)
        else:
            refusal = self._on_heartbeat(now, unit, report)
        self._advance(now)
        return refusal

    def left(self, now: float, number: int, session: int) -> None:
        """The connection of a unit has ended."""
        unit = self.units[number]
        if session != unit.session:
            return
        unit.session = 0
        self._lose(now, unit, "its connection ended")
        unit.standing = Standing.ABSENT
        unit.join_by_s = now + self.plan.launch_timeout_s
        self._advance(now)

    def exited(self, now: float, number: int, how: str) -> None:
        """The process of a unit, which we started, has ended: `how`, such as "exit code 1"."""
        unit = self.units[number]
        unit.process, unit.session = False, 0
        self._lose(now, unit, f"its process ended: {how}")
        unit.standing, unit.join_by_s = Standing.ABSENT, None
        unit.reason = f"its process ended: {how}"  # which says more than that it was lost
        if unit.returns_s is None and self.plan.restart:
            unit.returns_s = now + self._pause_s(unit)
        if not self._was_ready and self.goal is not Goal.ENDED:
            self._fail(now, f"unit {number} could not start: its process ended ({how})")
        self._advance(now)

    def want(self, now: float, goal: Goal) -> None:
        """What the operator asks for."""
        if self.goal is Goal.ENDED:
            return
        self._note(now, f"the operator wants the run {goal}")
        self.goal = goal
        if self.phase is Phase.ERROR and goal in (Goal.READY, Goal.RUNNING):
            self.failure, self._troubles = "", 0
            self._wait(now)
        self._advance(now)

    def reset(self, now: float, number: int) -> None:
        """The operator brings a unit back, whatever has become of it."""
        unit = self.units[number]
        self._note(now, f"the operator resets unit {number}")
        unit.failures, unit.reset_by_operator = 0, True
        self._lose(now, unit, "reset by the operator")
        if unit.standing is Standing.LOST:
            self._send_reset(now, unit)
        else:
            unit.returns_s = now
        self._advance(now)

    def tick(self, now: float) -> None:
        """Time has passed; to be called a few times per heartbeat."""
        gap = now - self._ticked_s
        self._ticked_s = now
        if gap > self.plan.fault_timeout_s / 2:  # it was us who stood still: nobody else is late
            self._forgive(gap)
        if self.phase not in (Phase.ENDING, Phase.ENDED):
            self._watch_all(now)
        if self.phase is Phase.RUNNING:
            self._watch_members(now)
        if self.goal is not Goal.ENDED:
            self._bring_back(now)
        if self.phase in ASKING and now >= self._deadline_s:
            for unit in self._unanswered():
                self._lose(now, unit, f"no answer to {unit.asked.what if unit.asked else 'us'}")
        self._advance(now)

    # ---- what units say ----------------------------------------------------------------------

    def _on_answer(self, now: float, unit: UnitView, answer: Answer) -> Refused | None:
        if answer.order > self._order:
            return Refused.UNASKED
        if unit.asked is None or answer.order != unit.asked.number:
            return None  # to an order that another has replaced
        what, unit.asked, unit.state = unit.asked.what, None, answer.state
        unit.tally.read(answer.counters)
        if answer.failure:
            self._lose(now, unit, f"{what} failed: {answer.failure}")
            if what == "configure" and not self._was_ready:
                self._fail(now, f"unit {unit.number} cannot be configured: {answer.failure}")
        elif unit.standing is Standing.JOINING:
            unit.standing, unit.reset_by_operator = Standing.AVAILABLE, False
            self._note(now, f"unit {unit.number} is available")
        elif unit.number in self.members:
            unit.answer = answer
        return None

    def _on_heartbeat(self, now: float, unit: UnitView, report: Heartbeat) -> Refused | None:
        pulse = report.pulse
        if pulse.epoch > self.epoch or (
            unit.state in (State.READY, State.RUNNING)
            and unit.number in self.members
            and unit.asked is None
            and pulse.epoch != self.epoch
        ):
            return Refused.EPOCH
        if unit.standing is Standing.LOST:
            return None if pulse.epoch == self.epoch else Refused.EPOCH
        unit.tally.read(report.counters)
        self.first_mep_seen(pulse.next_mep)
        if pulse.state is State.ERROR and unit.standing is Standing.AVAILABLE:
            unit.state = pulse.state
            self._lose(now, unit, pulse.failure or "it reports an error")
        elif unit.number in self.members and pulse.epoch == self.epoch:
            self._progress(now, unit, pulse)
        return None

    @property
    def next_mep(self) -> int:
        """The first MEP that no builder unit has answered, as far as they have told."""
        return max(self.first_mep, self._next_mep)

    def first_mep_seen(self, next_mep: int) -> None:
        """MEPs before this one have been answered: no later epoch may have them again."""
        self._next_mep = max(self._next_mep, next_mep)

    def _progress(self, now: float, unit: UnitView, pulse: Pulse) -> None:
        before, unit.pulse = unit.pulse, pulse
        if before is None or pulse.beats is None or pulse.beats != before.beats:
            unit.beat_s = now
        if before is None or pulse.steps is None or pulse.steps != before.steps or pulse.waits:
            self._progress_s = now
        if self._suspected_s is None and self.members & set(pulse.suspects):
            self._suspected_s = now

    # ---- what time tells ---------------------------------------------------------------------

    def _forgive(self, gap: float) -> None:
        for unit in self.units:
            unit.heard_s += gap
            unit.beat_s += gap
            if unit.asked:
                unit.asked.until_s += gap
            if unit.join_by_s is not None:
                unit.join_by_s += gap
        self._deadline_s += gap
        self._progress_s += gap
        if self._suspected_s is not None:
            self._suspected_s += gap

    def _watch_all(self, now: float) -> None:
        for unit in self.units:
            trusted = unit.standing in (Standing.JOINING, Standing.AVAILABLE)
            asked = unit.asked
            if trusted and now - unit.heard_s > self.plan.fault_timeout_s:
                self._lose(now, unit, f"silent for {now - unit.heard_s:.1f} s")
                if asked and asked.what == "reset":
                    self._end_process(now, unit)
            elif unit.number not in self.members and asked and now >= asked.until_s:
                self._lose(now, unit, f"no answer to {asked.what}")
                self._end_process(now, unit)
            elif unit.join_by_s is not None and now >= unit.join_by_s and unit.process:
                unit.join_by_s = None
                self._note(now, f"unit {unit.number} did not join in time")
                self._end_process(now, unit)

    def _watch_members(self, now: float) -> None:
        timeout = self.plan.fault_timeout_s
        for unit in self._of(self.members):
            if now - unit.beat_s > timeout:
                self._lose(now, unit, "its data thread stands still")
        if self._broken:
            return
        if now - self._running_since_s > HEALTHY_TIMEOUTS * timeout:
            self._troubles = 0
        if self._suspected_s is not None and now - self._suspected_s > timeout / 2:
            self._on_suspicion(now)
        elif now - self._progress_s > timeout:
            self._on_trouble(now, "nothing is built any more", self._accusers())

    def _on_suspicion(self, now: float) -> None:
        accusers = self._accusers()
        if not accusers:
            self._suspected_s = None
            return
        others = len(self.members) - 1
        unreachable = [
            unit
            for unit, by in accusers.items()
            if convicted(len(by), others) or self.units[unit].heard_s < (self._suspected_s or 0)
        ]
        if unreachable and len(unreachable) < len(self.members):
            for number in unreachable:
                by = " and ".join(f"unit {each}" for each in sorted(accusers[number])[:4])
                self._lose(now, self.units[number], f"unreachable, say {by}")
        else:
            pairs = sorted({(min(n, m), max(n, m)) for n, by in accusers.items() for m in by})
            told = ", ".join(f"{n} and {m}" for n, m in pairs[:4])
            self._on_trouble(now, f"a connection is cut, between {told}", accusers)

    def _on_trouble(self, now: float, what: str, accusers: Accusers) -> None:
        """All members live, and yet something is wrong: new connections, then fewer members."""
        self._troubles += 1
        if self._troubles > 1 and accusers:
            self._lose(
                now, self.units[worst(accusers)], f"{what}, and new connections did not help"
            )
        elif self._troubles > MOST_TROUBLES:
            self._fail(now, f"{what}, and regrouping {MOST_TROUBLES} times did not help")
        else:
            self._broken = what

    def _accusers(self) -> Accusers:
        return accusers_among(self._of(self.members))

    def _bring_back(self, now: float) -> None:
        for unit in self.units:
            if unit.returns_s is None or now < unit.returns_s:
                continue
            if unit.standing is Standing.ABSENT and not unit.process:
                self._launch(now, unit)
            elif unit.standing is Standing.LOST and unit.heard_s > unit.lost_s and not unit.asked:
                self._send_reset(now, unit)

    # ---- losing and regrouping ---------------------------------------------------------------

    def _lose(self, now: float, unit: UnitView, reason: str) -> None:
        """Nobody relies on the unit any more, until it has been reset or started again."""
        unit.asked = unit.answer = unit.pulse = None
        if unit.standing in (Standing.ABSENT, Standing.LOST):
            return
        unit.standing, unit.lost_s, unit.reason = Standing.LOST, now, reason
        if self.phase in (Phase.ENDING, Phase.ENDED):
            return
        self._note(now, f"unit {unit.number} is lost: {reason}")
        self.counts["units_lost"] += 1
        if unit.number in self.members:
            self.members -= {unit.number}
            self._broken = f"unit {unit.number} is lost"
            if now - unit.member_since_s > LONGEST_PAUSE_S:
                unit.failures = 0
            unit.member_since_s = 0.0
        if self.plan.restart:
            unit.returns_s = now + self._pause_s(unit)

    def _pause_s(self, unit: UnitView) -> float:
        """Twice as long each time: a unit that breaks again and again costs little."""
        unit.failures += 1
        return min(LONGEST_PAUSE_S, self.plan.fault_timeout_s * 2.0 ** min(unit.failures - 1, 30))

    def _launch(self, now: float, unit: UnitView) -> None:
        unit.join_by_s, unit.returns_s = now + self.plan.launch_timeout_s, None
        if self.plan.launches:
            unit.process = True
            self._out.append(Launch(unit.number))

    def _end_process(self, now: float, unit: UnitView) -> None:
        """Of a unit that does not even answer, so that another can take its place."""
        if unit.returns_s is not None or unit.reset_by_operator:
            unit.returns_s = now
        if unit.process:
            self._out.append(Kill(unit.number))
        elif unit.session:
            self._out.append(Drop(unit.number, unit.session))

    def _send_reset(self, now: float, unit: UnitView) -> None:
        unit.standing, unit.returns_s, unit.heard_s = Standing.JOINING, None, now
        self._ask(now, unit, lambda order: Reset(order=order), self.plan.order_timeout_s)

    def _advance(self, now: float) -> None:
        """Goes on for as long as something can be done without waiting."""
        while self._step(now):
            pass

    def _step(self, now: float) -> bool:
        """One step from phase to phase; whether there was one."""
        match self.phase:
            case Phase.WAITING:
                return self._step_waiting(now)
            case Phase.PREPARING | Phase.CONNECTING | Phase.READY if self._broken or self._ends():
                return self._regroup(now)
            case Phase.STARTING | Phase.RUNNING if self._broken:
                return self._halt(now)
            case Phase.PREPARING | Phase.CONNECTING | Phase.STARTING | Phase.HALTING:
                return not self._unanswered() and self._answered(now)
            case Phase.READY | Phase.RUNNING:
                return self._step_settled(now)
            case Phase.ERROR if self.goal is Goal.ENDED:
                return self._end(now)
            case Phase.ENDING:
                return self._step_ending(now)
        return False

    def _step_waiting(self, now: float) -> bool:
        if self.goal is Goal.ENDED:
            return self._end(now)
        if self.goal is Goal.IDLE:
            self._deadline_s = max(self._deadline_s, now + self.plan.launch_timeout_s)
            return False
        available = self._available()
        if len(available) == self.plan.units or (self._was_ready and self.plan.viable(available)):
            return self._prepare(now, available)
        if now < self._deadline_s:
            return False
        absent = [str(u.number) for u in self.units if u.number not in available]
        self._fail(
            now,
            f"{len(absent)} of {self.plan.units} units did not join within "
            f"{self.plan.launch_timeout_s:g} s: {', '.join(absent[:20])}",
        )
        return True

    def _step_settled(self, now: float) -> bool:
        """All is well; perhaps the operator wants something else, or a unit is back."""
        newcomers = self._available() - self.members
        running = self.phase is Phase.RUNNING
        if newcomers:
            names = ", ".join(str(number) for number in sorted(newcomers))
            self._broken = f"{'unit' if len(newcomers) == 1 else 'units'} {names} can take part"
            return True
        if running and self.goal is not Goal.RUNNING:
            return self._halt(now)
        if not running and self.goal is Goal.RUNNING:
            return self._start(now)
        return not running and self.goal is Goal.IDLE and self._wait(now)

    def _ends(self) -> bool:
        return self.goal is Goal.ENDED

    def _answered(self, now: float) -> bool:
        """All members have answered what this phase asks of them."""
        answers = {unit.number: unit.answer for unit in self._of(self.members) if unit.answer}
        match self.phase:
            case Phase.PREPARING:
                self._connect(now, answers)
            case Phase.CONNECTING:
                self._connected(now, answers)
            case Phase.STARTING:
                self._enter(now, Phase.RUNNING, f"from MEP {self.first_mep}")
                self._was_ready = True
                self._running_since_s = self._progress_s = now
                self._suspected_s = None
                for unit in self._of(self.members):
                    unit.beat_s, unit.pulse = now, None
            case _:
                self._halted(now, answers)
        return True

    def _halt(self, now: float) -> bool:
        self._enter(now, Phase.HALTING, self._broken)
        self._broken = ""
        return self._ask_to_halt(now)

    def _ask_to_halt(self, now: float) -> bool:
        lost = tuple(sorted(set(range(self.plan.units)) - self.members))
        timeout_s = self.plan.fault_timeout_s
        # Longer than the unit takes by its own clock: that others did not drain is its own word.
        return self._ask_members(
            now,
            lambda order: Halt(order=order, lost=lost, timeout_s=timeout_s),
            2 * timeout_s + 2 * self.plan.heartbeat_s,
        )

    def _halted(self, now: float, answers: dict[int, Answer]) -> None:
        for answer in answers.values():
            self.first_mep_seen(answer.next_mep)
        self.first_mep = max(self.first_mep, self._next_mep)
        missing = Counter(n for a in answers.values() for n in a.missing if n in self.members)
        for number, accusers in missing.items():
            if convicted(accusers, len(answers) - 1):
                self._lose(now, self.units[number], "it did not drain")
        self._regroup(now)

    def _regroup(self, now: float) -> bool:
        if self.goal is Goal.ENDED:
            return self._end(now)
        if self.goal is Goal.IDLE:
            return self._wait(now)
        return self._prepare(now, self._available())

    def _prepare(self, now: float, members: frozenset[int]) -> bool:
        self._broken = ""
        self.members = frozenset()
        if not self.plan.viable(members):
            if self.plan.restart and self._was_ready:
                self._note(now, f"too few units are left, {len(members)}: waiting for others")
                return self._wait(now)
            reasons = list(dict.fromkeys(unit.reason for unit in self.units if unit.reason))
            why = f" ({'; '.join(reasons[:3])})" if reasons else ""
            self._fail(now, f"too few units are left, {len(members)} of {self.plan.units}{why}")
            return True
        self.members = members
        self.epoch += 1
        self._enter(now, Phase.PREPARING, f"epoch {self.epoch}, {len(members)} units")
        for unit in self._of(members):
            unit.member_since_s = unit.member_since_s or now
        order = sorted(members)
        return self._ask_members(
            now,
            lambda number: Prepare(order=number, epoch=self.epoch, members=tuple(order)),
            self.plan.order_timeout_s,
        )

    def _connect(self, now: float, answers: dict[int, Answer]) -> None:
        self._enter(now, Phase.CONNECTING)
        addresses = tuple((number, answers[number].address) for number in sorted(answers))
        self._ask_members(
            now,
            lambda order: Connect(
                order=order, addresses=addresses, timeout_s=self.plan.order_timeout_s / 2
            ),
            self.plan.order_timeout_s,
        )

    def _connected(self, now: float, answers: dict[int, Answer]) -> None:
        accusers: Accusers = {}
        for number, answer in answers.items():
            for other in self.members.intersection(answer.missing) - {number}:
                accusers.setdefault(other, set()).add(number)
        if not accusers:
            self._connect_tries = 0
            self._was_ready = True
            self._enter(now, Phase.READY)
            return
        self._connect_tries += 1
        if self._connect_tries > 1:
            self._lose(now, self.units[worst(accusers)], "others cannot connect to it")
        self._broken = "not all units could connect"

    def _start(self, now: float) -> bool:
        self._enter(now, Phase.STARTING)
        return self._ask_members(
            now,
            lambda order: Start(order=order, first_mep=self.first_mep),
            self.plan.order_timeout_s,
        )

    def _wait(self, now: float) -> bool:
        self.members = frozenset()
        self._broken = ""
        self._deadline_s = now + self.plan.launch_timeout_s
        self._enter(now, Phase.WAITING)
        return True

    def _fail(self, now: float, sentence: str) -> None:
        """The run is in error. Members that may build halt, and are available afterwards."""
        if self.phase in BUILDING:
            self._ask_to_halt(now)
        self.members = frozenset()
        self._broken = ""
        self.failure = self.failure or sentence
        self._enter(now, Phase.ERROR, sentence)

    def _end(self, now: float) -> bool:
        self.members = frozenset()
        self._broken = ""
        self._enter(now, Phase.ENDING)
        self._deadline_s = now + 2 * self.plan.fault_timeout_s
        for unit in self.units:
            unit.returns_s = None
            if unit.session:
                self._ask(now, unit, lambda order: Exit(order=order), self.plan.order_timeout_s)
            elif unit.process:
                self._out.append(Kill(unit.number))
        return True

    def _step_ending(self, now: float) -> bool:
        left = [unit for unit in self.units if unit.session or unit.process]
        if not left:
            self._enter(now, Phase.ENDED)
        elif now >= self._deadline_s:
            self._deadline_s = now + 2 * self.plan.fault_timeout_s
            for unit in left:
                self._out.append(
                    Kill(unit.number) if unit.process else Drop(unit.number, unit.session)
                )
        return not left

    # ---- small things ------------------------------------------------------------------------

    def _ask_members(self, now: float, message: Callable[[int], Message], timeout_s: float) -> bool:
        self._deadline_s = now + timeout_s
        for unit in self._of(self.members):
            self._ask(now, unit, message, timeout_s)
        return True

    def _ask(
        self, now: float, unit: UnitView, message: Callable[[int], Message], timeout_s: float
    ) -> None:
        self._order += 1
        order = message(self._order)
        unit.answer = None
        unit.asked = Asked(self._order, now + timeout_s, str(getattr(order, "kind", "")))
        self._out.append(Send(unit.number, unit.session, order))

    def _unanswered(self) -> list[UnitView]:
        return [unit for unit in self._of(self.members) if unit.answer is None]

    def _available(self) -> frozenset[int]:
        return frozenset(u.number for u in self.units if u.standing is Standing.AVAILABLE)

    def _of(self, numbers: Iterable[int]) -> list[UnitView]:
        return [self.units[number] for number in sorted(numbers)]

    def _enter(self, now: float, phase: Phase, why: str = "") -> None:
        self.phase = phase
        if phase is Phase.HALTING:
            self.counts["regroupings"] += self.goal is Goal.RUNNING
        self._note(now, f"{phase}{': ' if why else ''}{why}")

    def _note(self, now: float, text: str) -> None:
        self.counts["run_events"] += 1
        if len(self.events) < MOST_EVENTS:
            self.events.append(RunEvent(now, text))
