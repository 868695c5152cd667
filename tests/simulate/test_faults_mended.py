"""A mended schedule that is applied while the system runs."""

from typing import Any

import pytest

from daqloom.results.result import Result
from daqloom.simulate.run import simulate
from support.regrouping import SMALL, members, rate_bps, scenario_of, sums_up

TREE = {
    **SMALL,
    "network.spines": 2,
    "network.hosts_per_leaf": 6,
    "network.spine_links": 3,
    "network.switch.radix": 12,
    "readout.units": 12,
    "run.duration": "20 ms",
    "transport.control_service_level": 1,
    "network.routing": "mended",
    "faults.detection": "100 us",
    "faults.sweep": "400 us",
}
"""Twelve nodes on two leaves, with six cables up from each."""
BROKEN = {"what": "cable", "which": "leaf00 port 7", "at": "5 ms"}


def run(**keys: Any) -> Result:
    fault = {f"faults.injected.x.{key}": value for key, value in (BROKEN | keys).items()}
    return simulate(scenario_of(TREE, fault), seed=1)


def test_the_schedule_changes_with_the_tables() -> None:
    """Five uplinks carry all writes of six nodes of a leaf in the mended order, which has twelve
    phases, none of copies within all nodes, in place of eleven."""
    result = run()
    assert members(result) == [12, 0, 12]
    columns = result.series["run_events"]
    log = dict(zip(columns["text"], columns["time_s"], strict=True))
    assert log["halting: there is another schedule"] == pytest.approx(5.5e-3)
    assert result.metric("units_lost") == 0
    assert result.metric("regroupings") == 1
    assert sums_up(result)
    before, after = rate_bps(result, 1e-3, 4.7e-3), rate_bps(result, 10e-3)
    assert after == pytest.approx(before * 11 / 12, rel=0.02)


def test_without_it_the_other_tables_cost_more() -> None:
    tables = {"network.routing": "minimal:balanced"}
    fault = {f"faults.injected.x.{key}": value for key, value in BROKEN.items()}
    scenario = scenario_of(TREE, tables, fault)
    usual = simulate(scenario, seed=1)
    assert members(usual) == [12]
    assert rate_bps(usual, 10e-3) < 0.9 * rate_bps(run(), 10e-3)


def test_with_the_cable_the_first_schedule_comes_back() -> None:
    result = run(lasts="6 ms")
    assert members(result) == [12, 0, 12, 0, 12]
    columns = result.series["run_events"]
    log = zip(columns["text"], columns["time_s"], strict=True)
    halts = [at_s for text, at_s in log if text == "halting: there is another schedule"]
    assert halts == [pytest.approx(5.5e-3), pytest.approx(11.5e-3)]
    assert sums_up(result)
    before, again = rate_bps(result, 1e-3, 4.7e-3), rate_bps(result, 14e-3)
    assert again == pytest.approx(before, rel=0.03)
    result = run(lasts="90 us")
    assert members(result) == [12]
    assert result.metric("regroupings") == 0
