"""Random small systems through the simulator: every valid one can be run."""

import pytest
from hypothesis import HealthCheck, given, settings

from daqloom.scenario import Scenario
from daqloom.study.methods import methods
from support.strategies import scenarios

pytest.importorskip("daqloom._engine")


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios())
def test_books_balance_and_numbers_agree_in_any_system(scenario: Scenario):
    # `simulate` itself raises if bytes or cells were lost or won.
    result = methods.simulate(scenario)
    window_s = scenario.run.duration - scenario.run.warmup
    metrics = result.metrics
    assert metrics["event_rate_hz"] == pytest.approx(metrics["events_built"] / window_s)
    assert 0 <= metrics["ack_hops"] <= metrics["packet_hops"]
    assert metrics["packets_dropped"] == sum(metrics["drops_by_port"].values())
    assert metrics["retransmission_timeouts"] == sum(metrics["timeouts_by_cause"].values())
    assert all(0 <= share <= 1.001 for share in metrics["link_utilisation"].values())
    tor = scenario.network.switch.tor
    if tor.buffer:
        assert metrics["buffer_peak_bytes"]["tor"] <= tor.buffer
    if tor.architecture == "infinite":
        assert metrics["packets_dropped"] == 0
    if metrics["events_built"]:
        latency = metrics["collection_latency_s"]
        assert latency["min"] <= latency["mean"] <= latency["max"]
        assert latency["p50"] <= latency["p99"] <= latency["max"]


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios())
def test_the_same_seed_gives_the_same_result(scenario: Scenario):
    assert methods.simulate(scenario).metrics == methods.simulate(scenario).metrics


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios())
def test_any_system_can_be_analysed(scenario: Scenario):
    peak = methods.analyse(scenario).metric("buffer_peak_bytes.tor")
    assert peak is None or peak >= 0
