"""Injector of faults: carries out a measurement's outages in the event loop of its run control.

A slow unit runs for slices of some milliseconds; after each one, it is stopped (SIGSTOP, SIGCONT)
for `factor` - 1 times the CPU time of the slice, so its waiting times do not change. A CPU quota
(cgroup cpu.max) would not slow a unit that needs less than the quota."""

import asyncio
import signal
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby

from daqloom._engine import Balance
from daqloom.control.control import Control
from daqloom.control.counters.metrics import accounts
from daqloom.control.protocol.states import Goal, Phase, Standing
from daqloom.control.run_log import RunEvent
from daqloom.lab.laboratory import Laboratory
from daqloom.lab.network import Forwarding
from daqloom.machine.namespaces import Namespaces
from daqloom.measure.fault_plan import Condition, UnitOutage, agenda, condition
from daqloom.results.course import LOST, Break
from daqloom.scenario.schema.faults import KINDS

SLICE_S = 0.005
"""Time that a slow unit runs before it is stopped (s)."""
EFFECTS = {"down": "is killed", "stopped": "is stopped", "slow": "is slow"}
"""Effects of faults on a unit, in the words of the log."""


class Injector:
    """Injector for one run. `packing`: events in a MEP; `namespaces`: those of the run's units;
    `lab`: its laboratory, with the times (s) of new `forwarding` tables."""

    def __init__(
        self,
        control: Control,
        outages: list[UnitOutage],
        packing: int,
        namespaces: Namespaces | None = None,
        lab: Laboratory | None = None,
        forwarding: Sequence[tuple[float, Forwarding]] = (),
    ) -> None:
        self._lab, self._forwarding = lab, forwarding
        self._cuts: list[UnitOutage] = []
        """Outages of a laboratory's links that are in effect."""
        self._outages, self._namespaces = outages, namespaces
        self._control, self._packing = control, packing
        self._breaks: dict[UnitOutage, Break] = {}
        """Breaks by outage, in order of their begin; times are on the run control's clock."""
        self._present: dict[int, list[UnitOutage]] = defaultdict(list)
        """Outages of each unit that are in effect."""
        self._conditions: dict[int, Condition] = {}
        self._last: dict[int, Break] = {}
        """Most recent break of each unit."""
        self._slowing: dict[int, asyncio.Task[None]] = {}
        self._phase = Phase.WAITING
        self._began_s = 0.0
        self._courses: list[asyncio.Task[None]] = []

    def begin(self, now_s: float) -> None:
        """Start the outages; their times count from `now_s`."""
        self._began_s = now_s
        self._courses = [asyncio.create_task(each) for each in (self._run(), self._reroute())]

    async def end(self) -> None:
        """End all outages that are in effect. Raises MeasureError if a link could not be broken."""
        courses, self._courses = self._courses, []
        for course in courses:
            course.cancel()
            with suppress(asyncio.CancelledError):
                await course
        self._cuts.clear()
        await self._cut()
        for unit, outages in self._present.items():
            outages.clear()
            await self._apply(unit)

    def since(self, began_s: float) -> list[Break]:
        """Return the breaks, with times relative to `began_s`."""
        return [
            replace(
                each,
                begin_s=each.begin_s - began_s,
                detected_s=None if each.detected_s is None else each.detected_s - began_s,
                end_s=None if each.end_s is None else each.end_s - began_s,
            )
            for each in self._breaks.values()
        ]

    def on_event(self, event: RunEvent) -> None:
        """Record the detection of a break: a unit is declared lost, or all units regroup because of
        a broken link."""
        detected = [self._last[event.lost]] if event.lost in self._last else []
        begins_to_halt = event.phase is Phase.HALTING and self._phase is not Phase.HALTING
        if begins_to_halt and self._is_trouble():
            breaks = self._breaks.values()
            detected += [each for each in breaks if KINDS[each.what].breaks == "links"]
        self._phase = event.phase
        late_s = 2 * self._control.run.plan.fault_timeout_s
        for each in detected:
            over = each.end_s is not None and event.time_s > each.end_s + late_s
            if each.detected_s is None and not over:
                each.detected_s = event.time_s

    def _is_trouble(self) -> bool:
        """Return whether the members halt for another reason than the end of the run or the return
        of a unit."""
        run = self._control.run
        return run.goal is Goal.RUNNING and all(
            unit.standing is not Standing.AVAILABLE or unit.number in run.members
            for unit in run.units
        )

    def events_lost(self, balance: Balance) -> int:
        """Return the number of events until now that were not built completely."""
        # Sink "user": losses of built events in sinks are not counted.
        ends = accounts(self._control.totals(), balance, 0, self._packing, "user")
        return sum(ends[fate] for fate in LOST)

    async def _run(self) -> None:
        for due_s, changes in groupby(agenda(self._outages), lambda change: change[0]):
            await asyncio.sleep(max(0.0, self._began_s + due_s - self._control.now_s()))
            now = self._control.now_s()
            # The fate of MEPs in flight is still unknown, so only ended epochs count.
            lost = self.events_lost(self._control.run.balance_of_ended())
            for _, begins, outage in changes:
                if begins:
                    self._break(outage, now, lost)
                else:
                    self._mend(outage, now)
                for unit in outage.units:
                    await self._apply(unit)
            await self._cut()

    async def _reroute(self) -> None:
        for at_s, towards in self._forwarding:
            await asyncio.sleep(max(0.0, self._began_s + at_s - self._control.now_s()))
            assert self._lab
            await asyncio.to_thread(self._lab.forward, towards)

    async def _cut(self) -> None:
        if self._lab:
            links = {link for outage in self._cuts for link in outage.cut}
            await asyncio.to_thread(self._lab.cut, links)

    def _break(self, outage: UnitOutage, now_s: float, lost: int) -> None:
        fault, units = outage.fault, self._control.run.units
        is_lost = all(
            units[unit].standing in (Standing.ABSENT, Standing.LOST) for unit in outage.units
        )
        if is_lost and fault.what == "unit" and fault.how != "slow":
            self._log(outage, "is lost already")
            return
        which = outage.outage.which
        broken = Break(outage.name, fault.what, which, fault.how, now_s, lost)
        self._breaks[outage] = broken
        self._last |= dict.fromkeys(outage.units, broken)
        self._log(outage, EFFECTS[fault.how] if fault.what == "unit" else f"is {fault.how}")
        if outage.cut:
            self._cuts.append(outage)
        for unit in outage.units:
            if fault.what == "unit" and fault.how == "down":
                self._control.processes.kill(unit)
            else:
                self._present[unit].append(outage)

    def _mend(self, outage: UnitOutage, now_s: float) -> None:
        for unit in outage.units:
            if outage not in self._present[unit]:
                return
            self._present[unit].remove(outage)
        if outage in self._cuts:
            self._cuts.remove(outage)
        self._breaks[outage].end_s = now_s
        self._log(outage, "goes on" if outage.fault.what == "unit" else "is mended")

    def _log(self, outage: UnitOutage, effect: str) -> None:
        at_s = self._control.now_s() - self._began_s
        thing = f"{outage.fault.what} {outage.outage.which}"
        self._control.log_injection(f"fault {outage.name} at {at_s:.2f} s: {thing} {effect}")

    async def _apply(self, unit: int) -> None:
        """Apply to a unit's node the condition that its present outages cause."""
        before = self._conditions.get(unit, Condition())
        now = self._conditions[unit] = condition(self._present[unit])
        processes = self._control.processes
        if now.host_down != before.host_down:
            self._control.run.set_host_down(unit, now.host_down)
            if now.host_down:
                processes.kill(unit)
        if now.factor != before.factor:
            if slowing := self._slowing.pop(unit, None):
                slowing.cancel()
            if now.factor > 1:
                self._slowing[unit] = asyncio.create_task(self._slow(unit, now.factor))
        if now.stopped != before.stopped:
            processes.signal(unit, signal.SIGSTOP if now.stopped else signal.SIGCONT)
        if now.link != before.link and self._namespaces:
            await asyncio.to_thread(self._namespaces.set, unit, before.link, now.link)

    async def _slow(self, unit: int, factor: float) -> None:
        processes = self._control.processes
        while True:
            began_s, before_s = time.monotonic(), processes.cpu_s(unit)
            await asyncio.sleep(SLICE_S)
            after_s, passed_s = processes.cpu_s(unit), time.monotonic() - began_s
            if (
                before_s is None
                or after_s is None
                or after_s <= before_s
                or self._conditions[unit].stopped
            ):
                continue  # it has no process, or another one
            processes.signal(unit, signal.SIGSTOP)
            try:
                await asyncio.sleep(hold_s(factor, after_s - before_s, passed_s))
            finally:
                if not self._conditions[unit].stopped:
                    processes.signal(unit, signal.SIGCONT)


def hold_s(factor: float, used_s: float, passed_s: float) -> float:
    """Return how long to stop a unit that used `used_s` of CPU time in `passed_s`; several threads
    that run at the same time count as one."""
    return (factor - 1) * min(used_s, passed_s)
