"""DAQPIPE on a simulated fabric: known answers through the whole chain."""

import json
from pathlib import Path

import pytest

from daqloom.deployment.fabric_system import fabric_system
from daqloom.deployment.scenarios import load, override
from daqloom.scenario import ScenarioError
from daqloom.simulate import SimulationError
from daqloom.study.methods import methods
from support.small_fabrics import daqpipe, metrics, ring, simulated, way_s

PAYLOAD_BYTES = 100 * 4096
WIRE_BYTES = 100 * (4096 + 26) + 16 + 4
"""Wire bytes of a fragment: a header of 26 B on each packet, address 16 B, immediate data 4 B."""
COST_S = 100e-9
POLLING_S = 300e-9


def message_s(switches: int, wire_bytes: int) -> float:
    """Time of a message: sending, the way, polling, processing."""
    return 2 * COST_S + way_s(switches, wire_bytes) + wire_bytes * 8 / 200e9 + POLLING_S


def test_one_credit_and_one_send_take_all_messages_one_after_the_other() -> None:
    # One node of a leaf reads out, its neighbour builds.
    found = simulated(daqpipe(readout__units=1))
    assignment_s = report_s = message_s(1, 16 + 26 + 16 + 4)
    latency_s = assignment_s + message_s(1, 16 + 8 + 26 + 16 + 4) + message_s(1, WIRE_BYTES)
    assert found["collection_latency_s.min"] == pytest.approx(latency_s, rel=1e-9)
    assert found["collection_latency_s.max"] == pytest.approx(latency_s, rel=1e-9)
    # Then the builder reports. Over 1.5 ms, one event more or less of some eighty.
    period_s = latency_s + report_s
    assert found["event_rate_hz"] == pytest.approx(4096 / period_s, rel=1 / 80)
    assert found["node_throughput_bps"] == pytest.approx(8 * PAYLOAD_BYTES / period_s, rel=1 / 80)
    # Both ends process an assignment, a request, a report, and the fragment.
    assert found["control_messages"] == pytest.approx(3 * 1.5e-3 / period_s, abs=3)
    assert found["processor_share"] == pytest.approx(4 * 2 * COST_S / (2 * period_s), rel=1 / 80)


def test_more_credits_approach_the_payload_rate_of_the_builders_link() -> None:
    # Nodes 0 and 2 read out; node 1 builds.
    keys = {"readout__units": 2, "builders__units": 1, "building__parallel_sends": 2}
    rates = [
        simulated(daqpipe(**keys, building__credits=credits))["written_throughput_bps"]
        for credits in (1, 2, 8)
    ]
    most = 200e9 * PAYLOAD_BYTES / WIRE_BYTES
    assert rates == sorted(rates)
    assert 0.98 * most < rates[-1] <= 1.005 * most  # whole fragments, of some ninety


@pytest.mark.parametrize("mode", ["pull", "push"])
@pytest.mark.parametrize("slot", ["0 s", "25 us"])
@pytest.mark.parametrize("folded", [True, False])
def test_every_variant_builds_events_of_all_their_fragments(mode, slot, folded) -> None:
    building = {"building__mode": mode, "building__slot": slot, "building__credits": 2}
    latency = {"hosts__latency__kind": "exponential", "hosts__latency__mean": "500 ns"}
    random = {"event__fragment_sizes": "poisson", **latency}
    scenario = daqpipe(**building, **random, builders__folded=folded)
    first, again, other = (methods.simulate(scenario, seed=seed) for seed in (1, 1, 2))
    found = metrics(first)  # a run whose books do not balance is refused
    assert first.warnings == []
    assert found["events_built"] > 20 * 4096
    readouts = 4 if folded else 2
    carried_bps = 8 * 100 * found["event_rate_hz"] * readouts
    assert found["throughput_bps"] == pytest.approx(carried_bps, rel=1e-3)
    assert found["node_throughput_bps"] == pytest.approx(found["written_throughput_bps"] / readouts)
    assert first.metrics == again.metrics != other.metrics


def test_all_streams_of_a_node_are_one_fragment_and_a_rate_is_kept() -> None:
    groups = [{"sources": 2, "share": 0.5}, {"sources": 6, "share": 0.5}]
    together = daqpipe(readout__streams=4, event__groups=groups, event__fragment_size="25 B")
    sizes = fabric_system(together).mfp_bytes
    assert len(sizes) == 2 * 4  # two of the four nodes read out
    found = simulated(together)
    carried_bps = 8 * sum(sizes) / 4096 * found["event_rate_hz"]
    assert found["throughput_bps"] == pytest.approx(carried_bps, rel=0.02)
    found = simulated(daqpipe(event__rate="100 MHz", building__credits=2))
    assert found["event_rate_hz"] == pytest.approx(100e6, rel=0.06)


def test_the_timeline_has_the_events_of_each_builder(tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    scenario = daqpipe()
    methods.simulate(scenario, seed=1, trace=file)
    hosts = [host.name for host in fabric_system(scenario).fabric.hosts]
    events = json.loads(file.read_text())["traceEvents"]
    assert [e["args"]["name"] for e in events if e["ph"] == "M"] == hosts[1::2]
    begun = {e["id"]: e for e in events if e["ph"] == "b"}
    ended = {e["id"]: e for e in events if e["ph"] == "e"}
    assert begun.keys() == ended.keys()
    assert len(begun) > 50
    assert all(ended[event]["ts"] > begun[event]["ts"] for event in begun)


@pytest.mark.parametrize("slot", ["0 s", "10 us"])
def test_a_deadlock_is_named_by_its_circle_though_clocks_go_on(tmp_path: Path, slot: str) -> None:
    building = {"protocol": "daqpipe", "credits": 8, "slot": slot}
    keys = {f"building.{key}": value for key, value in building.items()}
    scenario = override(ring(tmp_path), keys)
    with pytest.raises(SimulationError, match=r"deadlock: .*sw1 port 2 → sw2 port 2"):
        methods.simulate(scenario, seed=1)


def test_the_shipped_cluster_is_slower_than_the_clean_tree() -> None:
    brief = {"run.duration": "4 ms", "run.warmup": "2 ms"}
    clean, cluster = (
        simulated(override(load(name), brief))
        for name in ("daqpipe-fattree72", "daqpipe-cluster64")
    )
    most = 100e9 * 4096 / (4096 + 26)
    assert cluster["node_throughput_bps"] < clean["node_throughput_bps"] < most * 73 / 72


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"building.credits": 0}, "building.credits = 0 is too small"),
        ({"building.parallel_sends": "four"}, "is not a whole number"),
        ({"building.mode": "pul"}, "is not known; expected 'pull' or 'push'"),
        ({"daqpipe.slots": "1 us"}, 'unknown key "daqpipe.slots"'),
        ({"builders.folded": 1}, "is neither true nor false"),
        ({"building.protocol": "barrel"}, "expected 'pull', 'shift', 'daqpipe' or 'none'"),
        ({"hosts.clock_drift": 0.5}, "is too large"),
    ],
)
def test_invalid_keys_are_refused_in_one_sentence(overrides, sentence) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        override(daqpipe(), overrides)


def test_wrong_groups_and_its_keys_alone_are_refused_in_one_sentence(tmp_path: Path) -> None:
    file, network = tmp_path / "mine.toml", '[network]\ntechnology = "infiniband"\n'
    file.write_text(network + "[building]\ncredits = 2\n")
    sentence = (
        r'building.credits means nothing with building.protocol = "shift"; leave it out, or '
        r'set building.protocol to "daqpipe"$'
    )
    with pytest.raises(ScenarioError, match=sentence):
        load(file)
    file.write_text(network + '[building]\ncredits = 2\nprotocol = "daqpipe"\n')
    assert load(file).building.protocol == "daqpipe"
    sentence = r"groups have 4 sources; expected .* of 2 readout units, 2"
    with pytest.raises(ScenarioError, match=sentence):
        methods.simulate(daqpipe(event__groups=[{"sources": 4, "share": 1}]))
