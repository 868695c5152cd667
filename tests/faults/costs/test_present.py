"""Links that are down at present, and the mended schedule."""

from typing import Any

import pytest

from daqloom.deployment.scenarios import load
from daqloom.faults import FaultsError
from daqloom.faults.costs.present import PresentLinks
from daqloom.faults.logs.change import Change, LogContent, Port
from support.regrouping import SMALL, scenario_of

TREE = {
    **SMALL,
    "network.spines": 2,
    "network.hosts_per_leaf": 6,
    "network.spine_links": 3,
    "network.switch.radix": 12,
    "readout.units": 12,
}
"""Twelve nodes on two leaves, with six cables up from each; all at 25 Gb/s."""


def change(port: str, *, is_up: bool = False, node: str = "leaf00") -> Change:
    return Change(0.0, Port(node, port), is_up)


def links(**keys: Any) -> PresentLinks:
    return PresentLinks(scenario_of(TREE, keys), LogContent())


def test_a_whole_network_has_the_usual_schedule_without_conflicts() -> None:
    """A round of 12 phases builds 12 events, so that all hosts receive at the rate of a cable."""
    outage = links().outage()
    assert outage.usual == outage.mended
    assert outage.usual.throughput_bps == pytest.approx(12 * 25e9)
    assert outage.usual.conflicting_phases == 0
    assert outage.readouts == outage.builders == tuple(range(12))


def test_a_broken_uplink_costs_phases_and_the_mended_order_none() -> None:
    """With five uplinks two of six hosts share a path, so that phases take twice as long. In the
    mended order at most five hosts of a leaf send to the other one at a time."""
    present = links()
    found = present.change([change("7")])
    assert [name for _, name in found] == ["leaf00 port 7 - spine00 port 1"]
    outage = present.outage()
    assert outage.usual.conflicting_phases > 0
    expected_bps = 12 * 25e9 * 12 / (12 + outage.usual.conflicting_phases)
    assert outage.usual.throughput_bps == pytest.approx(expected_bps)
    assert (outage.mended.conflicting_phases, outage.mended.flows_lost) == (0, 0)
    assert outage.mended.throughput_bps == pytest.approx(12 * 25e9)
    for units in (outage.readouts, outage.builders):
        assert sorted(unit for unit in units if unit >= 0) == list(range(12))
    assert outage.readouts != outage.builders
    assert len(outage.fabric.cables) == 12 + 12 - 1


def test_a_link_changes_once_whichever_end_reports_it_and_comes_back() -> None:
    present = links()
    assert len(present.change([change("7"), change("1", node="spine00"), change("7")])) == 1
    assert present.change([change("99"), change("7", node="other")]) == []
    assert present.unknown == 2
    assert present.down == {"leaf00 port 7 - spine00 port 1"}
    assert len(present.change([change("1", node="spine00", is_up=True)])) == 1
    assert present.outage().readouts == links().outage().readouts


def test_a_host_that_is_down_leaves_the_order_as_it_is() -> None:
    present = links()
    assert len(present.change([change("", node="H00-03")])) == 1
    assert present.outage().builders == tuple(range(12))


def test_flows_without_a_path_have_no_rate() -> None:
    """Without uplinks, none of a leaf's 6 hosts reaches one of the 6 others, nor back."""
    present = links()
    present.change(change(str(port)) for port in range(7, 13))
    outage = present.outage()
    assert outage.usual.flows_lost == outage.mended.flows_lost == 2 * 6 * 6
    assert outage.mended.throughput_bps is None


def test_other_protocols_are_refused() -> None:
    with pytest.raises(FaultsError, match="atlas-lab has no schedule to mend; expected"):
        PresentLinks(load("atlas-lab"), LogContent())
