"""The way of a run from phase to phase: members prepare, connect, start and halt."""

from collections import Counter
from collections.abc import Callable
from functools import partial

from daqloom.measure.messages import Answer, Connect, Exit, Halt, Message, Prepare, Start
from daqloom.measure.outputs import Drop, Kill
from daqloom.measure.run_state import RunState
from daqloom.measure.states import Goal, Phase, Standing
from daqloom.measure.unit_view import Accusers, UnitView, convicted, worst

BUILDING = (Phase.STARTING, Phase.RUNNING)
"""Phases in which data may be in flight."""


class Regrouping(RunState):
    """A run whose phases follow one another as far as the answers of its members allow."""

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

    def _ask_members(self, now: float, message: Callable[[int], Message], timeout_s: float) -> bool:
        self._deadline_s = now + timeout_s
        for unit in self._of(self.members):
            self._ask(now, unit, message, timeout_s)
        return True

    def _unanswered(self) -> list[UnitView]:
        return [unit for unit in self._of(self.members) if unit.answer is None]

    def _available(self) -> frozenset[int]:
        return frozenset(u.number for u in self.units if u.standing is Standing.AVAILABLE)
