"""What a run knows of its units, and how a unit is lost and brought back."""

from collections import Counter
from collections.abc import Callable, Iterable

from daqloom._engine import Counters
from daqloom.measure.leases import Leases
from daqloom.measure.ledger import Balance, Ledger
from daqloom.measure.messages import Message, Reset
from daqloom.measure.outputs import About, Drop, Kill, Launch, Output, RunEvent, Send
from daqloom.measure.plan import Plan
from daqloom.measure.states import Goal, Phase, Standing
from daqloom.measure.unit_view import Asked, UnitView

MOST_EVENTS = 10_000
"""Most entries of a run's log; later ones are only counted."""
LONGEST_PAUSE_S = 60.0
"""Longest pause before a unit that is lost repeatedly comes back (s)."""


class RunState:
    """The members, units and outputs of a run."""

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

    @property
    def next_mep(self) -> int:
        """The first MEP not answered by a builder unit, as far as they have reported."""
        return self._leases.next_mep

    def balance(self) -> Balance:
        """Return the fates of the run's MEPs that no counter shows."""
        return self._ledger.balance(self.next_mep, self._totals)

    def balance_of_ended(self) -> Balance:
        """Return those of the MEPs of epochs that another has followed."""
        return self._ledger.ended(self._totals)

    def _read(self, unit: UnitView, counters: Counters) -> None:
        unit.tally.read(counters)
        self._leases.answered(counters.next_mep or 0)

    def _totals(self, number: int) -> Counters:
        return self.units[number].tally.totals

    def _lose(self, now: float, unit: UnitView, reason: str) -> None:
        """Declare the unit lost, until it has been reset or started again."""
        unit.asked = unit.answer = unit.pulse = None
        if unit.standing in (Standing.ABSENT, Standing.LOST):
            return
        unit.standing, unit.lost_s, unit.reason = Standing.LOST, now, reason
        if self.phase in (Phase.ENDING, Phase.ENDED):
            return
        self._note(now, f"unit {unit.number} is lost: {reason}", About.UNIT, lost=unit.number)
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

    def _ask(
        self, now: float, unit: UnitView, message: Callable[[int], Message], timeout_s: float
    ) -> None:
        self._order += 1
        order = message(self._order)
        unit.answer = None
        unit.asked = Asked(self._order, now + timeout_s, str(getattr(order, "kind", "")))
        self._out.append(Send(unit.number, unit.session, order))

    def _of(self, numbers: Iterable[int]) -> list[UnitView]:
        return [self.units[number] for number in sorted(numbers)]

    def _enter(self, now: float, phase: Phase, why: str = "") -> None:
        self.phase = phase
        if phase is Phase.HALTING:
            self.counts["regroupings"] += self.goal is Goal.RUNNING
        about = About.FAILURE if phase is Phase.ERROR else About.COURSE
        self._note(now, f"{phase}{': ' if why else ''}{why}", about)

    def _note(
        self, now: float, text: str, about: About = About.COURSE, lost: int | None = None
    ) -> None:
        self.counts["run_events"] += 1
        if len(self.events) < MOST_EVENTS:
            members = len(self.members)
            self.events.append(RunEvent(now, text, about, self.phase, members, lost))
