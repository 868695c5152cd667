"""Costs of this machine's hosts, as measured and printed."""

import tomllib
from dataclasses import replace

import pytest

from daqloom.deployment.scenarios import load
from daqloom.machine import calibrate as module
from daqloom.machine.calibrate import Calibration, calibrate, one_way
from daqloom.results.errors import MeasureError


def test_a_latency_is_half_a_round_trip_less_its_messages_and_earlier_posts() -> None:
    assert one_way([100e-6, 30e-6], 10e-6) == pytest.approx((30e-6, 0.0))
    others = [{"busy": {"latencies_s": s}} for s in ([100e-6, 50e-6], [100e-6], [20e-6])]
    found = module._latencies("busy", {}, others, 10e-6)
    assert found == pytest.approx((80e-6, 30e-6, 70e-6, 0.0))


FOUND = Calibration(
    transport="tcp",
    where="namespaces",
    message_cost_s=17.44e-6,
    latencies_s=(10e-6, 30.04e-6, 500e-6),
    busy_latency_s=5e-6,
    copies_bps=128.04e9,
    timer_lateness_s=(70e-6, 80e-6, 900e-6),
    generated_bps=40e9,
    checked_bps=50e9,
    byte_cost_s=0.8e-9,
)


def test_the_table_is_one_of_a_scenario_with_its_percentiles() -> None:
    hosts = tomllib.loads(FOUND.table())["hosts"]
    assert hosts == {
        "message_cost": "17.4 us",
        # A byte is made in 0.2 ns, sent in 0.8; taken in in 0.8, checked in 0.16.
        "send_rate": "8 Gb/s",
        "receive_rate": "8.33 Gb/s",
        "latency": {"mean": "30 us"},
        "local_rate": "128 Gb/s",
    }
    flat = {"hosts.latency.mean": hosts.pop("latency")["mean"]}
    scenario = load("lab-shift", flat | {f"hosts.{key}": value for key, value in hosts.items()})
    assert scenario.hosts.message_cost == pytest.approx(17.4e-6)
    assert scenario.hosts.latency.mean_s == pytest.approx(30e-6)
    assert 'file = "a.txt"' in FOUND.table("a.txt")
    told = FOUND.to_dict()
    assert told["latency_s"] == {"p50": 30.04e-6, "p99": 500e-6, "max": 500e-6}
    assert told["timer_lateness_s"]["p50"] == 80e-6
    shm = replace(FOUND, transport="shm", copies_bps=40e9, byte_cost_s=None)
    assert shm.send_bps == pytest.approx(20e9)  # 0.2 ns to make a byte, 0.2 to copy it
    assert shm.receive_bps == pytest.approx(50e9)


@pytest.mark.process
def test_over_a_network_a_byte_costs_a_copy_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {
        "cost_s": 20e-6,
        "long_cost_s": 20e-6,  # hidden by the wake-ups of short messages
        "busy": {"times_s": [1e-3], "heard_s": [1e-3]},
        "rested": {"times_s": [1e-3], "heard_s": [1e-3]},
    }
    monkeypatch.setattr(module, "_echo", lambda *_: [told, told])
    monkeypatch.setattr(module, "TIMERS", 5)
    found = calibrate()
    assert found.byte_cost_s == pytest.approx(8 / found.copies_bps)
    assert found.send_bps < found.generated_bps
    assert found.receive_bps < found.checked_bps


@pytest.mark.parametrize("transport", ["tcp", "shm"])
@pytest.mark.process
def test_this_machine_is_measured(transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RESTED", 5)
    monkeypatch.setattr(module, "TIMERS", 5)
    found = calibrate(transport, rounds=50)
    assert found.where in ("namespaces", "loopback")
    assert found.message_cost_s > 0
    assert len(found.latencies_s) == 5
    assert found.copies_bps > 0
    assert found.generated_bps > 0
    assert found.checked_bps > 0
    assert (found.byte_cost_s is None) == (transport == "shm")
    assert ((found.byte_cost_s or 0) > 0) == (transport == "tcp")
    assert min(found.timer_lateness_s) > 0


@pytest.mark.process
def test_units_that_answer_at_once_give_the_latency_of_messages(monkeypatch) -> None:
    monkeypatch.setattr(module, "RESTED", 4)
    monkeypatch.setattr(module, "TIMERS", 5)
    found = calibrate(units=4, rounds=20)
    assert found.units == 4
    assert len(found.latencies_s) == 3 * 4
    assert 0 <= min(found.latencies_s) <= found.latency_s
    assert 'kind = "exponential"' in found.table()


@pytest.mark.process
def test_an_unknown_transport_is_refused_in_one_sentence() -> None:
    with pytest.raises(MeasureError, match="there is no transport 'nonsense'"):
        calibrate("nonsense")
