"""Failures of a network during a run, when they are known, and the tables from then on."""

from typing import Any

import numpy as np
import pytest

from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.faults import Faults
from daqloom.scenario.schema.models import Scenario
from daqloom.simulate.faults import Change, link_changes
from daqloom.topology.failures.plan import Outage, fault_plan
from daqloom.topology.failures.reroute import locally, reroutings, swept
from daqloom.topology.routing.minimal import equal_cost, minimal, single
from daqloom.topology.routing.routes import trace
from daqloom.topology.shapes.clos import folded_clos

TREE = folded_clos("tree", leaves=3, spines=2, links=2, hosts_per_leaf=4, rate_bps=10**11)
"""Hosts 0 to 11, leaves 12 to 14 with hosts at ports 1 to 4 and spines at 5 to 8."""
ALL = range(len(TREE.hosts))


def faults(**injected: dict[str, Any]) -> Faults:
    keys = {name: {"at": "1 ms", **fault} for name, fault in injected.items()}
    return Scenario.model_validate({"faults": {"injected": keys}}).faults


def of(**injected: dict[str, Any]) -> list[Outage]:
    return list(fault_plan(faults(**injected), TREE, ALL).outages)


def cable_at(name: str) -> int:
    ends = ((TREE.end_name(cable.a), TREE.end_name(cable.b)) for cable in TREE.cables)
    [place] = [place for place, names in enumerate(ends) if name in names]
    return place


def test_a_cable_is_named_by_either_end_and_a_switch_takes_all_its_cables_along() -> None:
    place = cable_at("leaf00 port 5")
    cable = TREE.cables[place]
    for end in (cable.a, cable.b):
        [outage] = of(a={"which": TREE.end_name(end)})
        assert outage.links == (2 * place, 2 * place + 1)
        assert (outage.begin_s, outage.end_s) == (1e-3, float("inf"))
        [one] = of(a={"which": TREE.end_name(end), "how": "one-way"})
        assert one.links == ((2 * place + 1,) if end == cable.a else (2 * place,))
    [switch] = of(a={"what": "switch", "which": "spine01"})
    cables = [TREE.cables[place] for place in switch.cables]
    ends = {TREE.end_name(end) for cable in cables for end in (cable.a, cable.b)}
    assert len(switch.cables) == 6
    assert {f"spine01 port {port}" for port in range(1, 7)} < ends
    [host] = of(a={"what": "host", "which": TREE.hosts[5].name})
    assert host.cables == {cable_at(TREE.hosts[5].name)}


def test_draws_are_by_seed_and_name_and_none_twice() -> None:
    drawn = of(a={"count": 5})
    assert len({outage.which for outage in drawn}) == 5
    assert drawn == of(a={"count": 5})
    cables = [TREE.cables[place] for outage in drawn for place in outage.cables]
    assert all(min(cable.a.node, cable.b.node) >= 12 for cable in cables)
    # Another fault beside it changes nothing.
    both = of(a={"count": 5}, b={"count": 2})
    assert [o for o in both if o.name == "a"] == drawn
    assert {o.which for o in of(b={"count": 5})} != {o.which for o in drawn}


def test_units_are_numbers_of_nodes_or_names_of_their_hosts() -> None:
    nodes = [7, 2, 5]
    fault = {"what": "unit", "how": "stopped"}
    for which in ("1", TREE.hosts[2].name):
        plan = fault_plan(faults(a={**fault, "which": which}), TREE, nodes)
        [unit] = plan.outages
        assert (unit.which, unit.node, unit.links) == ("1", 1, ())
        assert plan.detected_s(unit) is None
    drawn = fault_plan(faults(a={**fault, "count": 3}), TREE, nodes).outages
    assert {unit.node for unit in drawn} == {0, 1, 2}


def test_links_are_dark_then_down_then_up_and_flapping_ones_break_again() -> None:
    flapping = of(a={"which": "leaf00 port 5", "lasts": "1 ms", "repeats": 3, "period": "4 ms"})
    times = [pytest.approx((1e-3 + k * 4e-3, 2e-3 + k * 4e-3)) for k in range(3)]
    assert [(each.begin_s, each.end_s) for each in flapping] == times
    given = faults(a={"which": "leaf00 port 5", "how": "one-way", "lasts": "5 ms"})
    plan = fault_plan(given, TREE, ALL)
    place = cable_at("leaf00 port 5")
    first = plan.outages[0].links[0]
    both = (2 * place, 2 * place + 1)
    changes = [(1e-3, first, "dark"), *((2e-3, link, "down") for link in both)]
    changes += [(6e-3, link, "up") for link in both]
    expected = [Change(pytest.approx(at_s), link, what) for at_s, link, what in changes]
    assert link_changes(plan, TREE) == expected


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ({"count": 13}, r"faults.injected.a: count = 13, and there are 12 to be drawn"),
        ({"which": "leaf9 port 1"}, r'which = "leaf9 port 1" is no cable of the system'),
        ({"what": "switch", "which": "leaf00 port 1"}, r"is no switch of the system"),
    ],
)
def test_parts_that_the_network_lacks_are_refused(fault: dict[str, Any], told: str) -> None:
    with pytest.raises(ScenarioError, match=told):
        of(a=fault)


def test_failures_that_end_before_the_detection_stay_unknown() -> None:
    given = faults(
        short={"which": "leaf00 port 5", "lasts": "0.9 ms"},
        long={"which": "leaf00 port 6", "lasts": "5 ms", "at": "2 ms"},
        other={"which": "leaf01 port 5", "at": "4 ms"},
    )
    plan = fault_plan(given, TREE, ALL)
    six, other = cable_at("leaf00 port 6"), cable_at("leaf01 port 5")
    known = [(3e-3, {six}), (5e-3, {six, other}), (8e-3, {other})]
    assert plan.known_broken() == [(pytest.approx(at_s), cables) for at_s, cables in known]


def test_a_sweep_routes_the_remaining_cables_and_later_all_again() -> None:
    given = faults(a={"which": "leaf00 port 5", "lasts": "5 ms"})
    network = Scenario.model_validate({"network": {"technology": "infiniband"}}).network
    ways = single(minimal(TREE))
    told = list(reroutings(fault_plan(given, TREE, ALL), network, TREE, ways))
    assert [each.at_s for each in told] == [pytest.approx(0.102), pytest.approx(0.107)]
    broken = swept(network, TREE, frozenset({cable_at("leaf00 port 5")}))
    assert np.array_equal(told[0].ways.ports, broken.ports)
    assert told[1].ways is ways
    assert not (broken.ports[0] == 5).any()
    assert not trace(TREE, broken.first(TREE)).defects


def test_a_switch_that_helps_itself_takes_its_next_port_and_its_groups_go_on() -> None:
    """Leaf 0 has ports 5 and 6 to spine 0, which has another cable to it as well: all hosts are
    reached. Without both of them, what comes down from spine 0 has no other way."""
    ways = single(minimal(TREE))
    one = locally(TREE, ways, frozenset({cable_at("leaf00 port 5")}))
    changed = one.ports != ways.ports
    assert set(ways.ports[0][changed[0]].tolist()) == {5}
    assert set(one.ports[0][changed[0]].tolist()) == {6}
    assert not trace(TREE, one.first(TREE)).defects
    both = locally(TREE, ways, frozenset({cable_at("leaf00 port 5"), cable_at("leaf00 port 6")}))
    assert not np.isin(both.ports[0], [5, 6]).any()
    assert (both.ports[3] == ways.ports[3]).all()
    ways = equal_cost(TREE)
    left = locally(TREE, ways, frozenset({cable_at("leaf00 port 7")}))
    assert {group for switch, group in ways.groups if switch == 0} == {(5, 6, 7, 8)}
    assert {group for switch, group in left.groups if switch == 0} == {(5, 6, 8)}
    assert (left.ports == ways.ports).all()
