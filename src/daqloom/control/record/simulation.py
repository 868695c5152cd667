"""Record of a simulated run, from the series of its result."""

from bisect import bisect_left
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from daqloom.control.protocol.states import Phase
from daqloom.control.record.meter import Bin
from daqloom.control.record.record import About, Record, Summary
from daqloom.results.result import Result
from daqloom.scenario.schema.models import Scenario


def record_simulation(folder: Path, scenario: Scenario, result: Result) -> None:
    """Write the record of a simulation with a course (`simulate(course=True)`), whose times are
    virtual. Events are in proportion to throughput. Raises OSError."""
    throughput, members = result.series["throughput"], result.series["members"]
    rates = [float(result.metric(name) or 0) for name in ("event_rate_hz", "throughput_bps")]
    events_a_bit = rates[0] / rates[1] if rates[1] else 0.0
    about = About(
        method="simulate",
        scenario=scenario.name,
        began=datetime.now(UTC),
        units=max(members["members"], default=0),
        packing=scenario.packing,
        protocol=scenario.building.protocol,
        transport=scenario.transport.kind,
    )
    record = Record(folder, about)
    record.offset_s = 0.0
    log = result.series.get("run_events", {"time_s": [], "text": []})
    for time_s, text in zip(log["time_s"], log["text"], strict=True):
        record.note(time_s, text, trouble="lost" in text)
    faults = result.series.get("faults", {})
    names = ("time_s", "name", "what", "which", "change")
    for time_s, *words in zip(*(faults.get(name, ()) for name in names), strict=True):
        record.note(time_s, "fault {}: {} {} {}".format(*words), about="fault")
    bins = []
    for begin_s, end_s, bps in zip(*throughput.values(), strict=True):
        changes = bisect_left(members["time_s"], end_s)
        count = members["members"][changes - 1] if changes else 0
        bits = bps * (end_s - begin_s)
        row = {"events": bits * events_a_bit, "bytes": bits / 8, "members": count}
        phase = Phase.RUNNING if count else Phase.HALTING
        bins.append(Bin(begin_s, end_s - begin_s, row, phase, {}))
    accounted = result.metrics.get("events_accounted")
    fates = accounted if isinstance(accounted, Mapping) else {}
    lost = {
        name: int(n)
        for name, n in fates.items()
        if n and name not in ("begun", "built", "in_flight")
    }
    length_s = sum(each.width_s for each in bins)
    record.add(0.0, bins)
    record.close(
        Summary(
            state="interrupted" if result.interrupted else "ended",
            length_s=length_s,
            building_s=length_s,
            events=round(sum(each.run["events"] for each in bins)),
            bytes=sum(each.run["bytes"] for each in bins),
            lost=lost,
            units_lost=int(result.metric("units_lost") or 0),
            regroupings=int(result.metric("regroupings") or 0),
        )
    )
