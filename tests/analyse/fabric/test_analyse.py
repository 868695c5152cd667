"""Closed forms of fabrics: known answers, derived here by hand."""

import math
from pathlib import Path

import numpy as np
import pytest

from daqloom.analyse.fabric.barrier import barrier, network_barrier
from daqloom.analyse.fabric.link import Link
from daqloom.analyse.fabric.messages import Messages
from daqloom.analyse.fabric.slowest import Chance, Delay
from daqloom.analyse.fabric.traffic import traffic
from daqloom.deployment.fabric_system import fabric_system
from daqloom.deployment.scenarios import load, override
from daqloom.scenario import ScenarioError, presets
from daqloom.study.methods import methods
from daqloom.topology.schedule.shift_check import check_shift
from support.imports import imported
from support.small_fabrics import analysed, daqpipe, metrics, ring, small, way_s

MFP_WIRE = 100 * (4096 + 26) + 16 + 4
"""Bytes of an MFP of 100 packets: a header each, the address, immediate data."""


def wire_s(count: float) -> float:
    return count * 8 / 200e9


# ---- links ---------------------------------------------------------------------------------------


def test_credit_updates_bound_packets_with_headers_by_the_buffer() -> None:
    link = Link.from_scenario(small())
    three = link.message(4096 + 4096 + 5)  # 5 B are padded to 8
    assert (three.packets, three.bytes) == (3, (26 + 16 + 4096) + (26 + 4096) + (26 + 8 + 4))
    nothing = link.message(0)
    assert (nothing.packets, nothing.bytes) == (1, 26 + 16 + 4)
    link = Link.from_scenario(
        small(network__switch__buffer="8320 B", network__switch__credit_update_interval="10 us")
    )
    # Two packets in 10 us.
    assert link.credits_s(link.message(20 * 4096)) == pytest.approx(9 * 10e-6, rel=0.01)


@pytest.mark.parametrize("fitting", [1, 2, 3, 6, 15])
def test_credits_bound_the_rate(fitting: int) -> None:
    # A full packet has 65 blocks. 1 us a cable: the loop is longer than 13 packets.
    blocks = fitting * 65 + 64
    link = Link.from_scenario(
        small(network__switch__buffer=f"{blocks * 64} B", network__links__delay="1 us")
    )
    loop_s = 2 * 1e-6 + 130e-9 + wire_s(4122 + 64 + 8)
    packets = 30 * fitting
    expected = 29 * max(loop_s, fitting * wire_s(4122)) + fitting * wire_s(4122)
    assert link.credits_s(link.message(packets * 4096)) == pytest.approx(expected, rel=1e-3)


# ---- chance --------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [1, 4, 324])
def test_the_slowest_of_many_delays_is_the_harmonic_sum_or_nears_the_longest(nodes: int) -> None:
    harmonic = sum(1 / k for k in range(1, nodes + 1))
    slowest = Chance([Delay("exponential", 2e-6)]).slowest_s(np.full(nodes, 1e-3))
    assert slowest == pytest.approx(1e-3 + 2e-6 * harmonic, abs=2e-8)
    slowest = Chance([Delay("uniform", 5e-6, 3e-6)]).slowest_s(np.zeros(nodes))
    assert slowest == pytest.approx(5e-6 + 3e-6 * (nodes - 1) / (nodes + 1), abs=2e-8)


def test_the_slowest_of_many_gaussian_delays_is_the_tabulated_extreme() -> None:
    # Expected maxima of N standard Gaussian numbers (Tippett, Biometrika 17, 1925).
    for nodes, extreme in {2: 0.56419, 10: 1.53875, 100: 2.50759}.items():
        still = np.zeros(nodes)
        gaussian_s = Chance([Delay("gaussian", 10e-6, 1e-6)]).slowest_s(still)
        assert gaussian_s == pytest.approx(10e-6 + extreme * 1e-6, abs=1e-8)
        assert Chance([], 1e-6).slowest_s(still) == pytest.approx(extreme * 1e-6, abs=1e-8)


def test_delays_add_up_and_a_node_far_behind_has_no_effect() -> None:
    # Two exponential draws of mean J are a gamma: E[max of 2] = J·(2 + 3/4).
    twice = Chance([Delay("exponential", 1e-6, draws=2)])
    assert twice.slowest_s(np.zeros(2)) == pytest.approx(2.75e-6, abs=2e-8)
    # Many are as good as Gaussian.
    many = Chance([Delay("exponential", 1e-6, draws=10_000)])
    assert many.slowest_s(np.zeros(10)) == pytest.approx(1e-2 + 1.53875 * 1e-4, rel=1e-4)
    chance = Chance([Delay("fixed", 1e-6)], 1e-6)
    assert chance.slowest_s(np.array([1e-3, 0.0])) == pytest.approx(1e-3 + 1e-6, abs=1e-8)
    # E[max(X + d, Y)] of unit Gaussian X, Y: d Φ(d/√2) + √2 φ(d/√2) (Clark 1961).
    d = 1.0
    clark = d * math.erfc(-d / 2) / 2 + math.exp(-(d**2) / 4) / math.sqrt(math.pi)
    assert chance.slowest_s(np.array([1e-6, 0.0])) == pytest.approx(1e-6 * (1 + clark), abs=1e-8)


# ---- barriers ------------------------------------------------------------------------------------


def costly() -> Messages:
    return Messages.from_scenario(
        small(hosts__message_cost="100 ns", hosts__polling_delay="300 ns")
    )


@pytest.mark.parametrize("nodes", [2, 4, 8, 32, 256])
def test_a_barrier_costs_the_time_of_its_messages(nodes: int) -> None:
    messages, rounds = costly(), nodes.bit_length() - 1
    o = 100e-9
    # 16 B with a header, the address and immediate data, through one switch.
    m = 2 * o + wire_s(16 + 26 + 16 + 4) + way_s(1, 16 + 26 + 16 + 4) + 300e-9
    kinds = ("centralised", "tournament", "dissemination", "ideal")
    cost = {kind: barrier(kind, nodes, messages, lambda one, other: 1) for kind in kinds}
    assert cost["centralised"].cost_s == pytest.approx(2 * m + (nodes - 2) * o)
    assert cost["tournament"].cost_s == pytest.approx(2 * m * rounds)
    assert cost["dissemination"].cost_s == pytest.approx(m * rounds)
    assert cost["ideal"].cost_s == 0
    # Sent and received, so each counts twice.
    assert cost["centralised"].messages.sum() == cost["tournament"].messages.sum()
    assert cost["tournament"].messages.sum() == 2 * 2 * (nodes - 1)
    assert cost["dissemination"].messages.sum() == 2 * nodes * rounds
    assert cost["centralised"].messages.max() == 2 * (nodes - 1)


def test_a_barrier_of_the_network_costs_a_post_its_levels_and_a_receipt() -> None:
    # 100 ns to post, 600 ns up, as long down, 300 ns until it is noticed, 100 ns to receive.
    found = network_barrier(np.array([600e-9, 600e-9]), costly())
    assert found.cost_s == pytest.approx(1700e-9)
    assert found.messages.tolist() == [2, 2]


def test_the_bracket_of_any_number_of_nodes_is_a_tree() -> None:
    # Six nodes: the root 0 releases 4, 2, 1 in this order, 4 releases 5 and 2 releases 3.
    gate = barrier("tournament", 6, costly(), lambda one, other: 1)
    o, m = 100e-9, gate.released_s[4]
    assert gate.released_s == pytest.approx([0, m + 2 * o, m + o, 2 * m + o, m, 2 * m])
    assert gate.report_s == pytest.approx([0, m, m, 2 * m, m, 2 * m])
    # Their own writes wait behind the releases that they send.
    assert gate.begins_s - gate.released_s == pytest.approx([3 * o, 0, o, 0, o, 0])


# ---- phases --------------------------------------------------------------------------------------


def test_a_phase_is_a_write_and_its_acknowledge() -> None:
    scenario = small(building__barrier="ideal")
    found = analysed(scenario)
    # Through three switches there and back, an update of 8 B for each packet; of four phases one is
    # a copy that takes no time, one stays on the leaf for everybody but one of each leaf.
    there = wire_s(MFP_WIRE + 100 * 8) + way_s(3, 64)
    back = way_s(3, 30) + wire_s(30)
    assert found["phase_s"] == pytest.approx(3 / 4 * (there + back), rel=1e-9)
    assert found["event_rate_hz"] == pytest.approx(4096 / found["phase_s"])
    assert found["node_throughput_bps"] == pytest.approx(8 * 409_600 / found["phase_s"])
    assert found["barrier_s.releasing"] == 0
    assert methods.analyse(scenario).warnings == []


def test_dummies_and_messages_cost_their_share_of_a_phase() -> None:
    free = analysed(small(building__barrier="ideal"))
    costs = {"hosts__message_cost": "100 ns", "hosts__polling_delay": "300 ns"}
    paid = analysed(small(building__barrier="ideal", **costs))
    assert paid["phase_s"] - free["phase_s"] == pytest.approx(3 / 4 * 400e-9)
    # A node sends and takes in an MFP, sizes and places, three times in a round of four phases.
    assert paid["processor_share"] == pytest.approx(3 / 4 * 6 * 100e-9 / paid["phase_s"])
    copied = {"building__barrier": "ideal", "hosts__local_rate": "200 Gb/s"}
    full = analysed(small(**copied))
    found = analysed(small(**copied, readout__units=3))
    assert found["dummy_share"] == 1 / 4
    assert found["event_rate_hz"] == pytest.approx(3 / 4 * full["event_rate_hz"], rel=1e-9)


def test_the_largest_node_dictates_the_phase() -> None:
    groups = [{"sources": 1, "share": 0.4}, {"sources": 3, "share": 0.6}]
    even = analysed(small(building__barrier="ideal"))
    uneven = analysed(small(building__barrier="ideal", event__groups=groups))
    # 1.6 times the mean: 655 360 B are 160 packets.
    longer = wire_s(160 * (4096 + 26 + 8) - 100 * (4096 + 26 + 8))
    # In one of the three phases it stays on its leaf, where all others wait for who does not.
    shorter = sum(way_s(3, size) - way_s(1, size) for size in (64, 30))
    later_s = uneven["phase_s"] - even["phase_s"]
    assert later_s == pytest.approx((3 * longer - shorter) / 4, rel=1e-6)
    # Three of four nodes hold half as much, and wait as much longer.
    assert uneven["barrier_s.waiting"] > 0.9 * 3 / 4 * 3 / 4 * wire_s(80 * 4096)


def test_flows_on_one_link_take_their_sum() -> None:
    free = methods.analyse(small(building__barrier="ideal"))
    scenario = small(building__barrier="ideal", network__spines=1)
    found = methods.analyse(scenario)
    # In phase 2 of 4 both nodes of a leaf send to the other leaf, by one cable.
    assert found.analysis["schedule"]["conflicting"] == 1
    assert found.analysis["schedule"]["worst_flows"] == 2
    longer = (found.metric("phase_s") or 0) - (free.metric("phase_s") or 0)
    assert longer == pytest.approx(wire_s(MFP_WIRE + 800) / 4, rel=1e-9)
    assert found.analysis["phase"]["failing"] == "no conflicts"


@pytest.mark.parametrize("order", ["by-port", "shuffled"])
def test_flows_are_counted_as_the_schedule_check_does(order: str) -> None:
    scenario = load("lhcb-60-percent", {"hosts.order": order})
    here = traffic(scenario)
    check = check_shift(here.paths, here.slots)
    batches = list(here.phases(np.ones(len(here.hosts))))
    assert np.concatenate([batch.flows for batch in batches]).tolist() == check.worst.tolist()
    fullest = np.concatenate([batch.shared_s.max(axis=1) for batch in batches])
    assert fullest.tolist() == check.worst.tolist()
    totals = np.sum([batch.links_s for batch in batches], axis=0)
    assert totals.max() == here.busiest_s(here.hosts, here.hosts, np.ones(len(here.hosts)))
    assert (check.conflicting > 0) == (order == "shuffled")


def test_a_slower_source_or_a_full_output_buffer_sets_the_rate() -> None:
    found = analysed(small(event__rate="20 MHz"))
    assert found["event_rate_hz"] == found["event_rate_bound_hz"] == 20e6
    assert found["phase_s"] == pytest.approx(4096 / 20e6)
    assert "barrier_s.waiting" not in found  # where they wait, no formula says
    # Room for three events of 4 · 409 600 B, each kept for 5 ms, on each of four nodes.
    buffer = {"builders__buffer": "5 MB", "builders__processing": [{"mean": "5 ms"}]}
    found = analysed(small(building__barrier="ideal", **buffer))
    assert found["event_rate_hz"] == pytest.approx(4096 * 4 * 3 / 5e-3)
    assert "phase_s" not in found


@pytest.mark.parametrize(
    ("part", "limit"),
    [
        ("pcie", {"hosts__pcie_rate": "50 Gb/s"}),
        # All bytes cross memory twice, sent ones and as many that come.
        ("memory", {"hosts__memory_rate": "200 Gb/s"}),
        ("memory", {"hosts__memory_rate": "300 Gb/s", "hosts__memory_passes": 3}),
    ],
)
def test_a_part_slower_than_the_link_bounds_the_rate(part: str, limit: dict[str, object]) -> None:
    found = methods.analyse(small(building__barrier="ideal", **limit))
    ways = way_s(3, 64) + way_s(3, 30) + wire_s(30)
    phase = 3 / 4 * (8 * 409_600 / 50e9 + ways)
    assert found.metric("node_throughput_bps") == pytest.approx(8 * 409_600 / phase, rel=1e-9)
    bounds = found.analysis["rate_bounds_hz"]
    assert min(bounds, key=lambda name: bounds[name]) == part


def test_results_without_barrier_or_enough_grace_are_marked_as_bounds() -> None:
    loose = methods.analyse(small(building__barrier="none"))
    assert any("bounds" in sentence for sentence in loose.warnings)
    assert not loose.analysis["phase"]["valid"]
    assert loose.metric("barrier_rate_hz") is None

    def failing(grace: str, **more: object) -> object:
        window = {"building__change": "window", "building__window": "20 us"}
        result = methods.analyse(small(**window, building__grace=grace, **more))
        return result.analysis["window"].get("failing")

    assert failing("3 us") is None
    assert failing("0 s") is None  # no write begins that could not end by the link's rate
    assert failing("3 us", hosts__clock_offset="2 us") == "writes end in their window"


# ---- windows -------------------------------------------------------------------------------------


def test_as_many_packets_are_written_as_fit_into_a_window() -> None:
    # 409 600 B take 16.4 us.
    for window, meps in {"20 us": 1, "34 us": 2, "16 us": 0}.items():
        scenario = small(building__change="window", building__window=window, building__grace="1 us")
        if not meps:
            assert methods.analyse(scenario).metric("event_rate_hz") == 0
            continue
        found = analysed(scenario)
        assert found["phase_s"] == pytest.approx(float(window.split()[0]) * 1e-6)
        assert found["event_rate_hz"] == pytest.approx(4096 * meps / found["phase_s"], rel=0.05)


# ---- DAQPIPE -------------------------------------------------------------------------------------


def message_s(count: int) -> float:
    return 2 * 100e-9 + way_s(1, count) + wire_s(count) + 300e-9


def test_one_credit_and_one_send_take_all_messages_one_after_the_other() -> None:
    result = methods.analyse(daqpipe(readout__units=1))
    found = metrics(result)
    told, asked = message_s(16 + 46), message_s(16 + 8 + 46)
    written = message_s(MFP_WIRE)
    assert found["collection_latency_s.min"] == pytest.approx(told + asked + written, rel=1e-9)
    period_s = told + asked + written + told
    assert found["event_rate_hz"] == pytest.approx(4096 / period_s, rel=1e-9)
    assert found["processor_share"] == pytest.approx(8 * 100e-9 / (2 * period_s), rel=1e-9)
    assert result.warnings == ["without effect: event.fragment_sizes; closed forms take means"]


def test_more_credits_are_bound_by_the_link_and_timed_events_by_their_slots() -> None:
    found = methods.analyse(daqpipe(readout__units=1, building__credits=8))
    assert found.analysis["event"]["limit"] == "host_link"
    expected = 200e9 * 409_600 / (MFP_WIRE + 30 + 16)
    assert found.metric("throughput_bps") == pytest.approx(expected, rel=1e-9)
    found = methods.analyse(daqpipe(building__slot="50 us", builders__folded=True))
    assert found.metric("event_rate_hz") == pytest.approx(4 * 4096 / (3 * 50e-6))
    assert found.analysis["event"]["limit"] == "time_slots"


# ---- all of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lhcb-run3-test", "lhcb-run3", "lhcb-500", "daqpipe-cluster64"])
def test_every_part_bounds_the_rate(name: str) -> None:
    result = methods.analyse(load(name))
    bounds = result.analysis["rate_bounds_hz"]
    assert result.metric("event_rate_bound_hz") == min(bounds.values())
    assert 0 < (result.metric("event_rate_hz") or 0) <= min(bounds.values()) * (1 + 1e-9)


@pytest.mark.process
def test_every_shipped_fabric_is_analysed_without_the_engine() -> None:
    fabrics = [name for name in presets() if load(name).building.protocol in ("shift", "daqpipe")]
    assert "lhcb-run3" in fabrics
    heavy = {"scipy", "networkx", "xarray", "matplotlib", "daqloom._engine"}
    calls = f"for name in {fabrics}: load(name).analyse()"
    assert not heavy & imported(f"from daqloom import load\n{calls}")


def test_the_same_fabric_is_cabled_once_and_folded_ones_apart() -> None:
    scenario = load("lhcb-run3-test")
    first = traffic(scenario)
    other = {"event.fragment_size": "100 B", "hosts.message_cost": "1 us"}
    other |= {"network.links.delay": "200 ns"}
    assert traffic(override(scenario, other)) is first
    assert traffic(override(scenario, {"network.hosts_per_leaf": 20})) is not first
    # Both have three nodes on the same hosts; of the first, two read out and one builds.
    unfolded = small(builders__folded=False, readout__units=2, builders__units=1)
    folded = small(readout__units=3)
    traffic(unfolded)
    alike = traffic(folded)
    assert alike.builders.tolist() == alike.slots.tolist()
    assert methods.analyse(folded).metric("event_rate_bound_hz") > 0


def test_impossible_systems_are_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="nothing limits its rate"):
        methods.analyse(small(readout__units=1))
    too_many = r"readout.units = 5 takes 5 hosts, and the network has 4"
    with pytest.raises(ScenarioError, match=too_many):
        methods.analyse(small(readout__units=5))
    with pytest.raises(ScenarioError, match="groups have 3 sources"):
        methods.analyse(small(event__groups=[{"sources": 3, "share": 1}]))
    scenario = ring(tmp_path)
    lost = tmp_path / "opensm-lfts.dump"
    lost.write_text(lost.read_text().replace("0x000c 002", "0x000c 000"))
    with pytest.raises(ScenarioError, match="pairs of nodes have no path"):
        methods.analyse(scenario)


def test_assumptions_of_an_import_are_worded_as_in_the_simulation(tmp_path) -> None:
    scenario = ring(tmp_path)
    cabling = tmp_path / "ibnetdiscover.txt"
    cabling.write_text(cabling.read_text().replace("lid 11 4xHDR", "lid 11 4xEDR"))
    notes = fabric_system(scenario).warnings
    mixed = "the ends of 1 cable have different speeds; the slower one is used"
    assert any(mixed in note for note in notes)
    found = methods.analyse(override(scenario, {"network.links.rate": "HDR"}))
    assert found.warnings[: len(notes)] == notes
