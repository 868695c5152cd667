"""Spare hosts: which they are, and how units of lost hosts move there, simulated and for real."""

import re
from typing import Any

import pytest

from daqloom.deployment.fabric_system import FabricSystem, fabric_system
from daqloom.deployment.scenarios import load, override
from daqloom.measure.configure import places
from daqloom.measure.plan import plan_of
from daqloom.measure.run import measure
from daqloom.scenario import ScenarioError
from daqloom.simulate.run import simulate
from daqloom.topology.schedule.slots import DUMMY
from support.measure.faulted_runs import KILLED, broken, expect_accounted, laptop
from support.regrouping import SMALL, fault, members, scenario_of, sums_up
from support.small_fabrics import small


def forty(**changes: object) -> FabricSystem:
    """LHCb's tenth: 20 hosts on each leaf."""
    given = {"event.groups": [], **changes}
    return fabric_system(load("lhcb-10-percent", given))


def test_spares_are_where_the_schedule_has_dummies_and_else_behind_the_others() -> None:
    """38 nodes fill 18 of the second leaf's 20 ports, which have slots all the same."""
    system = forty(**{"readout.units": 38, "hosts.spares": 1})
    assert len(system.readouts) == len(system.spares) == 40
    assert [(slot, host) for slot, host in enumerate(system.spares) if host != DUMMY] == [(38, 38)]
    assert system.hosts == list(range(39))
    assert system.nodes == 38
    without = forty(**{"readout.units": 38})
    assert system.readouts.tolist() == without.readouts.tolist(), "units are where they were"
    system = forty(**{"network.leaves": 3, "hosts.spares": 2})
    assert len(system.readouts) == 40
    assert system.spares.tolist() == [DUMMY] * 40 + [40, 41]
    both = forty(**{"network.leaves": 3, "readout.units": 39, "hosts.spares": 2})
    assert both.spares.tolist() == [DUMMY] * 39 + [39, 40]
    wide = {"network.leaves": 3, "readout.units": 39, "building.dummies": "all-ports"}
    everywhere = forty(**wide, **{"hosts.spares": 2})
    assert everywhere.spares.tolist() == [DUMMY] * 39 + [39, 40] + [DUMMY] * 19
    with pytest.raises(ScenarioError, match=r"hosts.spares = 1, and the network has 0 hosts"):
        forty(**{"hosts.spares": 1})
    with pytest.raises(ScenarioError, match=r"hosts.spares"):
        load("small-rack", {"hosts.spares": 1})


def test_a_table_names_its_spares() -> None:
    units = [{"unit": unit, "host": unit} for unit in range(3)]
    spare: dict[str, object] = {"unit": 3, "role": "spare", "host": "H01-01"}
    scenario = small(hosts__placement="table", hosts__units=[*units, spare])
    system = fabric_system(scenario)
    assert scenario.is_folded
    assert scenario.nodes == system.nodes == 3
    assert system.spares.tolist() == [DUMMY, DUMMY, DUMMY, 3]
    where = places(scenario)
    assert where.spares == [-1, -1, -1, 3]
    assert where.units == 4
    rules = plan_of(scenario).rules
    assert rules.units == 4
    assert rules.slots.spares == where.spares
    first = {**spare, "unit": 0}
    others = [{**unit, "unit": unit["unit"] + 1} for unit in units]
    with pytest.raises(ScenarioError, match="unit 1 behind a spare; give spares the last numbers"):
        small(hosts__placement="table", hosts__units=[first, *others])


SIX = {**SMALL, "network.hosts_per_leaf": 3, "network.spine_links": 3, "network.switch.radix": 6}
SIX |= {"building.dummies": "used-ports", "hosts.spares": 2}
"""Four units on six hosts: three on the first leaf, and one, with two spares, on the second."""


def simulated(**keys: Any) -> Any:
    killed = fault(how="down") | {"measure.restart": False}
    return simulate(scenario_of(SIX, killed, keys), seed=1)


def throughput(result: Any, begin_s: float, end_s: float) -> float:
    columns = result.series["throughput"]
    rates = zip(columns["begin_s"], columns["throughput_bps"], strict=True)
    kept = [rate for at_s, rate in rates if begin_s <= at_s < end_s]
    return float(sum(kept) / len(kept))


@pytest.mark.parametrize(("takes", "afterwards"), [("both", 4), ("one", 5)])
def test_in_simulation_a_spare_takes_over_and_nothing_is_slower(takes: str, afterwards) -> None:
    result = simulated(**{"hosts.spare_takes": takes})
    assert members(result) == [4, 0, afterwards]
    assert result.metric("units_lost") == result.metric("regroupings") == 1
    assert result.metric("fault_recovery_s.x") < 3e-3
    assert sums_up(result)
    before, after = throughput(result, 2e-3, 4.7e-3), throughput(result, 10e-3, 20e-3)
    assert after == pytest.approx(before, rel=0.03)
    without = simulated(**{"hosts.spares": 0})
    assert members(without) == [4, 0, 3]
    # Three units instead of four build and read out in the same number of phases.
    assert throughput(without, 10e-3, 20e-3) == pytest.approx(before * 9 / 16, rel=0.06)


def test_in_simulation_a_spare_replaces_a_host_that_fails() -> None:
    result = simulate(scenario_of(SIX, fault(what="host", which="H00-02")), seed=1)
    assert members(result) == [4, 0, 4]
    before, after = throughput(result, 2e-3, 4.7e-3), throughput(result, 10e-3, 20e-3)
    assert after == pytest.approx(before, rel=0.03)
    assert sums_up(result)


TOGETHER = "the roles of unit 2 move to unit 4"
APART = "the readout unit of unit 2 moves to unit 4, its builder unit to unit 5"
DAQPIPE = {"building.protocol": "daqpipe", "measure.output_buffer": "12 MB"}
DAQPIPE |= {"measure.stream_buffer": "12 MB"}


@pytest.mark.parametrize(
    ("changes", "afterwards", "text"),
    [({}, 4, TOGETHER), ({"hosts.spare_takes": "one"}, 5, APART), (DAQPIPE, 4, TOGETHER)],
    ids=["together", "apart", "daqpipe"],
)
@pytest.mark.process
def test_a_spare_takes_over_for_real_and_every_byte_is_right(changes, afterwards, text) -> None:
    spares = {"network.hosts_per_leaf": 6, "hosts.spares": 2, **changes}
    scenario = override(broken(laptop(restart=False, duration="3 s"), kill=KILLED), spares)
    result = measure(scenario)
    expect_accounted(result)
    assert result.metric("units_lost") == result.metric("regroupings") == 1
    assert result.metric("events_checked") > 0
    assert members(result)[:3] == [4, 0, afterwards]
    assert text in result.series["run_events"]["text"]


@pytest.mark.process
def test_of_pull_building_a_readout_unit_moves_or_a_builder_unit() -> None:
    """There is no schedule, and no slot: units are members, wherever they are."""
    keys = {"readout.units": 2, "builders.units": 2, "hosts.spares": 2}
    keys |= {"event.rate": "1 kHz", "event.size": "60 kB", "measure.transport": "shm"}
    keys |= {"measure.duration": "4 s", "measure.restart": False}
    scenario = load("pull-infiniband", keys)
    reader = {**KILLED, "which": 0}
    builder = {**KILLED, "which": 3, "at": "2 s"}
    result = measure(broken(scenario, reader=reader, builder=builder))
    expect_accounted(result)
    assert result.metric("units_lost") == 2
    log = result.series["run_events"]["text"]
    moves = [re.fullmatch(r"the (\w+) unit of unit (\d) moves to unit (\d)", text) for text in log]
    moved = {each.group(1, 2): each[3] for each in moves if each}
    assert moved.keys() == {("readout", "0"), ("builder", "3")}
    # Whichever spare is available first takes the first one.
    assert sorted(moved.values()) == ["4", "5"]
