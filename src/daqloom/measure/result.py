"""Result of a measurement: metrics, series and warnings of a finished run."""

import os
import resource
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from daqloom.base.output import write_text
from daqloom.control.control import Control
from daqloom.control.counters.arrivals import trace_text
from daqloom.control.counters.metrics import (
    Reading,
    accounts,
    connection_columns,
    difference,
    fragment_share,
    metrics,
    refusals,
    rows_of,
    waiting,
    window_s,
)
from daqloom.control.counters.warnings import (
    damage,
    lost_events,
    omitted_checks,
    unfinished_files,
    wrong,
)
from daqloom.deployment.fabric_system import fabric_system
from daqloom.device.result import DeviceWatch
from daqloom.device.under_test import DeviceUnderTest
from daqloom.lab.result import Watch
from daqloom.lab.validity import evidence_of, judge
from daqloom.measure.bench import Bench
from daqloom.measure.inject import Injector
from daqloom.measure.plan import MeasurementPlan
from daqloom.measure.programs import Programs
from daqloom.measure.recorder import Recorder, members
from daqloom.measure.timeline import measured_spans
from daqloom.results.course import fault_metrics, series
from daqloom.results.errors import MeasureError
from daqloom.results.metrics import with_unit
from daqloom.results.result import Result
from daqloom.results.timeline import phase_columns, write_phases
from daqloom.scenario.file.unused_keys import rule_for, unused_warnings

MOST_WARNINGS = 50


def children_s() -> float:
    """Return the CPU time of all child processes that have ended (s)."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass
class Record:
    """Record of a run. All times are on the run control's clock (s)."""

    plan: MeasurementPlan
    control: Control
    recorder: Recorder
    injector: Injector
    device: DeviceUnderTest | None
    wall_began_s: float
    """Begin of the measurement, including the setup of its network (`time.perf_counter`)."""
    cpu_began_s: float
    """CPU time before the measurement, of ended children and of kept units (s)."""
    bench: Bench | None = None
    """Units and network that are kept for further measurements."""
    beside: Sequence[Programs] = ()
    """Programs beside the units."""
    began_s: float = 0.0
    """Time when all units first built events."""
    ended_s: float = 0.0
    readings: list[Reading] = field(default_factory=list)
    """Counters at the end of warm-up and of measurement, and in a laboratory also in between."""
    watch: Watch | DeviceWatch | None = None
    in_network: dict[str, Any] = field(default_factory=dict)
    """Metrics of the network, from counters of the laboratory or device."""
    interrupted: bool = False
    failure: str = ""


def measured_result(record: Record, scenario_hash: str) -> Result:
    """Return the result of a run. Raises MeasureError if this machine was too busy for it."""
    scenario, control = record.plan.scenario, record.control
    counted = difference(record.readings[0], record.readings[-1])
    bench = record.bench
    peak_rss_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    found = _metrics(record, counted)
    result = Result(
        scenario=scenario.name,
        scenario_hash=scenario_hash,
        assumed={
            key: value
            for key, value in scenario.assumptions().items()
            if not rule_for(scenario, "measure", key)
        },
        method="measure",
        seed=scenario.run.seed,
        metrics=found,
        engine={
            "wall_s": time.perf_counter() - record.wall_began_s,
            "cpu_s": children_s() + (bench.cpu_s() if bench else 0.0) - record.cpu_began_s,
            "measured_s": window_s(counted),
            "peak_rss_bytes": bench.peak_rss_bytes() if bench else peak_rss_bytes,
            "units": control.run.plan.units,
            "cores": len(os.sched_getaffinity(0)),
        },
        warnings=list(_warnings(record, found))[:MOST_WARNINGS],
        series={
            "run_events": {
                "time_s": [event.time_s - record.began_s for event in control.events],
                "text": [event.text for event in control.events],
            }
        },
    )
    result = replace(result, warnings=[*wrong(result), *result.warnings])
    result = _judge(_with_course(result, record), record)
    if record.device:
        result = _with_warnings(result, *record.device.notes)
    return _cut_short(result, record) if record.interrupted or record.failure else result


def _with_warnings(result: Result, *more: str) -> Result:
    return replace(result, warnings=[*result.warnings, *more])


def _metrics(record: Record, counted: Reading) -> dict[str, Any]:
    """Return the metrics from counters after the warm-up and from counters of the whole run."""
    scenario, control = record.plan.scenario, record.control
    run, totals, measure = control.run, control.totals(), scenario.measure
    rows = rows_of(scenario.protocol.part, measure.transport)
    values: dict[str, Any] = metrics(counted, scenario.packing, rows)
    if scenario.protocol.has_arrivals:
        values["events_waiting"] = waiting(totals)
    if "throughput_bps" in values:
        readouts = scenario.readouts(run.plan.units)
        values["node_throughput_bps"] = values["throughput_bps"] / readouts
    fates = accounts(totals, run.balance(), run.next_mep, scenario.packing, measure.sink)
    values |= {"events_accounted": fates}
    values |= {name: run.counts[name] for name in ("units_lost", "regroupings")}
    values |= {f"events_{f}": fates[f] for f in ("not_processed", "not_written") if f in fates}
    if first_s := max((counters.first_mep_s or 0 for counters in totals.values()), default=0):
        values["first_event_s"] = first_s
    share = fragment_share(list(totals.values())) or 1.0
    for programs in record.beside:
        values |= programs.metrics(window_s(counted), share)
    causes = Counter(refusals(totals))
    causes.update({str(why): count for why, count in control.refused.items()})
    return values | ({"refused": dict(causes)} if causes else {})


def _warnings(record: Record, found: dict[str, Any]) -> Iterator[str]:
    """Yield warnings about the numbers of a result."""
    scenario, totals = record.plan.scenario, record.control.totals()
    yield from lost_events(totals, scenario.packing, scenario.measure.sink)
    yield from damage(totals)
    yield from omitted_checks(totals, scenario.packing)
    yield from unfinished_files(scenario)
    yield from unused_warnings(scenario, "measure")
    for programs in record.beside:
        yield from programs.warnings()
    for event in record.control.events:
        if event.is_trouble:
            yield f"{event.time_s - record.began_s:.2f} s: {event.text}"
    if not found.get("events_built"):
        yield "no event was built after the warm-up; lengthen measure.duration"


def _with_course(result: Result, record: Record) -> Result:
    """Return the result with the course of the run, the cost of faults, and the metrics of the
    network."""
    control, injector = record.control, record.injector
    length_s = record.ended_s - record.began_s
    share = fragment_share(list(control.totals().values())) or 1.0
    # The last heartbeats before the end arrive together with bytes built after it.
    until_s = length_s - record.plan.scenario.measure.heartbeat
    bins = record.recorder.bytes_built.rates(until_s, 8 * share)
    building = members(control.events, record.began_s)
    breaks = injector.since(record.began_s)
    metrics: dict[str, Any] = dict(result.metrics)
    shown: dict[str, Any] = {**result.series, **series(breaks, bins, building)}
    if record.plan.outages:
        lost = injector.events_lost(control.run.balance())
        metrics |= fault_metrics(breaks, bins, building, length_s, lost)
    if control.connections:
        shown["connections"] = connection_columns(control.connections)
    return replace(result, metrics=metrics | record.in_network, series=shown)


def _judge(result: Result, record: Record) -> Result:
    """Return a laboratory's result without the metrics that this machine has distorted."""
    if not isinstance(record.watch, Watch):
        return result
    begin, *between, end = record.readings
    half_s = window_s(difference(begin, end)) / 2
    middle = sorted(between, key=lambda each: abs(window_s(difference(begin, each)) - half_s))[:1]
    # Faults make the halves of a run differ, which is not due to this machine.
    readings = [begin, *middle, end] if middle and not record.plan.outages else []
    judgement = judge(result.metrics, evidence_of(result.metrics, record.watch.end, readings))
    if judgement.refusal:
        raise MeasureError(judgement.refusal)
    warnings = [*judgement.warnings, *result.warnings]
    return replace(result, metrics=judgement.metrics, warnings=warnings)


def _cut_short(result: Result, record: Record) -> Result:
    """Return the result of an interrupted or failed run, with a warning that reports the measured
    time."""
    measure, failure = record.plan.scenario.measure, record.failure
    measured, planned = (
        with_unit(s, "s") for s in (result.engine["measured_s"], measure.duration - measure.warmup)
    )
    why = "the run failed" if failure else "interrupted"
    warning = f"{why}: {measured} of {planned} were measured after the warm-up"
    return replace(
        result, interrupted=not failure, failure=failure, warnings=[warning, *result.warnings]
    )


def with_timeline(result: Result, record: Record, file: Path | None, series: bool) -> Result:
    """Write the timeline to a file; return the result with its series. Raises OutputError."""
    scenario, control, most = record.plan.scenario, record.control, record.plan.stages
    system = fabric_system(scenario)
    spans = measured_spans(control.stages, control.began_ns, system, scenario.building)
    if file:
        write_phases(file, spans, system)
    if any(len(stages) == most for stages in control.stages.values()) and spans:
        begin, end = (with_unit(s, "s") for s in (spans[0].begin_s, spans[-1].end_s))
        result = _with_warnings(
            result,
            f"the timeline shows {begin} to {end} of the run: a unit keeps the last {most:,} "
            "stages of its phases",
        )
    if series:
        result = replace(result, series={**result.series, "phases": phase_columns(spans, system)})
    return result


def with_arrivals(result: Result, record: Record, file: Path) -> Result:
    """Write the arrival times of events to a file; return the result, with warnings about arrivals
    that the file lacks. Raises OutputError."""
    scenario, log, warnings = record.plan.scenario, record.control.arrivals, []
    if log.times_ns:
        write_text(file, trace_text(log, f"{scenario.name}, seed {scenario.run.seed}, measured"))
    else:
        warnings.append(f"no event arrived; {file} is not written")
    if log.beyond:
        warnings.append(
            f"{file} has the first {len(log.times_ns):,} arrivals; {log.beyond:,} more came"
        )
    if regroupings := record.control.run.counts["regroupings"]:
        warnings.append(
            f"arrivals began anew after each of {regroupings} regroupings; {file} lacks those at "
            "an event manager whose unit was lost"
        )
    return _with_warnings(result, *warnings)
