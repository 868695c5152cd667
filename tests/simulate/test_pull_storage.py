"""Storage units: accepted events travel to them over the network of the event builder."""

from typing import Any

import pytest

from daqloom.deployment.fabric_system import fabric_system
from daqloom.deployment.scenarios import load, override
from daqloom.results.result import Result
from daqloom.scenario import Scenario, ScenarioError
from daqloom.study.methods import methods
from simulate.test_run_every_network import NETWORK, cell

MASK = 2**64 - 1
STORED: dict[str, Any] = {"storage.units": 2, "storage.accepted": "30 %"}
SMALL_EVENTS = {"event.size": "40 kB"}
"""Built in less than 0.1 ms."""
LOSSLESS = {name: table for name, table in NETWORK.items() if name != "RoCE"}


def mixed(value: int) -> int:
    """The finaliser of SplitMix64."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def accepts(event: int, seed: int, share: float) -> bool:
    drawn = mixed(mixed(seed) + (event + 1) * 0x9E3779B97F4A7C15 & MASK)
    return (drawn >> 11) * 2.0**-53 < share


def regular(scenario: Scenario, **more: object) -> Scenario:
    """One event each 500 us, from the start, and none in flight at the end."""
    return override(
        scenario,
        {
            "event.arrivals": "deterministic",
            "event.rate": "2 kHz",
            "run.duration": "20.4 ms",
            "run.warmup": "0 s",
            **STORED,
            **more,
        },
    )


def metrics(result: Result) -> dict[str, Any]:
    return {name: result.metric(name) for name in ("events_built", "events_stored")}


@pytest.mark.parametrize("network", LOSSLESS)
def test_every_network_carries_the_events_that_number_and_seed_accept(network: str) -> None:
    scenario = regular(cell("pull", network))
    result = methods.simulate(scenario, seed=5)
    expected = sum(accepts(event, 5, 0.3) for event in range(40))  # at 0.5, 1, … 20 ms
    assert metrics(result) == {"events_built": 40, "events_stored": expected}
    assert result.metric("events_accepted") == expected
    assert result.metric("events_unstored") == result.metric("events_storing") == 0
    rate_bps = 8 * 100e3 * expected / 20.4e-3
    assert result.metric("stored_throughput_bps") == pytest.approx(rate_bps)
    assert result.metric("storage_latency_s.min") > 0


def test_storage_units_of_a_farm_are_the_last_hosts_and_at_the_core_routers() -> None:
    scenario = regular(cell("pull", "farm"))
    system = fabric_system(scenario)
    names = [system.fabric.hosts[host].name for host in system.storages]
    assert names == ["storage.0", "storage.1"]
    assert system.storages == [9, 10]  # after 6 readout units and a builder unit of each rack
    # Six readout units are at the routers 0, 1, 0, 1, …, and so the next host is at router 0.
    routers = [system.fabric.peers[end].node for end in system.fabric.peers if end.node in (9, 10)]
    assert [system.fabric.switches[node - 11].name for node in routers] == ["core.0", "core.1"]


def test_the_link_of_a_storage_unit_carries_the_accepted_events() -> None:
    stored = {"storage.units": 1, "storage.accepted": 1, "network.links.storage.rate": "10 Gb/s"}
    result = methods.simulate(regular(load("small-rack"), **stored, **SMALL_EVENTS))
    # 40 kB are 27.6 segments of 1448 B, each with 90 B of headers, preamble and gap.
    expected = 40 * 8 * (40_000 + 28 * 90) / 10e9 / 20.4e-3
    assert result.metrics["link_utilisation"]["storage.0.down"] == pytest.approx(expected, rel=0.01)


def test_events_of_an_unreachable_storage_unit_go_to_the_next() -> None:
    fault = {"what": "cable", "which": "storage.0", "at": "1 us", "lasts": "1 s"}
    changes = {f"faults.injected.cut.{key}": value for key, value in fault.items()}
    changes |= {"storage.accepted": 1, "storage.timeout": "1 ms", **SMALL_EVENTS}
    # A run longer than the fault timeout, which without storage units would have a run control.
    changes |= {"measure.heartbeat": "1 ms", "measure.fault_timeout": "5 ms"}
    result = methods.simulate(regular(load("small-rack"), **changes))
    assert result.metric("events_built") == 40
    # Events 0, 2, … 38 wait for 1 ms, so that event 38, of 19.5 ms, is not stored by 20.4 ms.
    assert result.metric("events_storing") == 1
    assert result.metric("events_stored") == 39
    assert result.metric("storage_latency_s.max") > 1e-3


def test_without_a_reachable_storage_unit_events_are_given_up_and_building_goes_on() -> None:
    fault = {"what": "cable", "which": "storage.0", "at": "1 us", "lasts": "1 s"}
    changes = {f"faults.injected.cut.{key}": value for key, value in fault.items()}
    changes |= {"storage.accepted": 1, "storage.timeout": "1 ms", **SMALL_EVENTS}
    changes["storage.units"] = 1
    result = methods.simulate(regular(load("small-rack"), **changes))
    assert metrics(result) == {"events_built": 40, "events_stored": 0}
    assert result.metric("events_unstored") + result.metric("events_storing") == 40
    assert result.metric("events_storing") == 2  # those of 19.5 and 20 ms
    assert "storage_latency_s" not in result.metrics


def test_a_fabric_without_free_hosts_is_refused() -> None:
    scenario = regular(cell("pull", "tree"), **{"storage.units": 7})
    with pytest.raises(ScenarioError, match=r"storage.units = 7, and the network has 6 hosts"):
        methods.simulate(scenario)


def test_storage_with_units_that_regroup_is_refused() -> None:
    killed = {"faults.injected.a.what": "unit", "faults.injected.a.at": "5 ms"}
    with pytest.raises(ScenarioError, match=r"storage.units = 2 with faults of units or hosts"):
        regular(load("small-rack"), **killed)
