"""From a scenario through units that build events for real to the result record."""

from __future__ import annotations

import asyncio
import os
import resource
import secrets
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daqloom.measure.connection import read_certificates
from daqloom.measure.control import Control
from daqloom.measure.errors import MeasureError
from daqloom.measure.launch import ByHand, Launcher, Local, Slurm, Ssh
from daqloom.measure.outputs import RunEvent
from daqloom.measure.plan import Plan
from daqloom.measure.result import Reading, accounts, difference, metrics, refused, rows_of
from daqloom.measure.states import Goal, Phase
from daqloom.result import Result

if TYPE_CHECKING:
    from daqloom.scenario.fabric import FabricScenario
    from daqloom.scenario.system import System

PROGRESS_S = 0.25


@dataclass(frozen=True)
class Progress:
    """How a run is going."""

    share: float
    """Of its length, 0 to 1."""
    events_hz: float
    throughput_bps: float
    members: int
    units: int
    phase: Phase


TRACE_STAGES = 50_000
"""That a unit keeps for a timeline, the last ones."""


@dataclass(frozen=True)
class Traced:
    """What is wanted of the timeline of a run."""

    file: Path | None = None
    series: bool = False

    @property
    def wanted(self) -> bool:
        """Whether units are to keep what they do."""
        return self.series or self.file is not None

    def kept(self, result: Result, scenario: FabricScenario, control: Control) -> Result:
        """Writes the file; the result with the series. Raises OutputError."""
        from daqloom.measure.timeline import measured_spans
        from daqloom.timeline import phase_columns, write_phases
        from daqloom.topology.system import fabric_system

        system = fabric_system(scenario)
        found = measured_spans(control.stages, control.began_ns, system)
        if self.file:
            write_phases(self.file, found, system)
        if self.series:
            series = {**result.series, "phases": phase_columns(found, system)}
            return replace(result, series=series)
        return result


class StoppedError(Exception):
    """The run was ended from outside, in good order."""


def measure(
    scenario: System,
    *,
    seed: int | None = None,
    log_dir: Path | None = None,
    trace: Path | None = None,
    timeline: bool = False,
    progress: Callable[[Progress], None] | None = None,
    on_event: Callable[[RunEvent], None] | None = None,
    launcher: Launcher | None = None,
) -> Result:
    """Builds the events of `scenario` for `measure.duration` seconds, or `measure.events` events.

    `seed` replaces `run.seed`. `log_dir` keeps what units print, a file each; else it is kept only
    if something fails.
    `progress` is called some times a second, `on_event` with what the run control decides;
    `launcher` replaces the one that `measure.launch` names.

    The result carries `series.run_events`: `time_s` from the start, `text`; with `timeline` also
    `series.phases`, see `daqloom.timeline`. `trace` is a file for ui.perfetto.dev with the same.

    Raises ScenarioError where the scenario cannot be built or has no timeline, MeasureError where
    the run breaks and `StoppedError` after Ctrl-C or SIGTERM, when all units have ended.
    """
    from daqloom.scenario.errors import ScenarioError

    fabric = of_a_fabric(scenario)
    if seed is not None and seed != fabric.run.seed:
        fabric = fabric.with_overrides({"run.seed": seed})
    traced = Traced(trace, timeline)
    if traced.wanted and fabric.nodes.protocol != "shift":
        raise ScenarioError(
            f'nodes.protocol = "{fabric.nodes.protocol}" has no phases, which are what a timeline '
            "of a measurement shows; measure it without one"
        )
    with run_folder(log_dir) as folder:
        result = _whole(_measure(fabric, folder, traced, progress, on_event, launcher))
    return replace(result, scenario_hash=scenario.hash())


def _whole(course: Coroutine[Any, Any, Result]) -> Result:
    """In a loop of its own; a notebook has one running already, so that it takes a thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(course)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, course).result()


def of_a_fabric(scenario: System) -> FabricScenario:
    """What can be built. Raises ScenarioError otherwise."""
    from daqloom.scenario.errors import ScenarioError
    from daqloom.scenario.fabric import FabricScenario

    if not isinstance(scenario, FabricScenario) or scenario.nodes.protocol == "flows":
        raise ScenarioError(
            f"{scenario.name} describes no event builder that can be run; expected [nodes] with "
            'protocol = "shift" or "daqpipe"'
        )
    return scenario


def plan_of(scenario: FabricScenario) -> Plan:
    """What the run control has to know. Raises ScenarioError for what no unit could run."""
    from daqloom.measure.configure import check_live
    from daqloom.topology.system import fabric_system

    check_live(scenario)
    given = scenario.measure
    folded = scenario.nodes.folded

    def viable(members: Collection[int]) -> bool:
        # Unfolded, nodes are readout and builder units by turns: see topology.schedule.unfolded.
        both = folded or {unit % 2 for unit in members} == {0, 1}
        return len(members) >= given.minimum and both

    return Plan(
        run=secrets.token_hex(4),
        units=fabric_system(scenario).nodes,
        scenario=scenario.model_dump(mode="json", exclude_unset=True),
        heartbeat_s=given.heartbeat,
        fault_timeout_s=given.fault_timeout,
        order_timeout_s=max(10.0, 3 * given.fault_timeout),
        restart=given.restart,
        launches=given.launch != "by-hand",
        viable=viable,
    )


def launcher_of(scenario: FabricScenario) -> Launcher:
    """What `measure.launch` names."""
    given = scenario.measure
    options = ("--certificates", given.certificates) if given.certificates else ()
    match given.launch:
        case "local":
            return Local(options=options)
        case "ssh":
            return Ssh(given.hosts, options=options)
        case "slurm":
            return Slurm(options=options)
    return ByHand()


def control_of(
    scenario: FabricScenario,
    folder: Path,
    *,
    launcher: Launcher | None = None,
    on_event: Callable[[RunEvent], None] | None = None,
    trace_stages: int = 0,
) -> Control:
    """The run control of a scenario, to be entered."""
    given = scenario.measure
    return Control(
        replace(plan_of(scenario), trace_stages=trace_stages),
        launcher or launcher_of(scenario),
        folder=folder,
        name=scenario.name,
        bind=given.bind,
        port=given.port,
        certificates=read_certificates(Path(given.certificates), "control")
        if given.certificates
        else None,
        on_event=on_event,
    )


@contextmanager
def stopped_by_signals() -> Iterator[asyncio.Event]:
    """Gives what Ctrl-C and SIGTERM set, within a loop that runs in the main thread."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    before = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(ValueError, RuntimeError):  # another thread than the main one
                before[number] = signal.getsignal(number)
                loop.add_signal_handler(number, stop.set)
        yield stop
    finally:
        for number, handler in before.items():
            with suppress(ValueError, RuntimeError):
                loop.remove_signal_handler(number)
                signal.signal(number, handler)


@contextmanager
def run_folder(log_dir: Path | None) -> Iterator[Path]:
    """Where units' output goes; one of ours is kept only if something fails."""
    from daqloom.output import OutputError

    try:
        if log_dir is not None:
            log_dir.mkdir(parents=True, exist_ok=True)
        folder = Path(log_dir or tempfile.mkdtemp(prefix="daqloom-run-"))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(f"cannot write logs: {reason}; name another folder") from None
    try:
        yield folder
    except MeasureError as error:
        raise MeasureError(f"{error}; what units printed is in {folder}") from None
    except BaseException:
        if log_dir is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if log_dir is None:
        shutil.rmtree(folder, ignore_errors=True)


async def _measure(
    scenario: FabricScenario,
    folder: Path,
    traced: Traced,
    progress: Callable[[Progress], None] | None,
    on_event: Callable[[RunEvent], None] | None,
    launcher: Launcher | None,
) -> Result:
    started_s, began_cpu_s = time.perf_counter(), children_s()
    control = control_of(
        scenario,
        folder,
        launcher=launcher,
        on_event=on_event,
        trace_stages=TRACE_STAGES if traced.wanted else 0,
    )
    with stopped_by_signals() as stop:
        async with control:
            control.want(Goal.RUNNING)
            await _either(control.until_running(), stop)
            await _course(control, scenario, stop, progress, 0.0, scenario.measure.warmup)
            begin = reading(control)
            await _course(
                control,
                scenario,
                stop,
                progress,
                scenario.measure.warmup,
                scenario.measure.duration,
            )
            control.want(Goal.ENDED)
            await control.until(lambda: control.run.phase in (Phase.ENDING, Phase.ENDED))
            end = reading(control)
    result = _result(scenario, control, difference(begin, end), started_s, began_cpu_s)
    return traced.kept(result, scenario, control) if traced.wanted else result


async def _either(waiting: Any, stop: asyncio.Event, timeout_s: float | None = None) -> None:
    """Until the one is done; raises `StoppedError` if the other is sooner."""
    task = asyncio.ensure_future(waiting)
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopped}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        elif stopped.done():
            raise StoppedError
    finally:
        task.cancel()
        stopped.cancel()


async def _course(
    control: Control,
    scenario: FabricScenario,
    stop: asyncio.Event,
    progress: Callable[[Progress], None] | None,
    since_s: float,
    until_s: float,
) -> None:
    """Part of a measurement, of its time; raises MeasureError if the run breaks meanwhile."""
    given, packing = scenario.measure, scenario.fragments.packing
    begin_s, begin = time.monotonic(), reading(control)
    while (passed_s := time.monotonic() - begin_s) < until_s - since_s:
        rest_s = min(PROGRESS_S, until_s - since_s - passed_s)
        await _either(control.until(lambda: control.run.phase is Phase.ERROR), stop, rest_s)
        if control.run.phase in (Phase.ERROR, Phase.ENDED):
            raise MeasureError(control.failure())
        counted = metrics(difference(begin, reading(control)), packing)
        built = counted.get("events_built", 0)
        if progress:
            progress(
                Progress(
                    share=(since_s + time.monotonic() - begin_s) / given.duration,
                    events_hz=_number(counted.get("event_rate_hz")),
                    throughput_bps=_number(counted.get("throughput_bps")),
                    members=len(control.run.members),
                    units=control.run.plan.units,
                    phase=control.run.phase,
                )
            )
        if since_s and given.events and _number(built) >= given.events:
            return


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def reading(control: Control) -> Reading:
    """What each unit has counted up to now."""
    return {unit.number: dict(unit.tally.totals) for unit in control.run.units}


def _result(
    scenario: FabricScenario,
    control: Control,
    counted: Reading,
    started_s: float,
    began_cpu_s: float,
) -> Result:
    run = control.run
    protocol, units = scenario.nodes.protocol, run.plan.units
    found: dict[str, Any] = metrics(counted, scenario.fragments.packing, rows_of(protocol))
    if "throughput_bps" in found:
        found["node_throughput_bps"] = found["throughput_bps"] / scenario.readouts(units)
    found |= {
        "events_accounted": accounts(reading(control), run.next_mep, scenario.fragments.packing),
        "units_lost": run.counts["units_lost"],
        "regroupings": run.counts["regroupings"],
    }
    first = [counters.get("first_mep_s", 0) for counters in reading(control).values()]
    if any(first):
        found["first_event_s"] = max(first)
    refusals = Counter(refused(reading(control)))
    refusals.update({str(why): count for why, count in control.refused.items()})
    if refusals:
        found["refused"] = dict(refusals)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Result(
        scenario=scenario.name,
        scenario_hash=scenario.hash(),
        method="measure",
        seed=scenario.run.seed,
        metrics=found,
        engine={
            "wall_s": time.perf_counter() - started_s,
            "cpu_s": children_s() - began_cpu_s,
            "peak_rss_bytes": children.ru_maxrss * 1024,
            "units": units,
            "cores": len(os.sched_getaffinity(0)),
        },
        warnings=warnings(control, found),
        series={
            "run_events": {
                "time_s": [event.time_s - control.began_s for event in run.events],
                "text": [event.text for event in run.events],
            }
        },
    )


def children_s() -> float:
    """Processor time of all children that have ended (s)."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def warnings(control: Control, found: dict[str, Any]) -> list[str]:
    """What a reader of the numbers should know."""
    told = [
        f"{event.time_s - control.began_s:.2f} s: {event.text}"
        for event in control.run.events
        if event.tells_of_trouble
    ]
    if not found.get("events_built"):
        told.append("no event was built after the warm-up; lengthen measure.duration")
    return told[:50]


def with_options(
    scenario: FabricScenario,
    *,
    duration: str | None = None,
    events: int | None = None,
    transport: str | None = None,
) -> FabricScenario:
    """The scenario with what options say in place of its keys. Raises ScenarioError."""
    from daqloom.scenario.errors import ScenarioError

    for option, value in (("duration", duration), ("events", events), ("transport", transport)):
        if value is not None:
            try:
                scenario = scenario.with_overrides({f"measure.{option}": value})
            except ScenarioError as error:
                raise ScenarioError(f"--{option}: {error}") from None
    return scenario
