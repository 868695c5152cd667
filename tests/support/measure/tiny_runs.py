"""Runs of a few processes that end after some events, and their results."""

from collections.abc import Mapping

from daqloom.deployment.scenarios import override
from daqloom.results.result import Result
from daqloom.scenario.schema.models import Scenario
from support.measure.controlled_runs import HUNG_S

MEASURED = {
    "warmup": "50 ms",
    "duration": f"{HUNG_S} s",
    # No unit is lost for lack of a processor.
    "fault_timeout": f"{HUNG_S} s",
    "stream_buffer": "1 MB",
    "output_buffer": "1 MB",
    "waiting": "blocking",
}


def changed(tiny: Mapping[str, object], changes: Mapping[str, object]) -> Scenario:
    """The scenario with changed keys; `__` stands for a dot."""
    keys = {key.replace("__", "."): value for key, value in changes.items()}
    return override(Scenario.model_validate(tiny), keys)


def expect_built_right(result: Result, events: int = 1000) -> None:
    assert result.metric("events_built") >= events
    for name in ("events_wrong", "events_incomplete", "units_lost"):
        assert result.metric(name) == 0


def expect_all_built(result: Result, readouts: int) -> None:
    """All events of a run without phases are built."""
    accounted = result.metrics["events_accounted"]
    assert accounted["begun"] == accounted["built"]
    assert result.metric("node_throughput_bps") == result.metric("throughput_bps") / readouts
    assert "phases" not in result.metrics


TINY_DAQPIPE = {
    "name": "tiny",
    "event": {"fragment_size": "200 B", "packing": 20, "fragment_sizes": "poisson"},
    "building": {"protocol": "daqpipe", "credits": 3, "parallel_sends": 1},
    "readout": {"units": 2, "streams": 2},
    "network": {"technology": "infiniband", "leaves": 1, "spines": 1, "hosts_per_leaf": 2},
    "measure": MEASURED | {"events": 2000},
}


def tiny_daqpipe(**changes: object) -> Scenario:
    return changed(TINY_DAQPIPE, changes)
