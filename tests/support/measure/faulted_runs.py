"""Measurements with faults: their scenario, and what holds for all their results."""

from daqloom.deployment.scenarios import load, override
from daqloom.results.result import Result
from daqloom.scenario.schema.models import Scenario

KILLED = {"what": "unit", "which": 2, "at": "500 ms"}


def broken(scenario: Scenario, **faults: dict[str, object]) -> Scenario:
    return override(
        scenario,
        {
            f"faults.injected.{name}.{key}": value
            for name, fault in faults.items()
            for key, value in fault.items()
        },
    )


def laptop(**changes: object) -> Scenario:
    """Slow and small: it is the faults that take time."""
    few = {
        "event.rate": "10 kHz",
        "measure.duration": "6 s",
        "measure.warmup": "100 ms",
        "measure.stream_buffer": "6 MB",
        "measure.output_buffer": "6 MB",
    }
    return load("laptop", few | {f"measure.{key}": value for key, value in changes.items()})


def expect_accounted(result: Result) -> None:
    accounts = result.metrics["events_accounted"]
    assert isinstance(accounts, dict)
    assert sum(count for fate, count in accounts.items() if fate != "begun") == accounts["begun"]
    assert min(accounts.values()) >= 0
    assert accounts["built"] > 0
    assert result.metric("events_wrong") == result.metric("events_repeated") == 0
