"""Requests of an operator to a run: refused in one sentence, or carried out, after their hooks."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from daqloom._engine import Counters, RunControl
from daqloom.base.words import join_names
from daqloom.control.counters.metrics import Part
from daqloom.control.hooks.document import Hook, Transition
from daqloom.control.hooks.process import Values
from daqloom.control.hooks.queue import Hooks
from daqloom.control.persistence.store import MOST_SETUPS, FormerSetup, StoredSetup
from daqloom.control.plan import Plan
from daqloom.control.protocol import wire
from daqloom.control.protocol.snapshot import Balance
from daqloom.control.protocol.states import Goal, Phase
from daqloom.control.record.meter import Meter
from daqloom.control.run_log import RunEvent
from daqloom.control.run_numbers import RunNumbers
from daqloom.control.status import Request
from daqloom.results.errors import MeasureError
from daqloom.scenario.errors import ScenarioError

GOALS: dict[str, Goal] = {
    "configure": Goal.READY,
    "start": Goal.RUNNING,
    "stop": Goal.READY,
    "exit": Goal.ENDED,
}
"""Goals of an operator's requests."""
BUSY = frozenset({Phase.STARTING, Phase.RUNNING, Phase.HALTING})
"""Phases in which data may be in flight."""
Replan = Callable[[Plan, tuple[str, ...]], Plan]
"""Returns a plan with some keys of its scenario changed, `("event.rate=20 kHz",)`. Raises
ScenarioError for keys that need new processes."""


@dataclass(frozen=True)
class SteeringOptions:
    """Options of the steering of a run."""

    hooks: tuple[Hook, ...] = ()
    hook_folder: Path = Path()
    """Folder in which hooks start."""
    numbers: RunNumbers | None = None
    """Registry of run numbers; None: only hooks give numbers."""
    replan: Replan | None = None
    """Reader of new values; None: the setup stays."""


class Steering(ABC):
    """Operator's side of a run control: requests, goals, run numbers and hooks."""

    run: RunControl
    plan: Plan
    name: str
    meter: Meter

    def __init__(self, options: SteeringOptions) -> None:
        self._options = options
        self._hooks = Hooks(options.hooks, options.hook_folder, self.remark)
        self._task: asyncio.Task[None] | None = None
        """Preparation of the last transition."""
        self._cancelled: set[asyncio.Task[None]] = set()
        self._transition: Transition = "configure"
        self._awaited: set[Transition] = set()
        """Transitions under way, whose hooks follow."""
        self._is_started = False
        """Whether the run has been running since its start and has not been stopped."""
        self._phase = Phase.WAITING
        self._replaced = 0
        """Packing of a setup that was replaced and whose counters are not final."""
        self._former: list[Part] = []
        """Sums at the end of each former setup."""
        self.setup: StoredSetup | None = None
        """The setup as it is stored, after a change."""
        self.requests = 0
        """Number of requests that change the run."""
        self.refusal = ""
        """Reason why the last request was refused; empty if it was not."""

    @abstractmethod
    def now_s(self) -> float:
        """Return the time of the run control (s)."""

    @abstractmethod
    def _act(self) -> None:
        """Carry out the outputs of the run control."""

    def want(self, goal: Goal) -> None:
        """Set the goal of the run."""
        self.run.want(self.now_s(), goal)
        self._act()

    def reset(self, unit: int) -> None:
        """Bring a unit back."""
        self.run.reset(self.now_s(), unit)
        self._act()

    def remark(self, text: str) -> None:
        """Log a step of the operator's control."""
        self.run.remark(self.now_s(), text)
        self._act()

    def reconfigure(self, plan: Plan) -> None:
        """Configure all units anew, without new processes. Raises ValueError while the run is not
        stopped. Numbers of events go on beyond all former ones."""
        first_event = self.run.first_free * self.plan.packing
        self.run.reconfigure(self.now_s(), plan.rules, -(-first_event // plan.packing))
        self._replaced = self._replaced or self.plan.packing
        self.plan = plan.model_copy(update={"run_number": self.plan.run_number})
        self._keep_setup()
        self._act()

    def continue_setups(self, setup: StoredSetup) -> None:
        """Continue the accounts and the run number of a former run control."""
        self.setup = setup
        self._replaced = setup.replaced
        self.plan = self.plan.model_copy(update={"run_number": setup.run_number})
        self._former = [
            Part(
                each.packing,
                {unit: Counters(counters) for unit, counters in each.counted.items()},
                wire.record(each.balance),
            )
            for each in setup.former
        ]

    def _keep_setup(self) -> None:
        """Let the present setup be stored with the next state."""
        self.setup = StoredSetup(
            scenario=self.plan.scenario,
            run_number=self.plan.run_number,
            replaced=self._replaced,
            former=tuple(
                FormerSetup(
                    packing=each.packing,
                    counted={unit: counted.numbers for unit, counted in each.counted.items()},
                    balance=Balance.model_validate(each.balance),
                )
                for each in self._former[-MOST_SETUPS:]
            ),
        )

    def totals(self) -> dict[int, Counters]:
        """Return the counters of each unit until now."""
        return {unit.number: unit.tally.totals for unit in self.run.units}

    def parts(self, *, has_ended: bool = True) -> list[Part]:
        """Return what the run has done under each setup; `has_ended`: with its last epoch."""
        ends = [*self._former, self._sums(self.plan.packing, has_ended)]
        return [end.since(begin) for begin, end in zip([None, *self._former], ends, strict=True)]

    def _sums(self, packing: int, has_ended: bool) -> Part:
        balance = self.run.balance() if has_ended else self.run.balance_of_ended()
        return Part(packing, self.totals(), balance)

    @property
    def pending(self) -> str:
        """Transition that waits for its hooks or its new setup; empty: none."""
        return self._transition if self._task and not self._task.done() else ""

    def change(self, request: Request) -> None:
        """Carry out a request that changes the run, or set the refusal. The request replaces an
        earlier one that still waits for its hooks."""
        self.requests += 1
        self.refusal = self._objection(request)
        if self.refusal:
            return
        match request.command:
            case "reset" if request.unit is not None:
                self.reset(request.unit)
            case "include":
                self.run.include(self.now_s(), set(request.units), request.sources)
                self._act()
            case "exclude":
                try:
                    self.run.exclude(self.now_s(), set(request.units), request.sources)
                    self._act()
                except ValueError as error:
                    numbers = join_names([str(unit) for unit in request.units])
                    self.refusal = f"units {numbers} cannot be excluded: {error}"
            case "reschedule":
                try:
                    self.run.reschedule(self.now_s(), request.readouts, request.builders)
                    self._act()
                except ValueError as error:
                    self.refusal = str(error)
            case "configure" | "start" | "stop" | "exit":
                self._begin(request.command, request.settings)

    def observe(self, events: Sequence[RunEvent]) -> None:
        """Run the hooks after transitions that the run has made, and after events of its log."""
        if self._replaced and self.run.phase is Phase.STARTING:
            self._former.append(self._sums(self._replaced, has_ended=False))
            self.meter.packing, self._replaced = self.plan.packing, 0
            self._keep_setup()
        for event in events:
            if event.lost is not None:
                self._after("lost", unit=event.lost, text=event.text)
            if event.phase is not self._phase:
                self._phase = event.phase
                self._enter(event)

    async def end_hooks(self, *, at_once: bool) -> None:
        """Wait for hooks that run, each up to its time limit, or kill them at once."""
        self._cancel()
        await asyncio.gather(*self._cancelled, return_exceptions=True)
        await self._hooks.end(at_once=at_once)

    # ---- requests ----------------------------------------------------------------------------

    def _objection(self, request: Request) -> str:
        """Return why a request is refused at once; empty: it is not."""
        run, command = self.run, request.command
        units = run.plan.units
        for unit in (*request.units, *([] if request.unit is None else [request.unit])):
            if unit >= units:
                return f"there is no unit {unit}; the run has units 0 to {units - 1}"
        if run.goal is Goal.ENDED and command != "exit":
            return f"the run is {run.phase} and takes no {command}; start a new run"
        is_started = run.goal is Goal.RUNNING and run.phase is not Phase.ERROR
        if command == "configure" and (is_started or run.phase in BUSY):
            return f"the run is {run.phase} and cannot be configured; stop it first"
        if command == "stop" and run.goal is Goal.IDLE:
            return f"the run is {run.phase} and has not been started, so that it cannot stop"
        if command == "reschedule" and not self.plan.rules.takes_turns:
            return "the run has no phases of linear shift, so that it takes no other schedule"
        if request.settings and self._options.replan is None:
            return "this run has no scenario, so that it takes no new values"
        return ""

    def _begin(self, command: Transition, settings: tuple[str, ...]) -> None:
        self._cancel()
        run = self.run
        steps = [command]
        if command == "start" and run.phase in (Phase.WAITING, Phase.ERROR):
            steps = ["configure", "start"]
        if (command, run.goal) == ("start", Goal.RUNNING) and run.phase is not Phase.ERROR:
            steps = []  # it is started already
        self._transition = command
        if settings or any(self._hooks.has_before(step) for step in steps):
            self._task = asyncio.create_task(self._prepare(command, steps, settings))
        else:
            try:
                self._make(command, steps, self._number(steps), None)
            except MeasureError as error:
                self._refuse(str(error))

    def _cancel(self) -> None:
        """End the preparation of a transition, with its hook."""
        if self._task and self._task.cancel():
            self._cancelled.add(self._task)
            self._task.add_done_callback(self._cancelled.discard)
        self._task = None

    async def _prepare(
        self, command: Transition, steps: Sequence[Transition], settings: tuple[str, ...]
    ) -> None:
        """Read the new setup and run the hooks before a transition, then make it."""
        plan: Plan | None = None
        try:
            if settings and (replan := self._options.replan):
                plan = await asyncio.to_thread(replan, self.plan, settings)
            number = self._number(steps)
            for step in steps:
                values = await self._hooks.before(step, self._values(step, run_number=number))
                if (given := int(values["run_number"])) != number:
                    numbers = self._options.numbers
                    number = numbers.take(given) if numbers else given
            self._make(command, steps, number, plan)
        except (MeasureError, ScenarioError, OSError, ValueError) as error:
            self._refuse(str(error))

    def _number(self, steps: Sequence[Transition]) -> int:
        """Return the number of a run that starts, otherwise that of the last run."""
        numbers = self._options.numbers
        return numbers.take() if numbers and "start" in steps else self.plan.run_number

    def _make(
        self, command: Transition, steps: Sequence[Transition], number: int, plan: Plan | None
    ) -> None:
        is_new = {"configure": plan or self._phase is not Phase.READY, "start": True}
        self._awaited |= {step for step in steps if is_new.get(step)}
        if plan:
            self.reconfigure(plan)
        if "start" in steps and number:
            self.plan = self.plan.model_copy(update={"run_number": number})
            self._keep_setup()
            self.remark(f"run {number} starts")
        if not plan:
            self.want(GOALS[command])

    def _refuse(self, sentence: str) -> None:
        self.refusal = sentence[:1000]
        self.remark(f"{self._transition} is refused: {self.refusal}")

    # ---- hooks -------------------------------------------------------------------------------

    def _enter(self, event: RunEvent) -> None:
        """React to a new phase."""
        phase, goal = event.phase, self.run.goal
        if phase in (Phase.READY, Phase.RUNNING):
            self._finish("configure")
        if phase is Phase.RUNNING and self._finish("start"):
            self._is_started = True
        is_stopped = phase is Phase.READY and goal is not Goal.RUNNING
        if self._is_started and (is_stopped or phase is Phase.ENDED):
            self._is_started = False
            self._after("stop")
        if phase is Phase.ENDED:
            self._after("exit")
        if phase is Phase.ERROR:
            self._is_started = False
            self._awaited.clear()
            self._after("error", text=event.text)

    def _finish(self, transition: Transition) -> bool:
        """Run the hooks after a transition that was awaited; return whether it was."""
        if transition not in self._awaited:
            return False
        self._awaited.discard(transition)
        self._after(transition)
        return True

    def _after(self, transition: Transition, **more: str | int) -> None:
        self._hooks.after(transition, self._values(transition, **more))

    def _values(self, transition: Transition, **more: str | int) -> Values:
        """Return the values that a hook gets, a flat object."""
        run = self.run
        return {
            "transition": transition,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "run": self.plan.run,
            "scenario": self.name,
            "run_number": self.plan.run_number,
            "phase": str(run.phase),
            "epoch": run.epoch,
            "members": len(run.members),
            "units": run.plan.units,
            **more,
        }
