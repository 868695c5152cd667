"""Measurement of a scenario: starts units, lets them build events, and returns the result."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from daqloom.base.claims import claimed_folder
from daqloom.control.control import Control
from daqloom.control.counters.metrics import Metrics, difference, metrics
from daqloom.control.protocol.states import Goal, Phase
from daqloom.control.run_folder import run_folder
from daqloom.control.run_log import RunEvent
from daqloom.device.result import DeviceWatch
from daqloom.device.under_test import DeviceUnderTest
from daqloom.lab.balance import Balance, settle
from daqloom.lab.laboratory import Laboratory
from daqloom.lab.network import lab_network, later_forwarding
from daqloom.lab.result import Watch, balance_metrics
from daqloom.machine.addresses import split_address
from daqloom.machine.launch import ByHand, Launcher
from daqloom.machine.namespaces import Namespaces, tools_of
from daqloom.measure.bench import Bench, bench_for
from daqloom.measure.configure import places
from daqloom.measure.inject import Injector
from daqloom.measure.plan import MeasurementPlan, control_of, measurement_plan, programs_of
from daqloom.measure.recorder import Recorder
from daqloom.measure.result import (
    Record,
    children_s,
    measured_result,
    with_arrivals,
    with_timeline,
)
from daqloom.measure.signals import SignalledError, stopped_by_signals, unless_stopped
from daqloom.results.errors import MeasureError
from daqloom.results.result import Result, StoppedError
from daqloom.scenario.schema.models import Scenario

PROGRESS_S = 0.25
MOST_READINGS = 64
"""Limit on readings that are kept to find the one in the middle of a run."""
T = TypeVar("T")


@dataclass(frozen=True)
class Progress:
    """Progress of a run, for display."""

    share: float
    """Share of the run's length, 0 to 1."""
    events_hz: float
    throughput_bps: float
    members: int
    units: int
    phase: Phase


def measure(
    scenario: Scenario,
    *,
    seed: int | None = None,
    log_dir: Path | None = None,
    trace: Path | None = None,
    timeline: bool = False,
    arrivals: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    on_event: Callable[[RunEvent], None] | None = None,
    launcher: Launcher | None = None,
    record: Path | None = None,
) -> Result:
    """Build the events of `scenario` for `measure.duration` seconds, or `measure.events` events.

    `seed` overrides `run.seed`. `log_dir` keeps the output of each unit in a file; without it,
    output is kept only if something fails. `progress` is called several times a second, `on_event`
    with each entry of the run's log; `launcher` overrides `measure.launch`; `record` is a folder
    for the record of the run, see `daqloom.control.record`.

    The result has `series.run_events` (`time_s`, `text`) and the series of
    `daqloom.results.course`, in seconds since all units first built. Over `tcp` it also has
    `series.connections`: the kernel's counters at the end for the connection of each pair of units.
    With `timeline` it also has `series.phases`, in seconds since the start of the run control; see
    `daqloom.results.timeline`. `trace` is a file with the same timeline for ui.perfetto.dev.
    `arrivals` is a file for the times at which events reached the event manager of pull building,
    with the warm-up; `event.trace` can name it. It has the first 1,000,000 times, with a warning if
    there were more.

    Raises ScenarioError if the scenario cannot be built or has no timeline or arrivals;
    MeasureError if the run fails, with the result until then; after Ctrl-C or SIGTERM, when all
    units have ended, StoppedError with the result until then."""
    traced = timeline or trace is not None
    plan = measurement_plan(
        scenario, seed=seed, launcher=launcher, traced=traced, arrivals=arrivals is not None
    )
    kept = launcher is None and log_dir is None
    with ExitStack() as stack:
        bench = stack.enter_context(bench_for(plan.scenario)) if kept else None
        folder = bench.folder if bench else stack.enter_context(run_folder(log_dir))
        found = _in_own_loop(_Run(plan, folder, progress, on_event, record, bench).record())
        if found is None:
            raise StoppedError("interrupted before the end of the warm-up; there is no result")
        result = measured_result(found, scenario.hash())
    if traced:
        result = with_timeline(result, found, trace, timeline)
    if arrivals:
        result = with_arrivals(result, found, arrivals)
    if result.interrupted:
        raise StoppedError(result.warnings[0], result)
    if result.failure:
        raise MeasureError(result.failure, result)
    return result


def _in_own_loop(course: Coroutine[Any, Any, T]) -> T:
    """Run `course` in a new loop; in a thread if a loop already runs, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(course)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, course).result()


class _Run:
    """A running measurement, with its laboratory, namespaces or device."""

    def __init__(
        self,
        plan: MeasurementPlan,
        folder: Path,
        progress: Callable[[Progress], None] | None,
        on_event: Callable[[RunEvent], None] | None,
        run_folder: Path | None,
        bench: Bench | None = None,
    ) -> None:
        self._run_folder, self._bench = run_folder, bench
        self._before: Balance | None = None
        self._plan, self._measure, self._folder = plan, plan.scenario.measure, folder
        self._progress = progress or (lambda _: None)
        self._on_event = on_event or (lambda _: None)
        self._lab: Laboratory | None = None

    async def record(self) -> Record | None:
        """Return the record of the finished run; None if it was interrupted before the end of the
        warm-up."""
        with stopped_by_signals() as self._stop, ExitStack() as stack:
            self._record = record = self._set_up(stack)
            async with record.control as control:
                if self._bench and not self._bench.port:
                    self._start(self._bench, control)
                with suppress(MeasureError):  # no folder in which an operator could find the run
                    stack.enter_context(control.publish())
                control.want(Goal.RUNNING)
                await self._build()
                if not record.readings:
                    return None
                await self._end()
            for programs in record.beside:
                try:
                    await asyncio.to_thread(programs.finish)
                except MeasureError as error:
                    record.failure = record.failure or str(error)
                programs.close()
            if self._lab:  # nothing moves any more
                balance = await asyncio.to_thread(settle, self._lab)
                if self._before:
                    balance = balance.since(self._before)
                record.in_network |= balance_metrics(balance)
        return record

    def _start(self, bench: Bench, control: Control) -> None:
        """Start the units of a new bench."""
        bench.port = split_address(control.address)[1]
        bench.start(control.plan.rules.units, control.units_address)

    def _set_up(self, stack: ExitStack) -> Record:
        """Set up the network and the device; return the record with the run control."""
        plan, measure, scenario = self._plan, self._measure, self._plan.scenario
        bench = self._bench
        began = (time.perf_counter(), children_s() + (bench.cpu_s() if bench else 0.0))
        launcher, namespaces = plan.launcher, None
        if bench:
            self._lab = bench.lab
            if bench.lab and bench.port:
                self._before = settle(bench.lab)
        elif measure.has_lab:
            self._lab = stack.enter_context(Laboratory(lab_network(scenario)))
        if self._lab:
            launcher = self._lab.launching(launcher)
        elif measure.namespaces:
            tools = tools_of(outage.link for outage in plan.outages)
            namespaces = stack.enter_context(
                Namespaces(places(scenario).units + scenario.storage.units, tools)
            )
            launcher = namespaces.launching(launcher)
        beside = programs_of(scenario, launcher)
        device = stack.enter_context(DeviceUnderTest(scenario)) if measure.device else None
        socket_file = None
        if bench:
            socket_file = bench.socket_file if measure.is_apart else None
        elif measure.is_apart:
            # Paths of sockets must be short: `folder` is not used, as the user may have named it.
            socket_file = stack.enter_context(claimed_folder()) / "units"
        control = control_of(
            scenario,
            self._folder,
            launcher=ByHand() if bench else launcher,
            on_event=self._log,
            on_count=self._count,
            socket_file=socket_file,
            trace_stages=plan.stages,
            trace_arrivals=plan.arrivals,
            record=self._run_folder,
            method="measure",
            port=bench.port if bench else None,
            token=bench.token if bench else b"",
        )
        forwarding = later_forwarding(scenario) if self._lab and plan.outages else []
        injector = Injector(
            control, plan.outages, scenario.packing, namespaces, self._lab, forwarding
        )
        recorder = Recorder(measure.heartbeat)
        for programs in beside:
            stack.enter_context(programs)
        return Record(plan, control, recorder, injector, device, *began, bench, beside)

    def _log(self, event: RunEvent) -> None:
        self._record.injector.on_event(event)
        self._on_event(event)

    def _count(self, unit: int) -> None:
        control = self._record.control
        self._record.recorder.count(control.now_s(), unit, control.run.units[unit].tally.totals)

    async def _build(self) -> None:
        """Let units build events. A failure after the warm-up is stored in the record."""
        record, measure = self._record, self._measure
        control = record.control
        try:
            await _until_running(control, self._stop, self._progress)
            if record.device:
                await unless_stopped(asyncio.sleep(record.device.file.settle), self._stop)
            record.recorder.began_s = record.began_s = control.now_s()
            record.injector.begin(record.began_s)
            for programs in record.beside:
                await asyncio.to_thread(programs.begin, control.plan.run)
            await self._course(0.0, measure.warmup)
            record.readings.append(control.totals())
            for programs in record.beside:
                await asyncio.to_thread(programs.count)
            if self._lab:  # in a thread: heartbeats come meanwhile
                record.watch = await asyncio.to_thread(Watch, self._lab)
            elif record.device:
                record.watch = await asyncio.to_thread(DeviceWatch, record.device)
            await self._course(measure.warmup, measure.duration)
            for programs in record.beside:
                await asyncio.to_thread(programs.count)
        except SignalledError:
            record.interrupted, control.ending = True, "interrupted"
        except MeasureError as error:
            if not record.readings:
                raise
            record.failure, control.ending = str(error), "failed"
        finally:
            await record.injector.end()

    async def _course(self, since_s: float, until_s: float) -> None:
        """Wait until a part of the run is over. Raises MeasureError if the run fails."""
        control, readings = self._record.control, self._record.readings
        events, packing = self._measure.events, self._plan.scenario.packing
        begin_s, begin = time.monotonic(), control.totals()
        while (passed_s := time.monotonic() - begin_s) < until_s - since_s:
            rest_s = min(PROGRESS_S, until_s - since_s - passed_s)
            failed = control.until(lambda: control.run.phase is Phase.ERROR)
            await unless_stopped(failed, self._stop, rest_s)
            if control.run.phase in (Phase.ERROR, Phase.ENDED):
                raise MeasureError(control.failure())
            for programs in self._record.beside:
                programs.check()
            now = control.totals()
            counted = metrics(difference(begin, now), packing)
            if self._lab and readings:
                readings.append(now)
                if len(readings) > MOST_READINGS:
                    del readings[1::2]
            share = (since_s + time.monotonic() - begin_s) / self._measure.duration
            self._progress(_progress(control, share, counted))
            is_enough = since_s and events and _number(counted.get("events_built")) >= events
            if is_enough or control.run.goal is not Goal.RUNNING:  # stopped by `when_unwritable`
                return

    async def _end(self) -> None:
        record = self._record
        control = record.control
        record.ended_s = control.now_s()
        if record.watch:
            record.in_network = await asyncio.to_thread(record.watch.metrics)
        control.want(Goal.ENDED)
        await control.until(lambda: control.run.phase in (Phase.ENDING, Phase.ENDED))
        record.readings.append(control.totals())


async def _until_running(
    control: Control, stop: asyncio.Event, progress: Callable[[Progress], None]
) -> None:
    """Wait until all units build events."""
    while control.run.phase is not Phase.RUNNING:
        await unless_stopped(control.until_running(), stop, PROGRESS_S)
        progress(_progress(control, 0.0, {}))


def _progress(control: Control, share: float, counted: Metrics) -> Progress:
    return Progress(
        share=share,
        events_hz=_number(counted.get("event_rate_hz")),
        throughput_bps=_number(counted.get("throughput_bps")),
        members=len(control.run.members),
        units=control.run.plan.units,
        phase=control.run.phase,
    )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
