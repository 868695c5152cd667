"""Builder units that set the pace, and barriers of groups, with processes of this machine, and
their configuration from a scenario."""

import pytest

from daqloom import _engine
from daqloom.measure.configure import live_config
from daqloom.measure.run import measure
from daqloom.scenario.schema.models import Scenario
from support.measure.live_nodes import TOKEN, configure
from support.measure.tiny_runs import MEASURED, changed, expect_built_right

pytestmark = pytest.mark.process

LEAVES = {"leaves": 2, "spines": 1, "hosts_per_leaf": 2}
TINY = {
    "name": "tiny",
    "event": {"fragment_size": "100 B", "packing": 10, "rate": "0 Hz"},
    "building": {"protocol": "shift", "pace": "builder"},
    "readout": {"units": 4},
    "builders": {"folded": True},
    "network": {"technology": "infiniband", "shape": "fat-tree", **LEAVES},
    "measure": MEASURED | {"events": 1000},
}


def tiny(**changes: object) -> Scenario:
    return changed(TINY, changes)


@pytest.mark.parametrize(
    ("group", "groups"), [("all", []), ("leaf", [0, 0, 1, 1]), (3, [0, 0, 0, 1])]
)
def test_the_pace_and_the_groups_of_a_scenario_are_those_of_its_units(group, groups) -> None:
    scenario = tiny(building__barrier_group=group, building__writers=2, building__barrier_slack=3)
    rules = live_config(scenario, configure(), TOKEN).shift_rules
    assert rules.pace is _engine.Pace.builder
    assert (rules.writers, rules.write_order) == (2, _engine.WriteOrder.arrival)
    assert rules.barrier_groups == groups
    assert rules.barrier_slack == 3
    assert not rules.leaves_step
    adaptive = live_config(tiny(building__synchronise="adaptive"), configure(), TOKEN)
    assert adaptive.shift_rules.leaves_step


@pytest.mark.parametrize(
    "changes",
    [
        {"building__barrier": "none"},
        {"building__barrier": "none", "building__write_order": "schedule", "building__writers": 2},
        {"building__barrier_group": "leaf"},
        {"building__barrier_group": "leaf", "building__barrier_slack": 2},
        {"building__barrier_group": "leaf", "building__barrier": "neighbour"},
        {"building__barrier": "neighbour", "building__writers": 2},
        {"building__synchronise": "adaptive"},
    ],
    ids=str,
)
def test_every_event_is_built_right(changes: dict[str, object]) -> None:
    result = measure(tiny(**changes))
    expect_built_right(result)
    assert 0 < result.metric("go_wait_share") < 1
