"""Simulated runs that lose units and regroup: their scenario, and parts of their results."""

from statistics import fmean
from typing import Any

from daqloom.results.result import Result
from daqloom.scenario.document import put
from daqloom.scenario.schema.models import Scenario

SMALL = {
    "building.protocol": "shift",
    "building.dummies": "none",
    "network.technology": "infiniband",
    "network.shape": "fat-tree",
    "network.leaves": 2,
    "network.spines": 1,
    "network.spine_links": 2,
    "network.hosts_per_leaf": 2,
    "network.switch.radix": 4,
    "network.links.rate": "25 Gb/s",
    "event.fragment_sizes": "fixed",
    "event.packing": 300,
    "readout.units": 4,
    "run.duration": "20 ms",
    "run.warmup": "0 s",
    "transport.retry_timeout": "200 us",
    "measure.heartbeat": "200 us",
    "measure.fault_timeout": "1 ms",
    "measure.join_time": "0 s",
}
"""Four nodes on a tree, under a run control with a thousandth of its usual times."""


def scenario_of(*tables: dict[str, Any]) -> Scenario:
    document: dict[str, Any] = {}
    for table in tables:
        for key, value in table.items():
            put(document, key, value)
    return Scenario.model_validate({"name": "regroup", **document})


def fault(name: str = "x", **keys: Any) -> dict[str, Any]:
    given = {"what": "unit", "which": "2", "at": "5 ms", **keys}
    return {f"faults.injected.{name}.{key}": value for key, value in given.items()}


def members(result: Result) -> list[int]:
    return list(result.series["members"]["members"])


def rate_bps(result: Result, begin_s: float, end_s: float = 1.0) -> float:
    """Mean throughput of the bins that begin in a time."""
    columns = (result.series["throughput"][name] for name in ("begin_s", "throughput_bps"))
    return fmean(bps for at_s, bps in zip(*columns, strict=True) if begin_s <= at_s < end_s)


def sums_up(result: Result) -> bool:
    fates = dict(result.metrics["events_accounted"])
    return fates.pop("begun") == sum(fates.values())
