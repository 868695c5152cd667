"""Event building on a simulated fabric: known answers through the whole chain."""

import json
from pathlib import Path

import pytest

from daqloom import _engine
from daqloom.deployment.fabric_system import fabric_system
from daqloom.deployment.scenarios import override
from daqloom.results.result import Result
from daqloom.scenario import Scenario, ScenarioError
from daqloom.simulate import SimulationError
from daqloom.simulate.infiniband import infiniband_config
from daqloom.study.methods import methods
from daqloom.topology.schedule.slots import DUMMY
from support.small_fabrics import INFINIBAND, metrics, ring, simulated, small, way_s

WIDE = {"network__hosts_per_leaf": 4, "network__spines": 4, "network__switch__radix": 8}
"""Two leaves with four hosts each, and full bisection."""


def wire_s() -> float:
    """Time of one MFP at 200 Gb/s: 100 packets of 4096 and 26 B, RDMA header 16, immediate 4."""
    return (100 * (4096 + 26) + 16 + 4) * 8 / 200e9


def write_s(switches: int, meps: int = 1) -> float:
    """Time of writes over so many switches, and of the acknowledgement of the last one."""
    back_s = way_s(switches, 30) + 30 * 8 / 200e9
    return wire_s() * meps + way_s(switches, 64) + back_s


def with_seeds(scenario: Scenario) -> list[Result]:
    """Results of the seeds 1, 1 and 2."""
    return [methods.simulate(scenario, seed=seed) for seed in (1, 1, 2)]


def test_phases_behind_an_ideal_barrier_take_as_long_as_a_write_and_its_acknowledge() -> None:
    found = simulated(small(building__barrier="ideal"))
    # Three phases of four take time: one to the neighbour on the leaf, two over the spines; the
    # fourth is a copy within the node. Credit updates and a few messages share the wires.
    assert write_s(3) < 4 / 3 * found["phase_s"] < 1.02 * write_s(3)
    payload = 8 * 100 * 4096
    assert found["node_throughput_bps"] == pytest.approx(payload / found["phase_s"], rel=1e-3)
    assert found["event_rate_hz"] == pytest.approx(4096 / found["phase_s"], rel=0.02)
    assert found["barrier_share"] < 0.03


def test_a_centralised_barrier_costs_the_time_of_its_messages() -> None:
    free = simulated(small(building__barrier="ideal"))
    cost_s = 2e-6
    paid = simulated(small(building__barrier="centralised", hosts__message_cost="2 us"))
    # The master processes three arrivals one by one, and releases as many.
    assert paid["barrier_s.releasing"] > 3 * cost_s
    assert paid["phase_s"] > free["phase_s"] + 8 * cost_s
    assert paid["processor_share"] > 0.1
    assert paid["barrier_share"] == pytest.approx(
        (paid["barrier_s.waiting"] + paid["barrier_s.releasing"]) / paid["phase_s"], rel=0.05
    )


def test_nodes_that_leave_step_wait_at_the_last_barrier_of_a_round_alone() -> None:
    for phases in (1, 2, 4):
        keys = {"building__synchronise": "adaptive", "building__phases_per_barrier": phases}
        found = simulated(small(**keys, building__barrier="ideal", run__duration="2 ms"))
        assert found["out_of_step_share"] == pytest.approx(1 - phases / 4, abs=0.01)


def test_dummies_cost_their_share_and_a_rate_is_kept_if_the_network_can() -> None:
    full = simulated(small(building__barrier="ideal"))
    lacking = small(building__barrier="ideal", readout__units=3)
    assert fabric_system(lacking).slots.tolist().count(DUMMY) == 1
    found = simulated(lacking)
    assert found["dummy_share"] == 1 / 4
    # A round has four phases still, and builds three events.
    assert found["event_rate_hz"] == pytest.approx(3 / 4 * full["event_rate_hz"], rel=0.03)
    found = simulated(small(event__rate="20 MHz"))
    assert found["written_event_rate_hz"] == pytest.approx(20e6, rel=0.06)


def test_an_output_buffer_holds_a_multi_event_packet_or_is_refused() -> None:
    mep = 4 * 100 * 4096  # an MFP of 100 × 4096 B of each of the four nodes
    refused = small(event__fragment_sizes="fixed", builders__buffer=f"{mep - 1} B")
    with pytest.raises(ScenarioError, match=rf"of {mep - 1} bytes; .* takes about {mep}: give"):
        methods.simulate(refused)
    found = methods.simulate(small(event__fragment_sizes="fixed", builders__buffer=f"{mep} B"))
    assert found.metric("events_built")


def carded(spike: str, **changes: object) -> Scenario:
    """20 MHz: 409.6 kB of each stream in 204.8 us, for half of which a card has room."""
    card = {"buffer": "204800 B", "spike_probability": 1.0, "spike__mean": spike}
    keys = {f"readout__card__{key}": value for key, value in card.items()}
    return small(event__rate="20 MHz", **keys, **changes)


def test_a_card_stops_the_trigger_while_an_acknowledge_outlasts_its_memory() -> None:
    # Measured over eight rounds of four packets, behind 0.5 ms.
    bridged = simulated(carded("102.4 us", run__duration="7.0536 ms"))
    assert bridged["trigger_stopped_share.acknowledge"] == 0
    assert bridged["event_rate_hz"] == pytest.approx(20e6, rel=0.01)
    # 47.6 us longer, once for every packet: these come every 252.4 us.
    found = simulated(carded("150 us", run__duration="8.5768 ms"))
    assert found["trigger_stopped_share.acknowledge"] == pytest.approx(47.6 / 252.4, rel=0.02)
    assert found["trigger_stopped_share.memory"] == 0
    assert found["event_rate_hz"] == pytest.approx(20e6 * 204.8 / 252.4, rel=0.01)
    assert "trigger_stopped_share.memory" not in simulated(small())


def test_seeds_give_metrics_and_spikes_of_cards_node_by_node() -> None:
    scenario = carded("150 us", readout__card__spike__kind="exponential")
    one, again, other = (result.metrics for result in with_seeds(scenario))
    assert one == again
    assert one["trigger_stopped_share"] != other["trigger_stopped_share"]
    jitter = {"building__jitter__kind": "exponential", "building__jitter__mean": "1 us"}
    first, second, third = with_seeds(small(event__fragment_sizes="poisson", **jitter))
    assert first.metrics == second.metrics != third.metrics


def test_a_run_too_short_for_its_rate_has_a_warning() -> None:
    short = small(event__rate="5 MHz")
    result = methods.simulate(short, seed=1)
    (warning,) = result.warnings
    assert "are ready only after 0.00328 s" in warning
    rates = {"event_rate_hz", "written_event_rate_hz", "phase_s"}
    rates |= {"throughput_bps", "node_throughput_bps"}
    assert not rates & result.metrics.keys()
    # 31 rounds of 205 us.
    long_enough = methods.simulate(small(event__rate="20 MHz", run__duration="7 ms"), seed=1)
    assert long_enough.warnings == []
    assert rates <= long_enough.metrics.keys()


def test_pcie_and_memory_bound_the_rate_of_a_node() -> None:
    full = simulated(small(building__barrier="ideal"))
    # 200 Gb/s a link. A phase takes as much longer as PCIe is slower, and so with memory, which
    # all data of a node cross four times.
    for limit in ({"hosts__pcie_rate": "50 Gb/s"}, {"hosts__memory_rate": "200 Gb/s"}):
        found = simulated(small(building__barrier="ideal", **limit))
        assert found["phase_s"] > 3 / 4 * 8 * 409_600 / 50e9
        assert found["phase_s"] == pytest.approx(4 * full["phase_s"], rel=0.1)
    once = small(building__barrier="ideal", hosts__memory_rate="200 Gb/s", hosts__memory_passes=1)
    assert simulated(once)["phase_s"] == pytest.approx(2 * full["phase_s"], rel=0.1)


def test_groups_share_the_event() -> None:
    scenario = small(event__groups=[{"sources": 1, "share": 0.4}, {"sources": 3, "share": 0.6}])
    sizes = fabric_system(scenario).mfp_bytes
    assert sizes == [round(4 * 409_600 * 0.4), *[round(4 * 409_600 * 0.2)] * 3]
    with pytest.raises(ScenarioError, match=r"groups have 3 sources; expected .* 4"):
        methods.simulate(small(event__groups=[{"sources": 3, "share": 1}]))


@pytest.mark.parametrize(
    ("changes", "slots", "dummies"),
    [
        ({}, 321 + 19, 19),  # 16 leaves of 20 and one node on the 17th
        ({"hosts.placement": "spread"}, 324, 3),
        ({"hosts.placement": "spread", "building.dummies": "all-ports"}, 360, 39),
        ({"building.dummies": "none"}, 321, 0),
        ({"network.hosts_per_leaf": 18}, 324, 3),
    ],
)
def test_the_placement_decides_the_dummies(changes, slots, dummies) -> None:
    system = fabric_system(override(INFINIBAND, {"readout.units": 321} | changes))
    assert (len(system.slots), system.slots.tolist().count(DUMMY)) == (slots, dummies)
    assert system.nodes == 321


def test_a_write_takes_its_way_and_that_of_its_acknowledge() -> None:
    result = methods.simulate(small(building__barrier="ideal"), seed=1)
    found = metrics(result)
    near, far = write_s(1), write_s(3)  # the neighbour on the leaf, and others
    assert near < found["write_latency_s.min"] < 1.02 * near
    assert far < found["write_latency_s.max"] < 1.02 * far
    assert found["write_latency_s.mean"] == pytest.approx((near + 2 * far) / 3, rel=0.02)
    histogram = result.series["write_latency"]
    written = found["events_built"] / 4096 * 3  # one MFP of four stays on its node
    assert sum(histogram["count"]) == pytest.approx(written, abs=8)
    assert min(histogram["lowest_s"]) <= found["write_latency_s.min"]


def test_a_write_crosses_three_levels() -> None:
    # Two pods of two leaves and two spines, two cores of two cables above each spine: eight hosts,
    # of which one is the neighbour, two are in the same pod and four in the other.
    pods = {"network.pods": 2, "network.cores": 2, "network.core_links": 2}
    scenario = override(small(building__barrier="ideal"), pods | {"network.switch.radix": 6})
    fabric = fabric_system(scenario).fabric
    assert len(fabric.switches) == 4 + 4 + 2 * 2
    assert len(fabric.cables) == 8 + 4 * 2 + 4 * 2 * 2
    found = simulated(scenario)
    ways = [write_s(switches) for switches in (1, 3, 5)]
    assert ways[0] < found["write_latency_s.min"] < 1.02 * ways[0]
    assert ways[2] < found["write_latency_s.max"] < 1.02 * ways[2]
    mean = (ways[0] + 2 * ways[1] + 4 * ways[2]) / 7
    assert found["write_latency_s.mean"] == pytest.approx(mean, rel=0.02)


def test_ports_count_lane_by_lane() -> None:
    lanes = {"network.lanes.count": 3, "network.lanes.service_levels": [1, 2]}
    tables = {"network.lanes.high": [[2, 64]], "network.lanes.low": [[1, 64]]}
    scenario = override(small(transport__control_service_level=1), lanes | tables)
    # Credits of one packet at a time: outputs wait, and mostly with data.
    result = methods.simulate(override(scenario, {"network.switch.buffer": "4160 B"}), seed=1)
    ports = result.series["ports"]
    assert [sum(of_lane) for of_lane in ports["lane_bytes"]] == ports["bytes"]
    unused, data, control = (sum(of_lane) for of_lane in zip(*ports["lane_bytes"], strict=True))
    assert unused == 0
    assert data > 100 * control > 0
    idle = [a + b for a, b in zip(ports["wait_credits_s"], ports["wait_crossbar_s"], strict=True)]
    for waits, whole in zip(ports["lane_wait_s"], idle, strict=True):
        assert max(waits) <= whole * (1 + 1e-9)
        assert whole <= sum(waits) * (1 + 1e-9)
    waited = [sum(of_lane) for of_lane in zip(*ports["lane_wait_s"], strict=True)]
    assert waited[0] == 0
    assert waited[1] > 0


def test_host_latencies_are_drawn_from_measured_ones(tmp_path: Path) -> None:
    file = tmp_path / "latencies.txt"
    changes = {"hosts__latency__kind": "histogram", "hosts__latency__file": str(file)}

    file.write_text("1.5\n")
    drawn = methods.simulate(small(**changes, hosts__latency__less="500 ns"), seed=1)
    fixed = methods.simulate(
        small(hosts__latency__kind="fixed", hosts__latency__mean="1 us"), seed=1
    )
    assert drawn.metrics == fixed.metrics

    file.write_text("#, usec\n1, 1\n2, 1\n3, 1\n4, 101\n")
    scenario = small(**changes, building__barrier="ideal", run__duration="20 ms")
    first, again, other = with_seeds(scenario)
    assert first.metrics == again.metrics != other.metrics
    # A quarter of the writes waits for 100 us more.
    latency = first.series["write_latency"]
    slow = sum(n for n, at in zip(latency["count"], latency["lowest_s"], strict=True) if at > 1e-4)
    count = sum(latency["count"])
    assert count > 500
    assert abs(slow / count - 1 / 4) < 4 * (3 / 16 / count) ** 0.5
    found = metrics(first)
    assert found["write_latency_s.max"] - found["write_latency_s.min"] == pytest.approx(
        100e-6, rel=0.02
    )


def test_the_timeline_has_a_track_for_each_node(tmp_path: Path) -> None:
    file = tmp_path / "phases.json"
    scenario = small()
    methods.simulate(scenario, seed=1, trace=file)
    hosts = [host.name for host in fabric_system(scenario).fabric.hosts]
    events = json.loads(file.read_text())["traceEvents"]
    names = [event["args"]["name"] for event in events if event["ph"] == "M"]
    assert names == hosts
    slices = [event for event in events if event["ph"] == "X" and event["cat"] == "sending"]
    first = [event["name"] for event in slices if event["tid"] == 1][:4]
    assert first == [f"to {hosts[i]}" for i in (1, 2, 3, 0)]
    assert all(event["dur"] >= 0 for event in slices)


def test_an_imported_fabric_runs_by_its_own_tables() -> None:
    network = {"shape": "imported", "dumps": "cluster64", "links.rate": "100 Gb/s"}
    keys = {"event.packing": 5000, "readout.streams": 1, "run.duration": "2 ms"}
    keys |= {"building.dummies": "none", "building.barrier": "ideal", "run.warmup": "0.2 ms"}
    keys |= {f"network.{key}": value for key, value in network.items()}
    scenario = override(INFINIBAND, keys)
    assert fabric_system(scenario).nodes == 64
    imported = simulated(scenario)
    clean = simulated(override(scenario, {"network.dumps": "fattree72"}))
    assert imported["xmit_wait_s.crossbar"] + imported["xmit_wait_s.credits"] > 0
    assert imported["node_throughput_bps"] < 0.9 * clean["node_throughput_bps"]


@pytest.mark.parametrize(("speed", "rate_bps"), [("HDR", 200e9), ("EDR", 100e9)])
def test_imported_cables_keep_their_rates_and_assumptions_are_warnings(tmp_path, speed, rate_bps):
    flow = {"flows.a.source": "h0", "flows.a.destination": "h1", "flows.a.size": "4 MB"}
    scenario = override(ring(tmp_path), FLOWS_ALONE | flow | {"network.switch.buffer": "64 KiB"})
    cables = tmp_path / "ibnetdiscover.txt"
    # The ends of h0's cable report different speeds.
    text = cables.read_text().replace('"h0" lid 11 4xHDR', f'"h0" lid 11 4x{speed}', 1)
    cables.write_text(text)
    result = methods.simulate(scenario, seed=1)
    payload_bps = rate_bps * 4096 / (4096 + 26)
    assert metrics(result)["flow_throughput_bps.a"] == pytest.approx(payload_bps, rel=0.05)
    warnings = [] if speed == "HDR" else ["have different speeds; the slower one is used"]
    assert len(result.warnings) == len(warnings)
    assert all(each in result.warnings[0] for each in warnings)


def test_units_are_equally_many_and_no_more_than_hosts() -> None:
    sentence = r"readout.units = 5 takes 5 hosts, and the network has 4"
    with pytest.raises(ScenarioError, match=sentence):
        methods.simulate(small(readout__units=5))
    for folded, more in ((False, "without pull, unfolded"), (True, "folded")):
        sentence = f"builders.units = 1 and readout.units = 3; {more}"
        with pytest.raises(ScenarioError, match=sentence):
            small(readout__units=3, builders__units=1, builders__folded=folded)
    with pytest.raises(ScenarioError, match=r"units that are not folded has no closed form"):
        methods.analyse(small(builders__folded=False))


FLOWS_ALONE = {"building.protocol": "none", "transport.connection": "unreliable"}
TO_H0 = (
    "0x000b {} # Channel Adapter portguid 0x0000000000000010: 'h0'\n0x000c 002 # Channel Adapter "
    "portguid 0x0000000000000011: 'h1'\n0x000d 001"
)
LOST = (
    # sw0 has no route to h1; sw2 sends packets for h0 back to sw1, whose way is by sw2.
    ("0x000c 002", "0x000c 000", 0, "sw0 has no route to h1"),
    (TO_H0.format("002"), TO_H0.format("003"), 2, "packets to h0 loop: sw1 port 2, sw2 port 3"),
)


@pytest.mark.parametrize(("old", "new", "destination", "sentence"), LOST)
def test_tables_without_a_way_are_refused_at_once(tmp_path, old, new, destination, sentence):
    scenario = ring(tmp_path)
    tables = tmp_path / "opensm-lfts.dump"
    assert old in tables.read_text()
    tables.write_text(tables.read_text().replace(old, new, 1))
    for protocol in ("shift", "daqpipe"):
        with pytest.raises(ScenarioError, match=sentence):
            methods.simulate(override(scenario, {"building.protocol": protocol}), seed=1)
    # A flow only needs its own way, and that of its acknowledgements.
    flow = {"source": "every", "destination": destination, "messages": 1}
    flow["start"] = "3 ms"  # after the warm-up
    changes = FLOWS_ALONE | {f"flows.a.{key}": value for key, value in flow.items()}
    found = simulated(override(scenario, changes))
    assert found["flow_messages.a"] == 2
    lost = [{"flows.a.destination": "random"}]
    lost += [{"transport.connection": "reliable"}] if destination == 0 else []
    for more in lost:
        with pytest.raises(ScenarioError, match=rf"flows.a: .*{sentence}"):
            methods.simulate(override(scenario, changes | more), seed=1)


def test_a_deadlock_is_named_by_its_circle_or_resolved_by_retries(tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match=r"deadlock: .*sw0 port 2 → sw1 port 2 → sw2 port 2"):
        methods.simulate(ring(tmp_path), seed=1)
    result = in_ring(tmp_path, "5 us", {"transport.retry_timeout": "100 us"})
    found = metrics(result)
    assert found["packets_discarded"] > 0
    assert found["packets_discarded"] == sum(result.series["ports"]["discards"])
    assert found["retransmissions.nak"] + found["retransmissions.timeout"] > 0
    assert found["writes_failed"] == 0
    assert found["events_built"] > 0
    assert result.warnings == []


def in_ring(folder: Path, lifetime: str, keys: dict[str, object] | None = None) -> Result:
    changes = {"network.switch.head_of_queue_lifetime": lifetime} | (keys or {})
    return methods.simulate(override(ring(folder), changes), seed=1)


def test_losses_that_are_not_retransmitted_have_warnings(tmp_path: Path) -> None:
    result = in_ring(tmp_path, "20 us")
    assert metrics(result)["packets_discarded"] > 0
    warnings = " ".join(result.warnings)
    assert "packets were discarded and none is retransmitted" in warnings
    assert "the event builder has stalled at the end" in warnings
    retries = {"transport.retry_timeout": "20 us", "transport.retry_count": 0}
    result = in_ring(tmp_path, "1 us", retries)
    failed = metrics(result)["writes_failed"]
    assert failed > 0
    assert any(f"{failed} writes failed: their connections gave up" in w for w in result.warnings)


def test_dummies_keep_their_phases_between_barriers_unless_they_are_skipped() -> None:
    def node_bps(nodes: int, dummies: str) -> float:
        scenario = small(
            **WIDE,
            readout__units=nodes,
            building__dummies="all-ports",
            hosts__local_rate="200 Gb/s",  # its own builder takes a phase as others do
            building__barrier="ideal",
            building__phases_per_barrier=8,
            building__dummy_phases=dummies,
            run__duration="20 ms",
        )
        return simulated(scenario)["node_throughput_bps"]

    # 8 − D of a round's 8 phases are for nodes; skipped, the others take no time.
    alone = node_bps(8, "kept")
    for nodes in (7, 6):
        assert node_bps(nodes, "kept") == pytest.approx(alone * nodes / 8, rel=0.01)
        assert node_bps(nodes, "skipped") > 1.05 * alone * nodes / 8


def test_a_crossbar_is_matched_as_in_the_scenario() -> None:
    keys = ("crossbar_speedup", "crossbar_arbiter", "crossbar_iterations")

    def with_crossbar(*values: object) -> Scenario:
        given = zip(keys, values, strict=False)
        changes = {f"network__switch__{key}": value for key, value in given}
        return small(building__barrier="none", **changes)

    config = infiniband_config(fabric_system(with_crossbar(1, "islip", 3)), seed=1)
    assert config.crossbar_arbiter == _engine.CrossbarArbiter.islip
    assert config.crossbar_iterations == 3
    # Out of step, nodes meet at switches: whose turn it is depends on the arbiter.
    in_turn = methods.simulate(with_crossbar(1), seed=1)
    assert in_turn.metrics == methods.simulate(with_crossbar(1, "round-robin"), seed=1).metrics
    assert in_turn.metrics != methods.simulate(with_crossbar(1, "islip"), seed=1).metrics
    with pytest.raises(ScenarioError, match="crossbar_arbiter"):
        with_crossbar(1, "round-robin", 2)


def test_several_multi_event_packets_a_phase_share_its_barrier() -> None:
    # Two leaves of two hosts; every phase but the local one crosses the spines, and its writes
    # follow each other on the wire.
    costs = {"hosts__message_cost": "1 us", "network__switch__crossbar_speedup": 2}
    for meps in (1, 2, 4):
        keys = {"building__meps_per_phase": meps, "run__duration": "6 ms"}
        ideal = simulated(small(building__barrier="ideal", **keys))
        paid = simulated(small(building__barrier="centralised", **keys, **costs))
        assert 4 / 3 * ideal["phase_s"] == pytest.approx(write_s(3, meps), rel=0.02)
        payload = 8 * 100 * 4096 * meps
        assert ideal["node_throughput_bps"] == pytest.approx(payload / ideal["phase_s"], rel=0.01)
        assert ideal["event_rate_hz"] == pytest.approx(4096 * meps / ideal["phase_s"], rel=0.02)
        # A barrier has its cost once a phase: 1/meps for each packet.
        assert paid["barrier_rate_hz"] == pytest.approx(1 / paid["phase_s"], rel=0.02)
        rate_hz = 4096 * meps * paid["barrier_rate_hz"]
        assert paid["event_rate_hz"] == pytest.approx(rate_hz, rel=0.02)
        assert paid["phase_s"] - ideal["phase_s"] == pytest.approx(12e-6, abs=4e-6)


def test_a_window_has_no_number_of_multi_event_packets() -> None:
    sentence = r"building.meps_per_phase means nothing with building.change = .window."
    with pytest.raises(ScenarioError, match=sentence):
        small(building__change="window", building__meps_per_phase=2)
    with pytest.raises(ScenarioError, match=r"a round takes 12 MFPs, and room for 13"):
        methods.simulate(small(building__meps_per_phase=3, readout__buffer="4 MB"))


def test_nodes_that_read_out_or_build_use_their_links_in_one_direction() -> None:
    keys = {"builders__folded": False, "run__duration": "6 ms"}
    scenario = small(**WIDE, building__barrier="ideal", **keys)
    result = methods.simulate(scenario, seed=1, timeline=True)
    found = metrics(result)
    # One phase of four goes to the neighbour, over one switch.
    assert found["phase_s"] == pytest.approx((write_s(1) + 3 * write_s(3)) / 4, rel=0.01)
    payload = 8 * 100 * 4096
    assert found["node_throughput_bps"] == pytest.approx(payload / found["phase_s"], rel=0.01)
    assert found["throughput_bps"] == pytest.approx(4 * found["node_throughput_bps"], rel=0.02)
    assert found["written_event_rate_hz"] == pytest.approx(4096 / found["phase_s"], rel=0.01)
    written = found["written_event_rate_hz"] * 5.5e-3
    assert found["events_built"] == pytest.approx(written, abs=4 * 4096)
    assert found["dummy_share"] == 0
    hosts = [host.name for host in fabric_system(scenario).fabric.hosts]
    ports = result.series["ports"]
    bytes_of = dict(zip((n.split()[0] for n in ports["name"]), ports["bytes"], strict=True))
    sent = {name: bytes_of[name] for name in hosts}
    most = max(sent.values())
    assert all(sent[name] > 0.99 * most for name in hosts[0::2])
    assert all(sent[name] < 0.02 * most for name in hosts[1::2])
    # In phase n the readout unit of slot i writes to the builder unit of slot i + n.
    phases = result.series["phases"]
    assert set(phases["node"]) == set(hosts[0::2])
    rows = zip(*(phases[name] for name in ("node", "step", "to", "what")), strict=True)
    met = {(node, step % 4): to for node, step, to, what in rows if what == "sending"}
    assert met == {
        (hosts[2 * slot], n): hosts[2 * ((slot + n) % 4) + 1] for slot in range(4) for n in range(4)
    }


def test_unfolded_a_large_tree_stays_without_conflicts_also_with_dummies() -> None:
    def in_step(**changes: object) -> float:
        keys = {"builders__folded": False, "building__barrier": "ideal", "run__duration": "4 ms"}
        return simulated(small(**WIDE, network__leaves=4, **keys, **changes))["phase_s"]

    far = write_s(3)
    assert in_step() == pytest.approx(far, rel=0.02)
    # Three nodes of each leaf: every second pair of slots lacks one, but no phase has a conflict.
    assert in_step(readout__units=6, hosts__placement="spread") < 1.02 * far
    assert in_step(readout__units=8, builders__units=7) < 1.02 * far
    assert in_step(hosts__order="shuffled") > 1.3 * far


WINDOWS = {"building__window": "50 us", "building__grace": "5 us"}


@pytest.mark.parametrize("nodes", [2, 3, 7])
@pytest.mark.parametrize("change", ["count", "window"])
def test_any_number_of_nodes_reads_out_and_builds_by_turns(nodes: int, change: str) -> None:
    scenario = small(
        **WIDE,
        readout__units=(nodes + 1) // 2,
        builders__units=nodes // 2,
        builders__folded=False,
        **({"building__change": change} | (WINDOWS if change == "window" else {})),
    )
    found = simulated(scenario)
    readouts, builders = (nodes + 1) // 2, nodes // 2
    assert found["events_built"] > 0
    assert found["node_throughput_bps"] == pytest.approx(found["written_throughput_bps"] / readouts)
    system = fabric_system(scenario)
    assert len(system.mfp_bytes) == readouts
    assert found["dummy_share"] == pytest.approx(1 - builders / len(system.builders))
