"""The run control: who is a member of a run, and what each unit has to do next.

Sans I/O: inputs are what units, processes, the operator and the clock say; outputs are orders to
units and to whoever starts processes. A run is a sequence of epochs, each with a fixed set of
members. Whatever breaks leads to the same: the members that are left halt, and prepare, connect and
start with the next epoch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from daqloom.measure.accusers import Accusers, accusers_among, convicted, worst
from daqloom.measure.leases import Leases
from daqloom.measure.ledger import Balance, Ledger
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
    Renew,
    Reset,
    Start,
)
from daqloom.measure.node import NEXT_MEP
from daqloom.measure.outputs import About, Drop, Kill, Launch, Output, RunEvent, Send
from daqloom.measure.plan import Plan
from daqloom.measure.recorded import NOT_WRITTEN, causes
from daqloom.measure.refused import Refused
from daqloom.measure.states import Goal, Phase, Standing, State
from daqloom.measure.unit_view import Asked, UnitView

MOST_EVENTS = 10_000
"""Most entries of a run's log; later ones are only counted."""
LONGEST_PAUSE_S = 60.0
"""Longest pause before a unit that is lost repeatedly comes back (s)."""
MOST_FRUITLESS = 3
"""Most regroupings in a row after none of which anything was built."""
HEALTHY_TIMEOUTS = 10
"""Fault timeouts without trouble after which new trouble is counted from 0."""

ASKING = (Phase.PREPARING, Phase.CONNECTING, Phase.STARTING, Phase.HALTING)
"""Phases that end when all members have answered an order."""
LEASING = (Phase.STARTING, Phase.RUNNING, Phase.HALTING)
"""Phases in which members answer MEPs."""
BUILDING = (Phase.STARTING, Phase.RUNNING)
"""Phases in which data may be in flight."""


class RunControl:
    """The state of a run. Each input has the time `now`, in seconds of a monotonic clock."""

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
        """Why the members have to regroup; empty: they do not."""
        self._was_ready = False
        self._deadline_s = now + plan.launch_timeout_s
        self._finish_by_s = now
        self._ticked_s = now
        self._running_since_s = now
        self._progress_s = now
        self._suspected_s: float | None = None
        self._has_built = False
        """In this epoch."""
        self._troubles = self._fruitless = 0
        self._connect_tries = 0
        self._ledger = Ledger(plan.takes_turns)
        self._leases = Leases(plan, now)

    def take(self) -> list[Output]:
        """Return the outputs since the last call, in order."""
        out, self._out = self._out, []
        return out

    # ---- inputs ------------------------------------------------------------------------------

    def launch(self, now: float) -> None:
        """Start all processes, or await those of a run whose units are started by hand."""
        for unit in self.units:
            self._launch(now, unit)

    def is_free(self, unit: int) -> bool:
        """Return whether a process may join as this unit: no other one in use has."""
        return self.goal is not Goal.ENDED and self.units[unit].standing in (
            Standing.ABSENT,
            Standing.LOST,
        )

    def joined(self, now: float, number: int, session: int) -> None:
        """Take in a process that has joined as a unit that `is_free`."""
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
                lease_s=self.plan.fault_timeout_s,
                trace_stages=self.plan.trace_stages,
                scenario=dict(self.plan.scenario),
            ),
            self.plan.launch_timeout_s,
        )
        self._advance(now)

    def reported(
        self, now: float, number: int, session: int, report: Heartbeat | Answer
    ) -> Refused | None:
        """Take in a report of a unit. Returns why it is refused, or None."""
        unit = self.units[number]
        if session != unit.session:
            return Refused.SESSION
        unit.heard_s, unit.heard = now, report.number
        if isinstance(report, Answer):
            refusal = self._on_answer(now, unit, report)
        else:
            refusal = self._on_heartbeat(now, unit, report)
            if refusal is None and self.phase in LEASING and number in self.members:
                self._renew(now, unit)
        self._advance(now)
        return refusal

    def counted(self, number: int, counters: Mapping[str, int | float], *, final: bool) -> None:
        """Take in counters of a unit that come from outside a report. `final`: no more will come
        from this process."""
        unit = self.units[number]
        self._read(unit, counters)
        if final and counters:
            self._leases.read(number)

    def left(self, now: float, number: int, session: int) -> None:
        """Take in that the connection of a unit has ended."""
        unit = self.units[number]
        if session != unit.session:
            return
        unit.session = 0
        self._lose(now, unit, "its connection ended")
        unit.standing = Standing.ABSENT
        unit.join_by_s = now + self.plan.launch_timeout_s
        self._advance(now)

    def exited(self, now: float, number: int, how: str) -> None:
        """Take in that a unit's process that we started has ended: `how`, such as "exit code 1"."""
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
        """Take in the goal that the operator sets."""
        if self.goal is Goal.ENDED:
            return
        self._note(now, f"the operator wants the run {goal}")
        self.goal = goal
        for unit in self.units:
            unit.told_not_written = False
        if self.phase is Phase.ERROR and goal in (Goal.READY, Goal.RUNNING):
            self.failure, self._troubles, self._fruitless = "", 0, 0
            self._wait(now)
        self._advance(now)

    def reset(self, now: float, number: int) -> None:
        """Bring a unit back for the operator, whatever its state."""
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
        """Take in that time has passed; to be called a few times per heartbeat."""
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
        self._read(unit, answer.counters)
        if what == "prepare":
            self._leases.prepared(unit.number, unit.session)
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
        if pulse.epoch > self.epoch:
            return Refused.EPOCH
        self._read(unit, report.counters)
        self._look_at_files(now, unit)
        self._leases.answered(pulse.next_mep)
        if report.ended is not None:
            self._leases.last_words(unit.number, report.ended)
            return None
        if (
            unit.state in (State.READY, State.RUNNING)
            and unit.number in self.members
            and unit.asked is None
            and pulse.epoch != self.epoch
        ):
            return Refused.EPOCH
        if unit.standing is Standing.LOST:
            return None if pulse.epoch == self.epoch else Refused.EPOCH
        if pulse.state is State.ERROR and unit.standing is Standing.AVAILABLE:
            unit.state = pulse.state
            self._lose(now, unit, pulse.failure or "it reports an error")
        elif unit.number in self.members and pulse.epoch == self.epoch:
            self._progress(now, unit, pulse)
        return None

    def _look_at_files(self, now: float, unit: UnitView) -> None:
        lost = int(unit.tally.totals.get(NOT_WRITTEN, 0))
        is_news = lost > unit.not_written and not unit.told_not_written
        unit.not_written = lost
        if not is_news:
            return
        unit.told_not_written = True
        told = f"unit {unit.number} cannot write what it builds: {causes(unit.tally.totals)}"
        if self.plan.stops_when_unwritable and self.goal is Goal.RUNNING:
            self.goal = Goal.READY
            told += "; the run stops"
        self._note(now, told, About.UNIT)

    @property
    def next_mep(self) -> int:
        """The first MEP not answered by a builder unit, as far as they have reported."""
        return self._leases.next_mep

    def balance(self) -> Balance:
        """Return the fates of the run's MEPs that no counter shows."""
        return self._ledger.balance(self.next_mep, self._totals)

    def _read(self, unit: UnitView, counters: Mapping[str, int | float]) -> None:
        unit.tally.read(counters)
        self._leases.answered(int(counters.get(NEXT_MEP, 0)))

    def _totals(self, number: int) -> Mapping[str, int | float]:
        return self.units[number].tally.totals

    def _renew(self, now: float, unit: UnitView) -> None:
        mep_end = self._leases.renew(now, unit.number)
        order = Renew(epoch=self.epoch, mep_end=mep_end, heard=unit.heard)
        self._out.append(Send(unit.number, unit.session, order))

    def _progress(self, now: float, unit: UnitView, pulse: Pulse) -> None:
        before, unit.pulse = unit.pulse, pulse
        if before is None or pulse.beats is None or pulse.beats != before.beats:
            unit.beat_s = now
        if before is None or pulse.steps is None or pulse.steps != before.steps or pulse.waits:
            self._progress_s = now
        if before and (before.steps or 0) < (pulse.steps or 0):
            self._has_built = True
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
                self._note(now, f"unit {unit.number} did not join in time", About.UNIT)
                self._end_process(now, unit)

    def _watch_members(self, now: float) -> None:
        timeout = self.plan.fault_timeout_s
        for unit in self._of(self.members):
            if now - unit.beat_s > timeout:
                self._lose(now, unit, "its data thread is stuck")
        if self._broken:
            return
        if now - self._running_since_s > HEALTHY_TIMEOUTS * timeout:
            self._troubles = 0
        if self._suspected_s is not None and now - self._suspected_s > timeout / 2:
            self._on_suspicion(now)
        elif now - self._progress_s > timeout:
            self._on_trouble(now, "event building has stalled", self._accusers())

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
                self._lose(now, self.units[number], f"unreachable according to {by}")
        else:
            pairs = sorted({(min(n, m), max(n, m)) for n, by in accusers.items() for m in by})
            told = ", ".join(f"{n} and {m}" for n, m in pairs[:4])
            self._on_trouble(now, f"a connection is cut, between {told}", accusers)

    def _on_trouble(self, now: float, what: str, accusers: Accusers) -> None:
        """React to a fault with all members alive: new connections first, then fewer members."""
        self._troubles += 1
        self._fruitless = 0 if self._has_built else self._fruitless + 1
        if self._troubles > 1 and accusers:
            self._lose(
                now, self.units[worst(accusers)], f"{what}, and new connections did not help"
            )
        elif self._fruitless >= MOST_FRUITLESS:
            self._fail(now, f"{what}, and regrouping {MOST_FRUITLESS} times did not help")
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
        """Declare the unit lost, until it has been reset or started again."""
        unit.asked = unit.answer = unit.pulse = None
        if unit.standing in (Standing.ABSENT, Standing.LOST):
            return
        unit.standing, unit.lost_s, unit.reason = Standing.LOST, now, reason
        if self.phase in (Phase.ENDING, Phase.ENDED):
            return
        self._note(now, f"unit {unit.number} is lost: {reason}", About.UNIT)
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
        """Return the pause before a unit comes back, which doubles with each failure."""
        unit.failures += 1
        return min(LONGEST_PAUSE_S, self.plan.fault_timeout_s * 2.0 ** min(unit.failures - 1, 30))

    def _launch(self, now: float, unit: UnitView) -> None:
        unit.join_by_s, unit.returns_s = now + self.plan.launch_timeout_s, None
        if self.plan.launches:
            unit.process = True
            self._out.append(Launch(unit.number))

    def _end_process(self, now: float, unit: UnitView) -> None:
        """Kill the process of a unit that does not answer, so that another can take its place."""
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
        """Take steps for as long as one is possible without waiting."""
        while self._step(now):
            pass

    def _step(self, now: float) -> bool:
        """Take one step from phase to phase; return whether there was one."""
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
        """Take a step in a settled phase: to another goal, or to take in units that are back."""
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
        """Take the step after all members have answered the order of this phase."""
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
                self._suspected_s, self._has_built = None, False
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
        if self.members:
            self._leases.left_out(self.members)
        timeout_s = self.plan.fault_timeout_s
        # Longer than the unit takes by its own clock: that others did not drain is its own word.
        return self._ask_members(
            now,
            lambda order: Halt(order=order, lost=lost, timeout_s=timeout_s),
            2 * timeout_s + 2 * self.plan.heartbeat_s,
        )

    def _halted(self, now: float, answers: dict[int, Answer]) -> None:
        for answer in answers.values():
            self._leases.answered(answer.next_mep)
        self.first_mep = self.next_mep
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
        first = self._leases.first_free()
        if first > self.next_mep:
            self._note(
                now,
                f"MEPs {self.next_mep} to {first - 1} are skipped: units of unknown progress may "
                "have answered them",
            )
        self.first_mep = first
        members = self._of(self.members)
        self._leases.begin(now, self.epoch, first, {unit.number: unit.session for unit in members})
        builders = [u for u in self.plan.builders or range(self.plan.units) if u in self.members]
        self._ledger.begin(first, builders, self._totals)
        self._enter(now, Phase.STARTING)
        self._deadline_s = now + self.plan.order_timeout_s
        for unit in members:
            self._ask(now, unit, partial(self._start_order, unit), self.plan.order_timeout_s)
        return True

    def _start_order(self, unit: UnitView, order: int) -> Start:
        return Start(
            order=order,
            first_mep=self.first_mep,
            mep_end=self._leases.mep_end(unit.number),
            heard=unit.heard,
        )

    def _wait(self, now: float) -> bool:
        self.members = frozenset()
        self._broken = ""
        self._deadline_s = now + self.plan.launch_timeout_s
        self._enter(now, Phase.WAITING)
        return True

    def _fail(self, now: float, sentence: str) -> None:
        """Put the run in error. Members that may be building halt, and are available afterwards."""
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
        self._finish_by_s = now + self.plan.finish_timeout_s
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
                if now < self._finish_by_s and now - unit.heard_s <= self.plan.fault_timeout_s:
                    continue  # it is finishing its files
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
        about = About.FAILURE if phase is Phase.ERROR else About.COURSE
        self._note(now, f"{phase}{': ' if why else ''}{why}", about)

    def _note(self, now: float, text: str, about: About = About.COURSE) -> None:
        self.counts["run_events"] += 1
        if len(self.events) < MOST_EVENTS:
            self.events.append(RunEvent(now, text, about))
