"""Builder-paced shifting and barriers of groups: what is known by hand, and simulated runs."""

from collections.abc import Mapping
from dataclasses import replace
from math import log2

import numpy as np
import pytest

from daqloom.analyse.fabric.barrier import barrier, barriers_of
from daqloom.analyse.fabric.messages import Messages
from daqloom.analyse.fabric.pace import paced_round_s
from daqloom.analyse.fabric.push import Push
from daqloom.analyse.fabric.ring import Ring
from daqloom.deployment.scenarios import load
from daqloom.scenario import Scenario
from daqloom.scenario.schema.distribution import Distribution
from daqloom.scenario.schema.transport import ADDRESS_BYTES, HEADER_BYTES, IMMEDIATE_BYTES
from daqloom.study.methods import methods
from support.small_fabrics import LATE, analysed, harmonic, metrics, simulated, small, way_s

COSTS = {"hosts__message_cost": "200 ns", "hosts__polling_delay": "300 ns"}
PACED = {"building__pace": "builder"} | COSTS
ONE_LEAF = {"network__leaves": 1, "network__spines": 1, "network__hosts_per_leaf": 4}
ONE_LEAF |= {"network__switch__radix": 8}
"""Four nodes, all as far apart."""
NODES = 4


def one_leaf(**changes: object) -> Scenario:
    return small(**(ONE_LEAF | COSTS | changes))


def phase_s(**changes: object) -> float:
    return analysed(one_leaf(**changes))["phase_s"]


def asking_s(switches: int = 1) -> float:
    """Two messages of 16 B and six values or one, each with its costs at both ends."""
    total_s = 0.0
    for values in (6, 1):
        size = 16 + 8 * values + HEADER_BYTES + ADDRESS_BYTES + IMMEDIATE_BYTES
        total_s += 2 * 200e-9 + 300e-9 + size * 8 / 200e9 + way_s(switches, size)
    return total_s


# ---- what asking costs ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ideal", "tournament", "dissemination"])
def test_in_step_all_nodes_pay_for_asking_but_for_themselves(kind: str) -> None:
    added_s = phase_s(**PACED, building__barrier=kind) - phase_s(building__barrier=kind)
    assert added_s == pytest.approx((NODES - 1) / NODES * asking_s(), rel=1e-6)


def test_asking_takes_a_latency_for_each_of_two_messages_and_processor_time() -> None:
    latency = {"hosts__latency__mean": "1 us", "building__barrier": "ideal"}
    entry = methods.analyse(one_leaf(**PACED, **latency)).analysis["phase"]
    assert entry["asking_s"] == pytest.approx(asking_s() + 2e-6, rel=1e-6)
    added_s = phase_s(**PACED, **latency) - phase_s(**latency)
    assert added_s == pytest.approx((NODES - 1) / NODES * (asking_s() + 2e-6), rel=1e-6)
    added_s = Push(one_leaf(**PACED)).processor_s - Push(one_leaf()).processor_s
    assert added_s == pytest.approx((NODES - 1) * 4 * 200e-9)


def test_without_a_barrier_and_chance_the_slowest_node_never_waits() -> None:
    groups = [{"sources": 1, "share": 0.1}, {"sources": 3, "share": 0.9}]
    uneven = {"building__barrier": "none", "event__groups": groups}
    push = Push(one_leaf(**PACED, **uneven))
    # Between two of its transfers: what its write takes besides the wire, and asking.
    ways_s = float((push.transfer_s(push.alone_s, np.array([1] * NODES)) - push.alone_s).max())
    expected = (NODES - 1) / NODES * (push.alone_s.max() + ways_s + asking_s())
    assert phase_s(**PACED, **uneven) == pytest.approx(expected, rel=1e-6)


def test_a_kept_dummy_lasts_as_long_as_a_phase_and_a_skipped_one_no_time() -> None:
    none = PACED | {"building__barrier": "none"}
    own_s = np.full(NODES, 30e-6)  # three transfers of 10 us
    assert paced_round_s(Push(one_leaf(**none)), own_s) == pytest.approx(30e-6)
    wide = {"network__hosts_per_leaf": 6, "building__dummies": "all-ports", "readout__units": NODES}
    for dummies, phases in (("kept", 5), ("skipped", 3)):
        push = Push(one_leaf(**none, **wide, building__dummy_phases=dummies))
        assert paced_round_s(push, own_s) == pytest.approx(phases * 10e-6)


# ---- the ring with what is certain ---------------------------------------------------------------


def test_the_ring_with_a_certain_delay_is_the_recursion() -> None:
    transfer_s, jitter_s, certain_s, nodes = 576e-6, 20e-6, 15e-6, 10
    jitter = Distribution.model_validate({"kind": "exponential", "mean": f"{jitter_s:.9f} s"})
    ring = Ring(np.full(nodes, transfer_s), 0.0, jitter, Distribution(), certain_s=certain_s)
    random = np.random.default_rng(1)
    ends_s, steps, settled = np.zeros(nodes), 40_000, 2_000
    for step in range(steps):
        if step == settled:
            began_s = ends_s.mean()
        ready_s = ends_s + certain_s + random.exponential(jitter_s, nodes)
        ends_s = transfer_s + np.maximum(ready_s, np.roll(ends_s, -1))
    step_s = (ends_s.mean() - began_s) / (steps - settled)
    assert transfer_s / ring.paced_share(1) == pytest.approx(step_s, rel=5e-4)


def test_certain_delays_hide_those_of_others_and_posts_have_a_latency() -> None:
    # Each of two nodes waits a quarter of the delay for the other, and nothing if that is seldom
    # as late as what passes between two transfers anyway.
    jitter = Distribution.model_validate({"kind": "exponential", "mean": "20 us"})
    two = Ring(np.full(2, 576e-6), 0.0, jitter, Distribution())
    assert 576e-6 / two.paced_share(1) == pytest.approx(576e-6 + 1.25 * 20e-6, rel=2e-4)
    apart = replace(two, certain_s=2e-3)
    assert 576e-6 / apart.paced_share(1) == pytest.approx(2576e-6 + 20e-6, rel=5e-4)
    latency = Distribution.model_validate({"mean": "5 us"})
    ring = Ring(np.full(8, 100e-6), 0.0, Distribution(), latency, posts=3)
    assert ring.paced_share(1) == pytest.approx(100 / 115, rel=1e-3)


# ---- barriers of groups --------------------------------------------------------------------------


def test_each_group_found_from_the_network_has_the_barrier_of_so_many_nodes() -> None:
    messages = Messages.from_scenario(one_leaf())
    groups = [np.array([0, 2, 4, 5]), np.array([1, 3])]
    for kind in ("tournament", "centralised", "dissemination", "ideal"):
        whole = barriers_of(kind, groups, messages, lambda one, other: 1)
        for group in groups:
            alone = barrier(kind, len(group), messages, lambda one, other: 1)
            assert whole.begins_s[group] == pytest.approx(alone.begins_s)
            assert whole.report_s[group] == pytest.approx(alone.report_s)
            assert whole.messages[group].tolist() == alone.messages.tolist()
    push = Push(small(building__barrier_group="leaf"))
    assert [group.tolist() for group in push.groups] == [[0, 1], [2, 3]]
    assert [g.tolist() for g in Push(small(building__barrier_group=3)).groups] == [[0, 1, 2], [3]]
    assert len(Push(small(building__barrier="none")).groups) == 1


@pytest.mark.parametrize("pace", ["schedule", "builder"])
def test_a_barrier_of_two_costs_half_of_one_of_four(pace: str) -> None:
    def cost_s(group: object) -> float:
        grouped = {"building__barrier_group": group, "building__pace": pace}
        ideal_s = phase_s(building__barrier="ideal", **grouped)
        return phase_s(building__barrier="tournament", **grouped) - ideal_s

    assert cost_s(2) == pytest.approx(cost_s("all") / log2(NODES), rel=1e-6)
    assert cost_s("leaf") == pytest.approx(cost_s("all"), rel=1e-6)  # of the only leaf


def test_paced_groups_last_between_the_slowest_of_a_group_and_of_all() -> None:
    ideal = {"building__barrier": "ideal", "building__barrier_group": 2} | PACED
    still_s = phase_s(**ideal)
    entry = methods.analyse(one_leaf(**ideal, **LATE)).analysis["phase"]
    assert entry["value_s"] - still_s == pytest.approx(2e-6 * harmonic(2), rel=0.03)
    assert entry["at_most_s"] - still_s == pytest.approx(2e-6 * harmonic(NODES), rel=0.01)
    for pace in ("schedule", "builder"):
        grouped = {"building__barrier_group": 2, "building__pace": pace, **LATE}
        result = methods.analyse(one_leaf(**grouped))
        found = metrics(result)
        assert "barrier_share" not in found
        assert "barrier_s.waiting" not in found
        assert found["barrier_s.releasing"] > 0
        assert not result.analysis["phase"]["valid"]
        assert any("each of 2 groups is in step by itself" in each for each in result.warnings)


WINDOW = {"building__change": "window", "building__window": "100 us"}
ON_RING = "phases are those of nodes on"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"building__barrier": "none"}, "builder units let 1 write at a time"),
        ({"building__barrier": "none", "building__writers": 2}, "let 2 write at a time"),
        ({"building__barrier": "none", "building__phases_under_way": 2}, "contend for links"),
        ({"building__phases_per_barrier": 2}, "once in 2 phases"),
        (
            {"building__barrier": "neighbour"},
            f"where nodes wait for their neighbours only, {ON_RING}",
        ),
        ({"building__barrier_slack": 2}, f"a slack of 2 barriers, {ON_RING}"),
        (
            {"building__synchronise": "adaptive"},
            f"where nodes leave step (building.synchronise), {ON_RING}",
        ),
        (WINDOW, "asks anew for what is granted later"),
    ],
)
def test_systems_without_closed_form_have_a_warning(changes: dict[str, object], said: str) -> None:
    found = methods.analyse(one_leaf(**PACED, **changes))
    assert any(said in each for each in found.warnings)


# ---- messages ------------------------------------------------------------------------------------


def test_messages_per_phase_are_those_of_barriers_and_of_asking() -> None:
    others = (NODES - 1) / NODES
    for group, told in (("all", 2 * (NODES - 1) / NODES), (2, 2 * (2 - 1) / 2)):
        for pace, asked in (("schedule", 0.0), ("builder", 2 * others)):
            changes = {"building__barrier_group": group, "building__pace": pace}
            entry = methods.analyse(one_leaf(**changes)).analysis["phase"]
            assert entry["messages"] == pytest.approx(told + asked)
    for pace, told in (("schedule", 1.0), ("builder", 1 / NODES + 2 * others)):
        changes = {"building__barrier": "neighbour", "building__pace": pace}
        entry = methods.analyse(one_leaf(**changes)).analysis["phase"]
        assert entry["messages"] == pytest.approx(told)


def test_a_barrier_with_slack_takes_messages_and_no_time() -> None:
    loose = methods.analyse(one_leaf(**PACED, **LATE, building__barrier_slack=1))
    none = methods.analyse(one_leaf(**PACED, **LATE, building__barrier="none"))
    assert metrics(loose)["phase_s"] == pytest.approx(metrics(none)["phase_s"])
    assert "barrier_share" not in metrics(loose)
    told = loose.analysis["phase"]["messages"] - none.analysis["phase"]["messages"]
    assert told == pytest.approx(2 * (NODES - 1) / NODES)
    assert not loose.analysis["phase"]["valid"]
    assert any("with a slack of 1 barrier, phases" in each for each in loose.warnings)


# ---- against simulation --------------------------------------------------------------------------

FORTY = {"event.packing": 3000, "event.groups": [{"sources": 120, "share": 1.0}]}
FORTY |= {"hosts.message_cost": "200 ns", "hosts.polling_delay": "300 ns"}
FORTY |= {"building.pace": "builder", "run.warmup": "1.5 ms", "run.duration": "6 ms"}
"""Forty equal nodes with short transfers, of 48 us: what asking costs is a larger part of them."""
JITTER = {"building.jitter.kind": "exponential", "building.jitter.mean": "10 us"}
NONE = {"building.barrier": "none"}
OWN_QUEUE_PAIRS = {"transport.control_service_level": 1}
OWN_LANE = OWN_QUEUE_PAIRS | {"network.lanes.count": 2, "network.lanes.service_levels": [0, 1]}
OWN_LANE |= {"network.lanes.low": [[0, 64], [1, 64]]}
LONG = FORTY | {"event.groups": [{"sources": 60, "share": 1.0}], "event.packing": 30_000}
LONG |= {"readout.units": 20, "run.warmup": "10 ms", "run.duration": "22 ms"}
"""Transfers of 483 us, over a round of 20 nodes: with the phase in which nodes write to each
other."""


@pytest.mark.parametrize(
    ("changes", "longer"),
    [
        ({}, 0.05),
        (JITTER, 0.05),
        (NONE | JITTER, 0.08),
        (NONE | JITTER | {"building.writers": 2}, 0.08),
    ],
    ids=["in step", "in step, jitter", "no barrier", "no barrier, two writers"],
)
def test_forty_nodes_are_simulated_as_fast_or_a_little_slower(changes, longer) -> None:
    # Requests wait for other messages at busy processors, and for packets of data on their way; a
    # go that comes too early makes two share a builder unit.
    scenario = load("lhcb-10-percent", FORTY | changes)
    formula, found = analysed(scenario), simulated(scenario)
    assert 0.99 < found["phase_s"] / formula["phase_s"] < 1 + longer
    # One or two of forty counted phases are those of copies, which need no messages.
    busy_s = [each["phase_s"] * each["processor_share"] for each in (formula, found)]
    assert busy_s[1] == pytest.approx(busy_s[0], rel=0.05)


def test_messages_on_a_separate_lane_keep_the_share_of_the_ring() -> None:
    # On the connection of data, an answer waits behind a whole write to the same node.
    levels = ({}, OWN_QUEUE_PAIRS, OWN_LANE)
    behind, beside, apart = (load("lhcb-10-percent", LONG | NONE | each) for each in levels)
    formula_s = analysed(apart)["phase_s"]
    behind_s, beside_s, apart_s = (simulated(each)["phase_s"] for each in (behind, beside, apart))
    assert 0.99 < apart_s / formula_s < 1.03
    assert apart_s <= beside_s < behind_s


@pytest.mark.parametrize("group", ["leaf", 4])
def test_forty_nodes_in_groups_are_simulated_between_the_bounds(group: object) -> None:
    scenario = load("lhcb-10-percent", FORTY | JITTER | {"building.barrier_group": group})
    formula, simulated = methods.analyse(scenario), methods.simulate(scenario, seed=1)
    phase, found = formula.analysis["phase"], metrics(simulated)
    assert 0.99 * phase["value_s"] < found["phase_s"] < 1.05 * phase["at_most_s"]
    releasing_s = metrics(formula)["barrier_s.releasing"]
    assert found["barrier_s.releasing"] == pytest.approx(releasing_s, rel=0.15)


def test_forty_nodes_send_the_analysed_number_of_messages() -> None:
    scenario = load("lhcb-10-percent", FORTY | JITTER)
    found = simulated(scenario)
    said = methods.analyse(scenario).analysis["phase"]["messages"]
    sizes_and_grants = 2 * 39 / 40
    counted = found["control_messages"] / found["phases"]
    assert counted == pytest.approx(said + sizes_and_grants, rel=0.05)  # as above


PARTED = {"transport.control_service_level": 1, "network.lanes.count": 2}


def on_one_switch(nodes: int, changes: Mapping[str, object]) -> Scenario:
    """Folded nodes at one switch, with fragments of one size."""
    keys = {"readout.units": nodes, "network.hosts_per_leaf": nodes, "network.spine_links": 1}
    keys |= {"network.switch.radix": 64, "event.fragment_sizes": "fixed"}
    return load("laptop", keys | changes)


@pytest.mark.parametrize("barrier", ["ideal", "tournament", "centralised", "dissemination"])
@pytest.mark.parametrize("nodes", [6, 7, 8, 10, 20])
@pytest.mark.parametrize("lanes", [{}, PARTED], ids=["one lane", "parted"])
def test_a_phase_is_not_valid_where_the_simulated_one_is_5_percent_longer(nodes, barrier, lanes):
    keys = {"building.pace": "builder", "building.barrier": barrier, "run.duration": "20 ms"}
    keys |= {"hosts.message_cost": "800 ns", "hosts.polling_delay": "1 us"}
    scenario = on_one_switch(nodes, keys | lanes)
    formula, simulated = methods.analyse(scenario), methods.simulate(scenario)
    longer = metrics(simulated)["phase_s"] / metrics(formula)["phase_s"] - 1
    phase = formula.analysis["phase"]
    assert longer > -0.005
    assert not phase["valid"] or longer <= 0.05
    if not phase["valid"]:
        assert phase["failing"] == "requests are answered at once"
        [sentence] = [text for text in formula.warnings if "answers wait" in text]
        assert "% longer than by the formula" in sentence
    # Tournaments, the usual barrier, are refused only where they have to be.
    if barrier == "tournament":
        odd_one_out = nodes in (6, 10, 20) and not lanes
        assert phase["valid"] != odd_one_out


SAMPLE_KEYS = ("event.packing", "building.pace", "building.barrier")
SAMPLE_KEYS += ("hosts.message_cost", "hosts.polling_delay", "building.meps_per_phase")
SAMPLE = [
    # nodes, the keys above, whether valid
    (9, 100, "schedule", "dissemination", "2 us", "0 s", 1, False),
    (8, 1500, "schedule", "centralised", "2 us", "0 s", 1, False),
    (9, 100, "builder", "tournament", "400 ns", "0 s", 2, False),
    (16, 100, "builder", "dissemination", "100 ns", "0 s", 1, False),
    (32, 100, "builder", "tournament", "100 ns", "0 s", 1, False),
    (31, 100, "schedule", "ideal", "2 us", "0 s", 1, False),
    (12, 100, "schedule", "dissemination", "2 us", "0 s", 4, False),
    (18, 100, "schedule", "tournament", "2 us", "500 ns", 1, False),
    (24, 250, "builder", "ideal", "800 ns", "500 ns", 4, False),
    (7, 1500, "builder", "tournament", "2 us", "0 s", 1, False),
    (15, 1500, "builder", "tournament", "2 us", "500 ns", 1, False),
    (2, 500, "schedule", "tournament", "400 ns", "1 us", 1, True),
    (8, 500, "schedule", "dissemination", "100 ns", "1 us", 2, True),
    (10, 500, "schedule", "ideal", "400 ns", "1 us", 3, True),
    (16, 500, "builder", "tournament", "200 ns", "1 us", 2, True),
    (16, 500, "schedule", "centralised", "100 ns", "1 us", 1, True),
]


RANDOM_LATENCY = {"hosts.latency.kind": "exponential", "hosts.latency.mean": "1 us"}


@pytest.mark.parametrize("random", [{}, RANDOM_LATENCY], ids=["fixed", "random"])
@pytest.mark.parametrize("lanes", [{}, PARTED], ids=["one lane", "parted"])
def test_random_latency_lets_data_overtake_messages_on_their_lane(lanes, random) -> None:
    keys = {"readout.units": 8, "network.hosts_per_leaf": 8, "network.spine_links": 1}
    keys |= {"event.packing": 500, "hosts.message_cost": "100 ns", "building.pace": "schedule"}
    scenario = load("laptop", keys | lanes | random)
    formula, simulated = methods.analyse(scenario), methods.simulate(scenario)
    longer = metrics(simulated)["phase_s"] / metrics(formula)["phase_s"] - 1
    overtakes = bool(random) and not lanes
    assert (longer > 0.05) == overtakes
    assert formula.analysis["phase"]["valid"] != overtakes


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: "-".join(map(str, case)))
def test_the_length_of_a_phase_is_right_or_not_valid(case: tuple[object, ...]) -> None:
    """Random cases of all paces and barriers; those that are valid are within 5 %."""
    nodes, *values, is_valid = case
    keys = dict(zip(SAMPLE_KEYS, values, strict=True)) | {"run.duration": "10 ms"}
    scenario = on_one_switch(nodes, keys)
    formula, simulated = methods.analyse(scenario), methods.simulate(scenario)
    longer = metrics(simulated)["phase_s"] / metrics(formula)["phase_s"] - 1
    assert formula.analysis["phase"]["valid"] == is_valid
    assert is_valid == (abs(longer) <= 0.05)
    if not is_valid:
        assert any("% longer than by the formula" in text for text in formula.warnings)
