"""Measures a scenario: starts its units, lets them build events, and returns the result."""

import asyncio
import os
import resource
import secrets
import signal
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from daqloom._engine import RunPlan
from daqloom.base.claims import claimed_folder
from daqloom.base.output import write_text
from daqloom.control.arrivals import trace_text
from daqloom.control.connection import read_certificates
from daqloom.control.control import Control
from daqloom.control.messages import MOST_ARRIVALS
from daqloom.control.metrics import (
    Metrics,
    Reading,
    accounts,
    connection_columns,
    difference,
    fragment_share,
    metrics,
    refused,
    rows_of,
    waiting,
    window_s,
)
from daqloom.control.plan import Plan
from daqloom.control.registry import published
from daqloom.control.run_folder import run_folder
from daqloom.control.run_log import RunEvent
from daqloom.control.states import Goal, Phase
from daqloom.control.warnings import damage, lost_events, unchecked, unfinished_files, wrong
from daqloom.device.result import DeviceWatch
from daqloom.device.under_test import DeviceUnderTest
from daqloom.lab.balance import settle
from daqloom.lab.laboratory import Laboratory
from daqloom.lab.network import lab_network
from daqloom.lab.result import Watch, balance_metrics
from daqloom.lab.validity import judge
from daqloom.machine.launch import ByHand, Launcher, Local, Slurm, Ssh
from daqloom.machine.namespaces import Namespaces, tools_of
from daqloom.machine.open_files import check_open_files, files_of_a_control
from daqloom.measure.configure import (
    check_live,
    files_of_a_unit,
    launch_hosts,
    places,
    slots_of_run,
)
from daqloom.measure.fault_plan import Planned, condition, planned
from daqloom.measure.inject import Injector
from daqloom.measure.recorder import Recorder, members
from daqloom.measure.timeline import measured_spans
from daqloom.results.course import fault_metrics, series
from daqloom.results.errors import MeasureError
from daqloom.results.metrics import with_unit
from daqloom.results.result import Result, StoppedError
from daqloom.results.timeline import phase_columns, write_phases
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.file.unused import rule_for, unused_warnings
from daqloom.scenario.schema.building import BUILT
from daqloom.scenario.schema.check import check_possible
from daqloom.scenario.schema.models import Scenario
from daqloom.topology.system.scenarios import override
from daqloom.topology.system.system import fabric_system

PROGRESS_S = 0.25
FINISH_S = 60.0
"""How long the files of a recording may take to reach the disk (s)."""


@dataclass(frozen=True)
class Progress:
    """Progress of a run."""

    share: float
    """Share of the run's length, 0 to 1."""
    events_hz: float
    throughput_bps: float
    members: int
    units: int
    phase: Phase


T = TypeVar("T")
MOST_READINGS = 64
"""Most readings of a run that are kept to find the one in its middle."""
TRACE_STAGES = 50_000
"""How many of its last stages a unit keeps for a timeline."""


@dataclass(frozen=True)
class _Kept:
    """What the run keeps of its course, at most."""

    stages: int
    """Of each unit."""
    arrivals: int


class _SignalledError(Exception):
    """Ctrl-C or SIGTERM arrived within the loop."""


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
) -> Result:
    """Build the events of `scenario` for `measure.duration` seconds, or `measure.events` events.

    `seed` replaces `run.seed`. `log_dir` keeps the output of each unit in a file; without it, that
    is kept only if something fails.
    `progress` is called several times a second, `on_event` with each entry of the run's log;
    `launcher` replaces the one that `measure.launch` names.

    The result carries `series.run_events` (`time_s`, `text`) and those of
    `daqloom.results.course`; their times are seconds from when all units first build. Over `tcp` it
    also carries `series.connections`: for each pair of units the kernel's counters of their
    connection at the end. With `timeline` it also carries `series.phases`, in seconds from the
    start of the run control; see `daqloom.results.timeline`. `trace` is a file for ui.perfetto.dev
    with the same. `arrivals` is a file for the times at which events came to the event manager of
    pull building, warm-up included, which `event.trace` can name; it has the first 1,000,000, and a
    warning reports if more came.

    Raises ScenarioError where the scenario cannot be built or has no timeline or arrivals,
    MeasureError where the run breaks, with the result of the time until then, and, when all units
    have ended in good order after Ctrl-C or SIGTERM, `StoppedError` with the same.
    """
    fabric = of_a_fabric(scenario)
    if fabric.measure.launch == "by-hand" and launcher is None:
        raise ScenarioError(
            'measure.launch = "by-hand" leaves a measurement without units, as nobody learns its '
            "address and token; `daqloom control SCENARIO --start` prints the command that starts "
            "units, and builds events with them"
        )
    if seed is not None and seed != fabric.run.seed:
        fabric = override(fabric, {"run.seed": seed})
    is_traced = timeline or trace is not None
    if is_traced and fabric.building.protocol != "shift":
        raise ScenarioError(
            f'building.protocol = "{fabric.building.protocol}" has no phases, and the timeline '
            "of a measurement shows phases; measure it without a timeline"
        )
    if arrivals and fabric.building.protocol != "pull":
        raise ScenarioError(
            f'building.protocol = "{fabric.building.protocol}" has no event manager to which '
            'events come at times of their own; measure it with "pull", or without their arrivals'
        )
    plan = _planned(fabric, launcher)
    kept = _Kept(stages=TRACE_STAGES if is_traced else 0, arrivals=MOST_ARRIVALS if arrivals else 0)
    with run_folder(log_dir) as folder:
        course = _measure(fabric, plan, folder, kept, progress, on_event, launcher)
        measured = _whole(course)
    if measured is None:
        raise StoppedError("interrupted before the end of the warm-up; there is no result")
    result, control = measured
    if is_traced:
        result = _with_timeline(result, fabric, control, trace, timeline)
    if arrivals:
        result = _with_arrivals(result, fabric, control, arrivals)
    result = replace(result, scenario_hash=scenario.hash())
    if result.interrupted:
        raise StoppedError(result.warnings[0], result)
    if result.failure:
        raise MeasureError(result.failure, result)
    return result


def _whole(course: Coroutine[Any, Any, T]) -> T:
    """Run it in a loop of its own, in a thread where a loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(course)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, course).result()


def of_a_fabric(scenario: Scenario) -> Scenario:
    """Return the scenario if its events can be built. Raises ScenarioError otherwise."""
    check_possible(scenario)
    if scenario.building.protocol not in BUILT.among:
        raise ScenarioError(
            f"{scenario.name} does not describe an event builder that can be measured; expected "
            f"building.protocol = " + " or ".join(f'"{each}"' for each in BUILT.among)
        )
    return scenario


def _planned(scenario: Scenario, launcher: Launcher | None) -> list[Planned]:
    """Return what breaks. Raises ScenarioError for what cannot be broken from here."""
    plan, launch = planned(scenario), scenario.measure.launch
    if plan and launch != "local" and launcher is None:
        raise ScenarioError(
            f"faults.injected.{plan[0].name}: a measurement breaks processes that it has started "
            f'itself, and measure.launch = "{launch}" starts them elsewhere; use "local", or '
            "simulate the system"
        )
    return plan


def plan_of(scenario: Scenario) -> Plan:
    """Return the plan of a run. Raises ScenarioError for what no unit could run."""
    check_live(scenario)
    given = scenario.measure
    where = places(scenario)
    rules = RunPlan(
        units=where.units,
        heartbeat_s=given.heartbeat,
        fault_timeout_s=given.fault_timeout,
        order_timeout_s=max(10.0, 3 * given.fault_timeout),
        finish_timeout_s=FINISH_S if given.sink == "file" else 0.0,
        stops_when_unwritable=given.when_unwritable == "stop",
        restart=given.restart,
        launches=given.launch != "by-hand",
        slots=slots_of_run(scenario, where),
        moves_apart=scenario.hosts.spare_takes == "one",
        takes_turns=scenario.building.protocol == "shift",
        fewest_members=given.minimum,
    )
    return Plan(
        run=secrets.token_hex(4),
        rules=rules,
        scenario=scenario.model_dump(mode="json", exclude_unset=True),
    )


def launcher_of(scenario: Scenario) -> Launcher:
    """Return the launcher that `measure.launch` names. Raises ScenarioError for a host of
    `hosts.units` that it does not reach."""
    given = scenario.measure
    options = ("--certificates", given.certificates) if given.certificates else ()
    match given.launch:
        case "local":
            return Local(options=options)
        case "ssh":
            return Ssh(launch_hosts(scenario), options=options)
        case "slurm":
            return Slurm(options=options)
    return ByHand()


def control_of(
    scenario: Scenario,
    folder: Path,
    *,
    launcher: Launcher | None = None,
    on_event: Callable[[RunEvent], None] | None = None,
    on_count: Callable[[int], None] | None = None,
    socket_file: Path | None = None,
    trace_stages: int = 0,
    trace_arrivals: int = 0,
) -> Control:
    """Return the run control of a scenario, to be entered. Raises ScenarioError, and MeasureError
    where this machine does not allow it."""
    given = scenario.measure
    plan = replace(plan_of(scenario), trace_stages=trace_stages, trace_arrivals=trace_arrivals)
    units = plan.rules.units
    check_open_files(files_of_a_control(units), f"the run control of {units} units")
    if given.launch == "local":
        check_open_files(files_of_a_unit(scenario), f"each of {units} units")
    return Control(
        plan,
        launcher or launcher_of(scenario),
        folder=folder,
        name=scenario.name,
        bind=given.bind,
        port=given.port,
        socket_file=socket_file,
        certificates=read_certificates(Path(given.certificates), "control")
        if given.certificates
        else None,
        on_event=on_event,
        on_count=on_count,
    )


@contextmanager
def stopped_by_signals() -> Iterator[asyncio.Event]:
    """Yield the event that Ctrl-C or SIGTERM sets, within a loop that runs in the main thread.

    A second signal is left to Python, which cancels the loop's task."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    before: dict[signal.Signals, Any] = {}

    def give_back() -> None:
        while before:
            number, handler = before.popitem()
            with suppress(ValueError, RuntimeError):
                loop.remove_signal_handler(number)
                signal.signal(number, handler)

    def first() -> None:
        stop.set()
        give_back()

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(ValueError, RuntimeError):  # another thread than the main one
                handler = signal.getsignal(number)
                loop.add_signal_handler(number, first)
                before[number] = handler
        yield stop
    finally:
        give_back()


async def _measure(
    scenario: Scenario,
    plan: list[Planned],
    folder: Path,
    kept: _Kept,
    progress: Callable[[Progress], None] | None,
    on_event: Callable[[RunEvent], None] | None,
    launcher: Launcher | None,
) -> tuple[Result, Control] | None:
    """Return the result, and the run control that has ended; None if the run was interrupted before
    the warm-up was over."""
    started_s, began_cpu_s = time.perf_counter(), children_s()
    recorder = Recorder(scenario.measure.heartbeat)

    def hear(event: RunEvent) -> None:
        injector.on_event(event)
        if on_event:
            on_event(event)

    def count(unit: int) -> None:
        recorder.count(control.now_s(), unit, control.run.units[unit].tally.totals)

    with stopped_by_signals() as stop, ExitStack() as stack:
        namespaces, laboratory, device, socket_file = None, None, None, None
        if scenario.measure.has_lab:
            laboratory = stack.enter_context(Laboratory(lab_network(scenario)))
            launcher = laboratory.launching(launcher or launcher_of(scenario))
        elif scenario.measure.namespaces:
            tools = tools_of(condition([each]).link for each in plan)
            namespaces = stack.enter_context(Namespaces(places(scenario).units, tools))
            launcher = namespaces.launching(launcher or launcher_of(scenario))
        if scenario.measure.device:
            device = stack.enter_context(DeviceUnderTest(scenario))
        if scenario.measure.is_apart:
            # Paths of sockets are short: not in `folder`, which the user may have named.
            socket_file = stack.enter_context(claimed_folder()) / "units"
        control = control_of(
            scenario,
            folder,
            launcher=launcher,
            on_event=hear,
            on_count=count,
            socket_file=socket_file,
            trace_stages=kept.stages,
            trace_arrivals=kept.arrivals,
        )
        injector = Injector(control, plan, scenario.packing, namespaces)
        async with control:
            with suppress(MeasureError):  # no folder in which an operator could find the run
                stack.enter_context(published(control.address, control.steering, control.token))
            control.want(Goal.RUNNING)
            begin, interrupted, failure = None, False, ""
            meanwhile: list[Reading] | None = [] if laboratory else None
            watch: Watch | DeviceWatch | None = None
            warmup_s, duration_s = scenario.measure.warmup, scenario.measure.duration
            try:
                await _running(control, stop, progress)
                if device:
                    await _either(asyncio.sleep(device.file.settle), stop)
                recorder.began_s = began_s = control.now_s()
                injector.begin(began_s)
                await _course(control, scenario, stop, progress, 0.0, warmup_s)
                begin = reading(control)
                if laboratory:  # in a thread: heartbeats come meanwhile
                    watch = await asyncio.to_thread(Watch, laboratory)
                elif device:
                    watch = await asyncio.to_thread(DeviceWatch, device)
                await _course(control, scenario, stop, progress, warmup_s, duration_s, meanwhile)
            except _SignalledError:
                interrupted = True
                if begin is None:
                    return None
            except MeasureError as error:
                if begin is None:
                    raise
                failure = str(error)
            finally:
                await injector.end()
            ended_s = control.now_s()
            in_network = await asyncio.to_thread(watch.metrics) if watch else {}
            control.want(Goal.ENDED)
            await control.until(lambda: control.run.phase in (Phase.ENDING, Phase.ENDED))
            end = reading(control)
        if laboratory:  # all units have ended: nothing moves any more
            in_network |= balance_metrics(await asyncio.to_thread(settle, laboratory))
    counted = difference(begin, end)
    result = _result(scenario, control, began_s, counted, started_s, began_cpu_s)
    result = _with_course(result, scenario, control, recorder, injector, began_s, ended_s)
    result = replace(result, metrics={**result.metrics, **in_network})
    if isinstance(watch, Watch):
        middle = _middle(begin, meanwhile or [], end)
        # Faults make halves of a run differ, and are no fault of this machine.
        readings = [begin, middle, end] if middle and not plan else []
        judgement = judge(result.metrics, watch.evidence(result.metrics, readings))
        if judgement.refusal:
            raise MeasureError(judgement.refusal)
        found = [*judgement.warnings, *result.warnings]
        result = replace(result, metrics=judgement.metrics, warnings=found)
    if device and device.notes:
        result = replace(result, warnings=[*result.warnings, *device.notes])
    if interrupted or failure:
        result = _cut_short(result, duration_s - warmup_s, failure)
    return result, control


def _with_course(
    result: Result,
    scenario: Scenario,
    control: Control,
    recorder: Recorder,
    injector: Injector,
    began_s: float,
    ended_s: float,
) -> Result:
    """Return the result with its course, and what the faults cost."""
    share = fragment_share(list(reading(control).values())) or 1.0
    # The last heartbeats before the end come with what is built behind it.
    bins = recorder.bytes_built.rates(ended_s - began_s - scenario.measure.heartbeat, 8 * share)
    building = members(control.events, began_s)
    breaks = injector.since(began_s)
    metrics = dict(result.metrics)
    if injector.plan:
        lost = injector.events_lost(control.run.balance())
        metrics |= fault_metrics(breaks, bins, building, ended_s - began_s, lost)
    shown = {**result.series, **series(breaks, bins, building)}
    if control.connections:
        shown["connections"] = connection_columns(control.connections)
    return replace(result, metrics=metrics, series=shown)


def _with_timeline(
    result: Result, scenario: Scenario, control: Control, file: Path | None, series: bool
) -> Result:
    """Write the timeline to a file; return the result with it. Raises OutputError."""
    system = fabric_system(scenario)
    found = measured_spans(control.stages, control.began_ns, system, scenario.building)
    if file:
        write_phases(file, found, system)
    if any(len(kept) == TRACE_STAGES for kept in control.stages.values()) and found:
        begin, end = (with_unit(s, "s") for s in (found[0].begin_s, found[-1].end_s))
        told = (
            f"the timeline shows {begin} to {end} of the run: a unit keeps the last "
            f"{TRACE_STAGES:,} stages of its phases"
        )
        result = replace(result, warnings=[*result.warnings, told])
    if series:
        result = replace(result, series={**result.series, "phases": phase_columns(found, system)})
    return result


def _with_arrivals(result: Result, scenario: Scenario, control: Control, file: Path) -> Result:
    """Write when events arrived to a file; return the result, with what the file lacks as a
    warning. Raises OutputError."""
    log, told = control.arrivals, []
    if log.times_ns:
        write_text(file, trace_text(log, f"{scenario.name}, seed {scenario.run.seed}, measured"))
    else:
        told.append(f"no event arrived; {file} is not written")
    if log.beyond:
        told.append(
            f"{file} has the first {len(log.times_ns):,} arrivals; {log.beyond:,} more came"
        )
    if regroupings := control.run.counts["regroupings"]:
        told.append(
            f"arrivals began anew after each of {regroupings} regroupings; {file} lacks those at "
            "an event manager whose unit was lost"
        )
    return replace(result, warnings=[*result.warnings, *told])


async def _running(
    control: Control, stop: asyncio.Event, progress: Callable[[Progress], None] | None
) -> None:
    """Until all units build events."""
    while control.run.phase is not Phase.RUNNING:
        await _either(control.until_running(), stop, PROGRESS_S)
        if progress:
            progress(_how(control, 0.0, {}))


def _how(control: Control, share: float, counted: Metrics) -> Progress:
    return Progress(
        share=share,
        events_hz=_number(counted.get("event_rate_hz")),
        throughput_bps=_number(counted.get("throughput_bps")),
        members=len(control.run.members),
        units=control.run.plan.units,
        phase=control.run.phase,
    )


def _cut_short(result: Result, wanted_s: float, failure: str) -> Result:
    """Return the result of a run that was interrupted, or failed, with a warning of how much was
    measured."""
    measured, wanted = (with_unit(s, "s") for s in (result.engine["measured_s"], wanted_s))
    why = "the run failed" if failure else "interrupted"
    told = f"{why}: {measured} of {wanted} were measured after the warm-up"
    return replace(
        result, interrupted=not failure, failure=failure, warnings=[told, *result.warnings]
    )


async def _either(waiting: Any, stop: asyncio.Event, timeout_s: float | None = None) -> None:
    """Wait for the first to end; raises `_SignalledError` if the other ends sooner."""
    task = asyncio.ensure_future(waiting)
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopped}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        elif stopped.done():
            raise _SignalledError
    finally:
        task.cancel()
        stopped.cancel()


async def _course(
    control: Control,
    scenario: Scenario,
    stop: asyncio.Event,
    progress: Callable[[Progress], None] | None,
    since_s: float,
    until_s: float,
    meanwhile: list[Reading] | None = None,
) -> None:
    """Wait for part of a measurement, and append what units have counted `meanwhile`, now and then;
    raises MeasureError if the run fails."""
    given, packing = scenario.measure, scenario.packing
    begin_s, begin = time.monotonic(), reading(control)
    while (passed_s := time.monotonic() - begin_s) < until_s - since_s:
        rest_s = min(PROGRESS_S, until_s - since_s - passed_s)
        await _either(control.until(lambda: control.run.phase is Phase.ERROR), stop, rest_s)
        if control.run.phase in (Phase.ERROR, Phase.ENDED):
            raise MeasureError(control.failure())
        now = reading(control)
        counted = metrics(difference(begin, now), packing)
        if meanwhile is not None:
            meanwhile.append(now)
            if len(meanwhile) > MOST_READINGS:
                del meanwhile[::2]
        built = counted.get("events_built", 0)
        if progress:
            share = (since_s + time.monotonic() - begin_s) / given.duration
            progress(_how(control, share, counted))
        if since_s and given.events and _number(built) >= given.events:
            return
        if control.run.goal is not Goal.RUNNING:  # `when_unwritable` has stopped it
            return


def _middle(begin: Reading, meanwhile: list[Reading], end: Reading) -> Reading | None:
    """Return the reading closest to the middle of a run; None if there is none."""
    half_s = window_s(difference(begin, end)) / 2
    return min(
        meanwhile,
        key=lambda each: abs(window_s(difference(begin, each)) - half_s),
        default=None,
    )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def reading(control: Control) -> Reading:
    """Return the counters of each unit as they stand now."""
    return {unit.number: unit.tally.totals for unit in control.run.units}


def _result(
    scenario: Scenario,
    control: Control,
    began_s: float,
    counted: Reading,
    started_s: float,
    began_cpu_s: float,
) -> Result:
    run = control.run
    protocol, units = scenario.building.protocol, run.plan.units
    found: dict[str, Any] = metrics(
        counted, scenario.packing, rows_of(protocol, scenario.measure.transport)
    )
    if protocol == "pull":
        found["events_waiting"] = waiting(reading(control))
    if "throughput_bps" in found:
        found["node_throughput_bps"] = found["throughput_bps"] / scenario.readouts(units)
    found |= {
        "events_accounted": accounts(
            reading(control), run.balance(), run.next_mep, scenario.packing, scenario.measure.sink
        ),
        "units_lost": run.counts["units_lost"],
        "regroupings": run.counts["regroupings"],
    }
    for fate in ("not_processed", "not_written"):
        if fate in found["events_accounted"]:
            found[f"events_{fate}"] = found["events_accounted"][fate]
    first = [counters.first_mep_s or 0 for counters in reading(control).values()]
    if any(first):
        found["first_event_s"] = max(first)
    refusals = Counter(refused(reading(control)))
    refusals.update({str(why): count for why, count in control.refused.items()})
    if refusals:
        found["refused"] = dict(refusals)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = Result(
        scenario=scenario.name,
        scenario_hash=scenario.hash(),
        assumed={
            key: value
            for key, value in scenario.assumed().items()
            if not rule_for(scenario, "measure", key)
        },
        method="measure",
        seed=scenario.run.seed,
        metrics=found,
        engine={
            "wall_s": time.perf_counter() - started_s,
            "cpu_s": children_s() - began_cpu_s,
            "measured_s": window_s(counted),
            "peak_rss_bytes": children.ru_maxrss * 1024,
            "units": units,
            "cores": len(os.sched_getaffinity(0)),
        },
        warnings=warnings(control, scenario, began_s, found),
        series={
            "run_events": {
                "time_s": [event.time_s - began_s for event in control.events],
                "text": [event.text for event in control.events],
            }
        },
    )
    return replace(result, warnings=[*wrong(result), *result.warnings])


def children_s() -> float:
    """Return the CPU time of all children that have ended (s)."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def warnings(
    control: Control, scenario: Scenario, began_s: float, found: dict[str, Any]
) -> list[str]:
    """Return warnings about the numbers of a result."""
    totals = reading(control)
    told = list(lost_events(totals, scenario.packing, scenario.measure.sink))
    told += damage(totals)
    told += unchecked(totals, scenario.packing)
    told += unfinished_files(scenario)
    told += unused_warnings(scenario, "measure")
    told += [
        f"{event.time_s - began_s:.2f} s: {event.text}"
        for event in control.events
        if event.is_trouble
    ]
    if not found.get("events_built"):
        told.append("no event was built after the warm-up; lengthen measure.duration")
    return told[:50]
