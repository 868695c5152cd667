"""Killed and stopped units in a simulated run: the others regroup, as in a measured run."""

import random
from typing import Any

import pytest

from daqloom.control.counters.warnings import fates
from daqloom.deployment.scenarios import load
from daqloom.results.result import Result
from daqloom.scenario.errors import ScenarioError
from daqloom.simulate.run import simulate
from support.regrouping import SMALL, fault, members, rate_bps, scenario_of, sums_up

HEARTBEAT_S, TIMEOUT_S = 0.2e-3, 1e-3


GONE = {"measure.restart": False}
AFTER_S = 6e-3
"""Time after the first fault (s)."""


def run(*tables: dict[str, Any], seed: int = 1) -> Result:
    return simulate(scenario_of(SMALL, *tables), seed=seed)


def expect_regrouped(result: Result, *counts: int) -> None:
    """Assert that these numbers of units build, in this order, and that each event has one fate."""
    assert members(result) == list(counts)
    assert sums_up(result)


def expect_detected_stop(result: Result) -> None:
    """A unit last reports up to a heartbeat before it stops, and is lost when it was silent for
    more than the fault timeout; the run control looks twice a heartbeat."""
    detected_s = result.metric("fault_detection_s.x")
    assert TIMEOUT_S - HEARTBEAT_S <= detected_s <= TIMEOUT_S + HEARTBEAT_S / 2 + 1e-9
    expect_regrouped(result, 4, 0, 3, 0, 4)


def test_the_others_go_on_without_a_killed_unit_also_over_tcp() -> None:
    """One of n MFPs in a round of each of n nodes stays there: n² are written in n - 1 times that
    of one on a wire. The slot of the lost unit is left out: 9 / 2 in place of 16 / 3."""
    result = run(fault(how="down"), GONE)
    expect_regrouped(result, 4, 0, 3)
    assert result.metric("units_lost") == result.metric("regroupings") == 1
    assert result.metric("fault_detection_s.x") == 0, "the end of its process is reported"
    assert result.metric("fault_events_lost.x") > 0
    share = rate_bps(result, AFTER_S) / rate_bps(result, 1e-3, 4.7e-3)
    assert share == pytest.approx(27 / 32, rel=0.03)
    assert result.metric("fault_recovery_s.x") < 1e-3
    result = simulate(scenario_of(changed(SMALL, TCP), fault(how="down"), GONE), seed=1)
    expect_regrouped(result, 4, 0, 3)
    assert result.metric("units_lost") == 1
    assert result.metric("fault_recovery_s.x") < 2e-3


def test_each_fault_has_the_events_that_were_lost_until_the_next() -> None:
    """The first costs the same as alone until then, and both together all lost events."""
    first, second = fault(how="down"), fault("y", how="down", which="3", at="12 ms")
    alone = run(first, GONE, {"run.duration": "12 ms"}).metric("fault_events_lost.x")
    both = run(first, second, GONE)
    assert both.metric("fault_events_lost.x") == alone > 0
    assert both.metric("fault_events_lost.y") > 0
    fates = ("incomplete", "dropped", "discarded", "unfinished", "skipped")
    lost = sum(both.metric(f"events_accounted.{fate}") for fate in fates)
    assert both.metric("fault_events_lost.x") + both.metric("fault_events_lost.y") == lost


def test_a_killed_unit_returns_after_the_pause_and_the_time_to_join() -> None:
    """The pause is a fault timeout after its first loss, checked twice a heartbeat."""
    result = run(fault(how="down"))
    expect_regrouped(result, 4, 0, 3, 0, 4)
    back_s = result.series["members"]["time_s"][3] - 5e-3
    assert TIMEOUT_S <= back_s <= TIMEOUT_S + HEARTBEAT_S / 2 + 1e-9
    killed = fault(how="down")
    at_once = run(killed).series["members"]["time_s"][3]
    later = run(killed, {"measure.join_time": "3 ms"}).series["members"]["time_s"][3]
    assert later - at_once == pytest.approx(3e-3, abs=HEARTBEAT_S)
    twice = (fault(how="down"), fault("y", how="down", at="5.5 ms"))
    result = run(*twice)
    assert result.metric("faults_begun") == 1
    assert "fault_detection_s.y" not in result.metrics


def test_a_stop_is_detected_within_the_bounds_of_the_live_run_control() -> None:
    for at_us in (5000, 5070, 5130):
        expect_detected_stop(run(fault(how="stopped", at=f"{at_us} us", lasts="4 ms")))
    result = run(fault(how="stopped", lasts="400 us"))
    expect_regrouped(result, 4)
    assert result.metric("faults_begun") == 1
    assert result.metric("faults_detected") == 0
    assert result.metric("fault_events_lost.x") == 0
    stop = fault(how="stopped", lasts="4 ms")
    expect_detected_stop(simulate(scenario_of(DAQPIPE, stop), seed=1))


KILLS = [fault(f"k{unit}", which=str(unit), how="down") for unit in range(3)]
"""Three of four units are killed at 5 ms."""


def test_too_few_units_left_wait_for_the_others_or_have_a_warning() -> None:
    result = run(*KILLS, {"measure.minimum": 4})
    expect_regrouped(result, 4, 0, 4)
    assert result.metric("units_lost") == 3
    # The fourth unit waits for a fault timeout.
    result = run(*KILLS, {"measure.minimum": 4}, GONE)
    assert members(result) == [4, 0]
    assert result.metric("faults_recovered") == 0
    (warning,) = (each for each in result.warnings if each.startswith("nothing is built from 6 ms"))
    assert "too few units are left, 1 of 4" in warning


def test_without_faults_a_run_is_the_same_as_before_they_begin() -> None:
    usual = run({"run.duration": "4 ms"})
    later = run({"run.duration": "4 ms"}, fault(how="down", at="10 ms"))
    assert usual.metric("events_built") == later.metric("events_built")
    assert "run_events" not in usual.series
    assert later.metric("faults_begun") == 0


PULL = {
    "building.protocol": "pull",
    "building.dummies": None,
    "event.fragment_sizes": None,
    "event.packing": None,
    "event.size": "60 kB",
    "event.rate": "10 kHz",
    "event.arrivals": "deterministic",
    "readout.units": 2,
    "builders.units": 2,
}
TCP = {
    "network.technology": "ethernet",
    "network.links.delay": "1 us",
    "transport.kind": "tcp",
    "transport.retry_timeout": None,
}


def changed(*tables: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of all tables but those that are None."""
    merged = {key: value for table in tables for key, value in table.items()}
    return {key: value for key, value in merged.items() if value is not None}


@pytest.mark.parametrize(
    "keys",
    [
        {"readout.card.buffer": "1 MB", "event.rate": "1 MHz"},
        {"flows.x.source": 0, "flows.x.destination": 1, "flows.x.size": "1 kB"},
    ],
)
def test_a_killed_unit_that_cannot_regroup_is_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match=r"faults\.injected\.x: how = \"down\""):
        run(keys, fault(how="down"))


@pytest.mark.parametrize("unit", [0, 1, 2, 3])
@pytest.mark.parametrize("transport", [{}, TCP], ids=["rdma", "tcp"])
def test_units_of_pull_building_go_on_without_a_killed_one(unit, transport) -> None:
    """Units 0 and 1 are readout units, 2 and 3 builder units. Events come each 100 us, and wait
    between two epochs; the killed builder unit had one at most. Without a readout unit all events
    of 15 ms lack its fragments, one at the end is in flight."""
    document = changed(SMALL, PULL, transport)
    result = simulate(scenario_of(document, fault(how="down", which=str(unit)), GONE), seed=1)
    expect_regrouped(result, 4, 0, 3)
    assert result.metric("units_lost") == 1
    assert result.metric("fault_detection_s.x") == 0, "the end of its process is reported"
    assert result.metric("events_accounted.begun") in (199, 200)
    assert result.metric("events_accounted.skipped") == 0
    incomplete = 0 if unit > 1 else 150
    assert result.metric("fault_events_lost.x") == pytest.approx(incomplete, abs=1)
    size = 60_000 if unit > 1 else 30_000
    assert rate_bps(result, AFTER_S) == pytest.approx(8 * size * 10e3, rel=0.02)


def test_a_fault_at_any_time_is_the_loss_of_its_unit() -> None:
    """1.6 ms of the engine is a number below 1.6 ms."""
    document = changed(SMALL, PULL, {"event.rate": "100 kHz"})
    for at_us in range(1000, 2000, 100):
        result = simulate(scenario_of(document, fault(how="down", at=f"{at_us} us")), seed=1)
        assert result.metric("fault_detection_s.x") == 0


DAQPIPE = {key: value for key, value in SMALL.items() if key != "building.dummies"} | {
    "building.protocol": "daqpipe",
    "readout.streams": 1,
    "event.rate": "6 MHz",
}
"""300 events are a MEP: one in 50 us."""


@pytest.mark.parametrize("unit", [0, 2])
@pytest.mark.parametrize("mode", ["pull", "push"])
def test_units_of_daqpipe_go_on_without_a_killed_one(unit: int, mode: str) -> None:
    """Even the first, with the event manager; it comes back after a fault timeout. Data that
    sources deliver meanwhile is built later."""
    keys = {"building.mode": mode}
    killed = fault(how="down", which=str(unit), at="5.02 ms")
    result = simulate(scenario_of(DAQPIPE, keys, killed), seed=1)
    expect_regrouped(result, 4, 0, 3, 0, 4)
    assert result.metric("units_lost") == 1
    assert result.metric("fault_detection_s.x") == 0, "the end of its process is reported"
    back_s = result.series["members"]["time_s"][3] - 5.02e-3
    lost = result.metric("fault_events_lost.x")
    assert lost == pytest.approx(6e6 * back_s, abs=300 * 10)
    assert result.metric("events_accounted.begun") == pytest.approx(6e6 * 20e-3, abs=300 * 10)


def host_of(number: int) -> dict[str, Any]:
    return {"what": "host", "which": f"H{number // 2:02}-{number % 2:02}"}


def test_the_unit_of_a_failed_host_is_lost_until_the_host_is_up() -> None:
    """The run control restarts the unit at its next look, twice a heartbeat, a fault timeout after
    the loss at the earliest."""
    result = run(fault(**host_of(2), lasts="6 ms"))
    expect_regrouped(result, 4, 0, 3, 0, 4)
    assert result.metric("units_lost") == 1
    assert result.metric("fault_detection_s.x") == 0
    back_s = result.series["members"]["time_s"][3]
    assert 11e-3 <= back_s <= 11e-3 + HEARTBEAT_S
    assert result.metric("fault_events_lost.x") > 0
    result = run(fault(**host_of(2)))
    expect_regrouped(result, 4, 0, 3)
    assert result.metric("faults_recovered") == 1
    first = fault("first", **host_of(1), lasts="4 ms")
    second = fault("second", **host_of(1), at="7 ms", lasts="6 ms")
    result = run(first, second)
    assert members(result) == [4, 0, 3, 0, 4]
    assert result.series["members"]["time_s"][3] >= 13e-3


def expect_as_live(result: Result) -> None:
    """Each event has one fate; all losses are the faults'; no recovery precedes its detection."""
    assert sums_up(result)
    accounts = dict(result.metrics["events_accounted"])
    lost = accounts["begun"] - accounts["built"] - accounts["in_flight"]
    assert sum(result.metrics["fault_events_lost"].values()) == lost
    recoveries = result.metrics.get("fault_recovery_s", {})
    for name, recovery_s in recoveries.items():
        assert recovery_s >= result.metrics.get("fault_detection_s", {}).get(name, 0.0)


def laptop(**fault: object) -> Result:
    """Four units, 20 000 events a second in MEPs of 500."""
    keys = {"event.rate": "20 kHz", "run.warmup": "0 s", "run.duration": "10 s"}
    given = {"what": "unit", "which": "1", "at": "3 s", **fault}
    scenario = load("laptop", keys | {f"faults.injected.x.{key}": given[key] for key in given})
    return simulate(scenario, seed=1)


ROUND = 4 * 500
"""Events of a round of its four units."""


def test_without_a_stopped_unit_all_events_lack_its_fragments() -> None:
    """Events of the time in which it stands still are incomplete: those from before it is declared
    lost are built afterwards."""
    result = laptop(how="stopped", lasts="4 s")
    expect_as_live(result)
    assert result.metric("fault_events_lost.x") == pytest.approx(4 * 20e3, abs=ROUND)
    assert result.metric("events_incomplete") == result.metric("fault_events_lost.x")
    assert result.metric("events_built") == pytest.approx(6 * 20e3, abs=ROUND)
    assert result.metric("event_rate_hz") == pytest.approx(20e3, abs=ROUND / 10)
    detected_s = result.metric("fault_detection_s.x")
    assert result.metric("fault_recovery_s.x") == pytest.approx(detected_s, abs=0.1)
    assert "80,000 incomplete" in " ".join(fates(result))
    assert not result.warnings


def test_without_a_killed_unit_events_are_incomplete_until_it_is_back() -> None:
    """The run control starts it again after a fault timeout, 1 s, and its process takes as long."""
    result = laptop(how="down")
    expect_as_live(result)
    assert result.metric("fault_events_lost.x") == pytest.approx(2 * 20e3, abs=ROUND)
    assert result.assumed["measure.join_time"] == "1 s"
    gone = laptop(how="down", at="9 s")
    assert gone.metric("fault_detection_s.x") == 0
    assert gone.metric("fault_events_lost.x") == pytest.approx(1 * 20e3, abs=ROUND)


PORT = {"what": "port", "how": "down", "which": "H00-01"}


def test_units_that_do_not_reach_each_other_regroup_and_lose_nothing() -> None:
    """Without retransmissions all stand still until connections are new. The run control halts them
    after a fault timeout, 1 s, without progress, and needs another one to find that they do not
    drain, again and again until the port is up after 4 s; the last attempt may begin just
    before."""
    result = laptop(**PORT, lasts="4 s")
    expect_as_live(result)
    assert result.metric("regroupings") >= 1
    assert 4 <= result.metric("fault_recovery_s.x") <= 4 + 2 * 1.2
    assert result.metric("fault_events_lost.x") <= 2 * ROUND
    assert result.metric("events_built") == pytest.approx(10 * 20e3, abs=ROUND)


def test_units_that_cannot_be_reached_are_lost_if_the_fault_timeout_is_short() -> None:
    """Its queue pairs give up after 8 retries, 1.6 ms; then it is left out for good."""
    result = run(fault(**PORT), GONE)
    expect_as_live(result)
    assert result.metric("units_lost") == 1
    assert members(result)[:1] + members(result)[-1:] == [4, 3]
    assert result.metric("events_incomplete") > 0
    result = run(fault(**PORT), {"measure.fault_timeout": "20 ms"})
    assert "events_accounted" not in result.metrics


def test_a_slow_unit_costs_no_event_and_a_spare_those_in_flight() -> None:
    result = run(fault(how="slow", factor=3, lasts="5 ms"), {"hosts.message_cost": "1 us"})
    expect_as_live(result)
    assert members(result) == [4]
    assert result.metric("fault_events_lost.x") == 0
    # Events lack nothing then, but for those in flight: two rounds of five units.
    spare = {"network.hosts_per_leaf": 3, "network.switch.radix": 6, "hosts.spares": 1}
    result = run(fault(how="down"), spare, GONE)
    assert members(result) == [4, 0, 4]
    expect_as_live(result)
    assert 0 < result.metric("fault_events_lost.x") <= 300 * 2 * 5


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    "building", [SMALL, changed(SMALL, PULL), DAQPIPE], ids=["shift", "pull", "daqpipe"]
)
def test_any_faults_cost_all_losses_and_are_detected_before_a_recovery(building, seed) -> None:
    draw = random.Random(seed)
    faults = {}
    for name in "abc"[: draw.randint(1, 3)]:
        kinds = [
            {"how": "down"},
            {"how": "stopped", "lasts": f"{draw.randint(100, 6000)} us"},
            {"how": "slow", "factor": 3, "lasts": "2 ms"},
            {**host_of(draw.randrange(4)), "lasts": f"{draw.randint(100, 6000)} us"},
            {"what": "port", "which": "leaf00 port 1", "lasts": f"{draw.randint(10, 3000)} us"},
        ]
        given = {"which": str(draw.randrange(4)), "at": f"{draw.randint(2000, 15000)} us"}
        faults |= fault(name, **given | draw.choice(kinds))
    keys = {"hosts.message_cost": "100 ns", "measure.restart": draw.random() < 0.7}
    result = simulate(scenario_of(building, keys, faults), seed=seed)
    expect_as_live(result)
