"""The run control: who is a member of a run, and what each unit has to do next.

Sans I/O: inputs are what units, processes, the operator and the clock say; outputs are orders to
units and to whoever starts processes. A run is a sequence of epochs, each with a fixed set of
members. Whatever breaks leads to the same: the members that are left halt, and prepare, connect and
start with the next epoch.
"""

from daqloom._engine import Counters
from daqloom.measure.messages import Answer, Configure, Heartbeat, Pulse, Renew
from daqloom.measure.outputs import About, Drop, Send
from daqloom.measure.regrouping import Regrouping
from daqloom.measure.states import Goal, Phase, Refused, Standing, State
from daqloom.measure.told import causes
from daqloom.measure.unit_view import Accusers, UnitView, accusers_among, convicted, worst

MOST_FRUITLESS = 3
"""Most regroupings in a row after none of which anything was built."""
HEALTHY_TIMEOUTS = 10
"""Fault timeouts without trouble after which new trouble is counted from 0."""
ASKING = (Phase.PREPARING, Phase.CONNECTING, Phase.STARTING, Phase.HALTING)
"""Phases that end when all members have answered an order."""
LEASING = (Phase.STARTING, Phase.RUNNING, Phase.HALTING)
"""Phases in which members answer MEPs."""


class RunControl(Regrouping):
    """The state of a run. Each input has the time `now`, in seconds of a monotonic clock."""

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

    def counted(self, number: int, counters: Counters) -> None:
        """Take in the last counters of a process, which come from outside its reports."""
        self._read(self.units[number], counters)
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

    def hold(self, number: int, held: bool) -> None:
        """Take in that the host of a unit is down on purpose, or is no longer."""
        self.units[number].held = held

    def injected(self, now: float, text: str) -> None:
        """Log that something is broken on purpose, or mended."""
        self._note(now, text, About.FAULT)

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

    def _on_answer(self, now: float, unit: UnitView, answer: Answer) -> Refused | None:
        if answer.order > self._order:
            return Refused.UNASKED
        if unit.asked is None or answer.order != unit.asked.number:
            return None  # to an order that another has replaced
        what, unit.asked, unit.state = unit.asked.what, None, answer.state
        self._read(unit, answer.counted)
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
        self._read(unit, report.counted)
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
        lost = unit.tally.totals.meps_not_written or 0
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
            if unit.held or unit.returns_s is None or now < unit.returns_s:
                continue
            if unit.standing is Standing.ABSENT and not unit.process:
                self._launch(now, unit)
            elif unit.standing is Standing.LOST and unit.heard_s > unit.lost_s and not unit.asked:
                self._send_reset(now, unit)
