"""Metrics of a whole run, from its status."""

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from daqloom.control.protocol.states import Goal, Phase, Standing, State
from daqloom.control.run_metrics import METRICS, RunCollector, samples
from daqloom.control.status import Status, UnitStatus


def unit(number: int, standing: Standing = Standing.AVAILABLE, **rates: float) -> UnitStatus:
    return UnitStatus(
        unit=number,
        standing=standing,
        state=State.RUNNING if standing is Standing.AVAILABLE else State.ERROR,
        member=standing is Standing.AVAILABLE,
        rates=rates,
    )


def status(units: tuple[UnitStatus, ...], **more: object) -> Status:
    fields = {
        "run": "r1",
        "scenario": "mine",
        "number": 7,
        "time_s": 12.5,
        "phase": Phase.RUNNING,
        "goal": Goal.RUNNING,
        "epoch": 3,
        "first_mep": 0,
        "failure": "",
        "units": units,
        "events": (),
        "counts": {"units_lost": 2, "regroupings": 4, "refused.token": 9, "unsent_points": 5},
        "built_events": 1000,
        "built_bytes": 2500,
        "lost": {"incomplete": 20, "dropped": 3},
        "rates": {
            "event_rate_hz": 50.0,
            "throughput_bps": 8000.0,
            "latency_p50_s": 0.5,
            "latency_p99_s": 0.75,
            "latency_max_s": 1.0,
            "wait_source": 0.2,
            "wait_peer": 0.0,
            "wait_barrier": 0.25,
            "wait_consumer": 0.1,
            "source_fill": 0.5,
            "disk_free_bytes": 1e9,
        },
    }
    return Status.model_validate(fields | more)


def page(shown: Status | None) -> dict[tuple[str, str], float]:
    """Values by name and value of the metric's own label."""
    collector = RunCollector()
    collector.status = shown
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    found = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            labels = dict(sample.labels)
            assert (labels.pop("run"), labels.pop("scenario")) == ("r1", "mine")
            (own,) = labels.values() or ("",)
            found[sample.name.removeprefix("daqloom_run_"), own] = sample.value
    return found


def test_the_page_has_the_numbers_of_the_status() -> None:
    units = (
        unit(0, wait_source=0.4, wait_consumer=0.05),
        unit(1, wait_source=0.0, wait_consumer=0.15),
        unit(2, Standing.LOST, wait_consumer=0.9),  # no member: it does not count
    )
    found = page(status(units))
    expected: dict[str, dict[str, float]] = {
        "phase": {"running": 1, "error": 0, "waiting": 0},
        "goal": {"running": 1, "ready": 0},
        "number": {"": 7},
        "epoch": {"": 3},
        "members": {"": 2},
        "units": {"available": 2, "lost": 1, "absent": 0},
        "units_in_state": {"running": 2, "error": 1, "ready": 0},
        "events_total": {"": 1000},
        "bytes_total": {"": 2500},
        "lost_events_total": {"incomplete": 20, "dropped": 3, "discarded": 0, "not_written": 0},
        "units_lost_total": {"": 2},
        "regroupings_total": {"": 4},
        "refused_calls_total": {"token": 9, "malformed": 0},
        "event_rate_hertz": {"": 50},
        "throughput_bps": {"": 8000},
        "latency_seconds": {"0.5": 0.5, "0.99": 0.75, "1": 1},
        "waiting_ratio": {"source": 0.2, "peer": 0, "barrier": 0.25, "consumer": 0.1},
        "waiting_max_ratio": {"source": 0.4, "consumer": 0.15},
        "buffer_fill_ratio": {"source": 0.5},
        "disk_free_bytes": {"": 1e9},
        "unsent_points_total": {"": 5},
        "time_seconds": {"": 12.5},
    }
    assert {each.name for each in METRICS} == set(expected)
    for name, values in expected.items():
        assert {label: found[name, label] for label in values} == values
    # Unknown numbers are absent, not zero.
    assert not {("buffer_fill_ratio", "output"), ("waiting_max_ratio", "peer")} & found.keys()


def test_the_page_does_not_grow_with_the_number_of_units() -> None:
    few, many = (
        list(samples(status(tuple(unit(number, wait_peer=0.1) for number in range(count)))))
        for count in (2, 500)
    )
    assert len(few) == len(many) < 100


def test_a_run_without_rates_has_its_state_and_counters_alone() -> None:
    assert page(None) == {}
    found = page(status((unit(0, Standing.ABSENT),), rates={}, number=None))
    assert found["units", "absent"] == 1
    assert found["events_total", ""] == 1000
    names = {name for name, _ in found}
    assert not names & {"event_rate_hertz", "waiting_max_ratio", "latency_seconds"}
