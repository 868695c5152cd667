"""Breaks things during a measurement, on the loop of its run control: carries out the plan.

A slow unit is held (SIGSTOP, SIGCONT) for `factor` - 1 times as long as it has just used its
processor, in slices of some milliseconds: what it waits for takes as long as before. A quota of its
processor (cgroup cpu.max) would not slow a unit that needs less than the quota.
"""

import asyncio
import signal
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from itertools import groupby

from daqloom._engine import Balance
from daqloom.control.control import Control
from daqloom.control.metrics import accounts
from daqloom.control.run_log import RunEvent
from daqloom.control.states import Goal, Phase, Standing
from daqloom.machine.namespaces import Namespaces
from daqloom.measure.fault_plan import Condition, Planned, agenda, condition
from daqloom.results.course import LOST, Break
from daqloom.scenario.schema.faults import KINDS

SLICE_S = 0.005
"""How long a slow unit runs before it is held."""
WORDS = {"down": "is killed", "stopped": "is stopped", "slow": "is slow"}
"""What happens to a unit."""


class Injector:
    """The faults of one run; `packing` events make a MEP, `namespaces` are those of its units."""

    def __init__(
        self,
        control: Control,
        plan: list[Planned],
        packing: int,
        namespaces: Namespaces | None = None,
    ) -> None:
        self.plan = plan
        self._namespaces = namespaces
        self._control, self._packing = control, packing
        self._breaks: list[Break] = []
        """Those that have begun, in this order, by the clock."""
        self._broken: dict[int, list[Planned]] = defaultdict(list)
        """By unit."""
        self._conditions: dict[int, Condition] = {}
        self._of: dict[Planned, Break] = {}
        self._last: dict[int, Break] = {}
        """The last break of each unit."""
        self._slowing: dict[int, asyncio.Task[None]] = {}
        self._phase = Phase.WAITING
        self._began_s = 0.0
        self._course: asyncio.Task[None] | None = None

    def begin(self, now: float) -> None:
        """Begin to break things; the times of the plan count from `now`."""
        self._began_s = now
        self._course = asyncio.create_task(self._run())

    async def end(self) -> None:
        """Break nothing more, and mend all. Raises MeasureError if a link could not be broken."""
        course, self._course = self._course, None
        if course:
            course.cancel()
            with suppress(asyncio.CancelledError):
                await course
        for unit, things in self._broken.items():
            things.clear()
            await self._apply(unit)

    def since(self, began_s: float) -> list[Break]:
        """Return what has broken, with times since `began_s`."""

        def shifted(time_s: float | None) -> float | None:
            return None if time_s is None else time_s - began_s

        return [
            replace(
                each,
                begin_s=each.begin_s - began_s,
                detected_s=shifted(each.detected_s),
                end_s=shifted(each.end_s),
            )
            for each in self._breaks
        ]

    def on_event(self, event: RunEvent) -> None:
        """Take in an entry of the run's log: a unit is declared lost, or all regroup because
        something between them is broken."""
        known = [self._last[event.lost]] if event.lost in self._last else []
        begins_to_halt = event.phase is Phase.HALTING and self._phase is not Phase.HALTING
        if begins_to_halt and self._is_trouble():
            known += [each for each in self._last.values() if KINDS[each.what].breaks == "links"]
        self._phase = event.phase
        late_s = 2 * self._control.run.plan.fault_timeout_s
        for each in known:
            over = each.end_s is not None and event.time_s > each.end_s + late_s
            if each.detected_s is None and not over:
                each.detected_s = event.time_s

    def _is_trouble(self) -> bool:
        """Return whether the members halt for no better reason: that the run ends, or that a unit
        comes back."""
        run = self._control.run
        return run.goal is Goal.RUNNING and all(
            unit.standing is not Standing.AVAILABLE or unit.number in run.members
            for unit in run.units
        )

    def events_lost(self, balance: Balance) -> int:
        """Return how many events were not built whole until now."""
        totals = {unit.number: unit.tally.totals for unit in self._control.run.units}
        # Losses in sinks, of events that were built, are not counted: "user".
        ends = accounts(totals, balance, 0, self._packing, "user")
        return sum(ends[fate] for fate in LOST)

    async def _run(self) -> None:
        for due_s, changes in groupby(agenda(self.plan), lambda change: change.time_s):
            await asyncio.sleep(max(0.0, self._began_s + due_s - self._control.now_s()))
            now = self._control.now_s()
            # Of the MEPs in flight nobody knows yet.
            lost = self.events_lost(self._control.run.balance_of_ended())
            for change in changes:
                if change.begins:
                    self._break(change.planned, now, lost)
                else:
                    self._mend(change.planned, now)
                for unit in change.planned.thing.units:
                    await self._apply(unit)

    def _break(self, planned: Planned, now: float, lost: int) -> None:
        fault, thing = planned.fault, planned.thing
        views = [self._control.run.units[unit] for unit in thing.units]
        is_lost = all(view.standing in (Standing.ABSENT, Standing.LOST) for view in views)
        if is_lost and fault.what == "unit" and fault.how != "slow":
            self._tell(planned, "is lost already")
            return
        broken = Break(planned.name, fault.what, thing.which, fault.how, now, lost)
        self._breaks.append(broken)
        self._of[planned] = broken
        self._last |= dict.fromkeys(thing.units, broken)
        self._tell(planned, WORDS[fault.how] if fault.what == "unit" else f"is {fault.how}")
        for unit in thing.units:
            if fault.what == "unit" and fault.how == "down":
                self._control.processes.kill(unit)
            else:
                self._broken[unit].append(planned)

    def _mend(self, planned: Planned, now: float) -> None:
        for unit in planned.thing.units:
            if planned not in self._broken[unit]:
                return
            self._broken[unit].remove(planned)
        self._of[planned].end_s = now
        self._tell(planned, "goes on" if planned.fault.what == "unit" else "is mended")

    def _tell(self, planned: Planned, what: str) -> None:
        at_s = self._control.now_s() - self._began_s
        thing = f"{planned.fault.what} {planned.thing.which}"
        self._control.injected(f"fault {planned.name} at {at_s:.2f} s: {thing} {what}")

    async def _apply(self, unit: int) -> None:
        """Make the node of a unit what it is to be."""
        before = self._conditions.get(unit, Condition())
        now = self._conditions[unit] = condition(self._broken[unit])
        processes = self._control.processes
        if now.host_down != before.host_down:
            self._control.run.hold(unit, now.host_down)
            if now.host_down:
                processes.kill(unit)
        if now.factor != before.factor:
            if slowing := self._slowing.pop(unit, None):
                slowing.cancel()
            if now.factor > 1:
                self._slowing[unit] = asyncio.create_task(self._slow(unit, now.factor))
        if now.stopped != before.stopped:
            processes.signal(unit, signal.SIGSTOP if now.stopped else signal.SIGCONT)
        if now.link != before.link:
            assert self._namespaces
            await self._namespaces.set(unit, before.link, now.link)

    async def _slow(self, unit: int, factor: float) -> None:
        processes = self._control.processes

        def is_stopped() -> bool:
            return self._conditions[unit].stopped

        while True:
            began_s, before_s = time.monotonic(), processes.cpu_s(unit)
            await asyncio.sleep(SLICE_S)
            after_s, passed_s = processes.cpu_s(unit), time.monotonic() - began_s
            if before_s is None or after_s is None or after_s <= before_s or is_stopped():
                continue  # it has no process, or another one
            processes.signal(unit, signal.SIGSTOP)
            try:
                await asyncio.sleep(hold_s(factor, after_s - before_s, passed_s))
            finally:
                if not is_stopped():
                    processes.signal(unit, signal.SIGCONT)


def hold_s(factor: float, used_s: float, passed_s: float) -> float:
    """Return how long to hold a unit that used so much CPU time while a time passed: several of its
    threads at once take no longer than one."""
    return (factor - 1) * min(used_s, passed_s)
