"""Classes of an Ethernet in scenarios: known answers, reports and refusals."""

from pathlib import Path
from typing import Any

import pytest

from daqloom.deployment.scenarios import load
from daqloom.results.result import Result
from daqloom.scenario import Scenario, ScenarioError, to_toml
from daqloom.study.methods import methods
from support.small_fabrics import from_text, metrics, simulated, small

RATE_BPS = 200e9
FRAME_BYTES = 1024 + 20 + 62 + 20
"""Largest frame on the wire: a packet with headers, address, immediate data, preamble and gap."""
SHORT_BYTES = 32 + 20 + 62 + 20
FLOW: dict[str, Any] = {
    "building__protocol": "none",
    "network__technology": "ethernet",
    "network__shape": "fat-tree",
    "transport__kind": "rdma",
    "flows__a__source": 0,
    "flows__a__destination": 1,
    "flows__a__size": "64 KiB",
    "flows__a__outstanding": 8,
    "run__duration": "600 us",
    "run__warmup": "100 us",
}
LEAF, NAMED = "network__switch__leaf__scheduling", "network__switch__named"
STRICT = {LEAF: "strict", "hosts__scheduling": "strict"}
WEIGHTED, WEIGHTS = {"hosts__scheduling": "weighted"}, "hosts__weights"
BY_CREDITS = {"network__technology": "infiniband", "hosts__scheduling": "strict"}


def flows(**changes: object) -> Scenario:
    """Flow at full rate from host 0 to its neighbour on the leaf, by RoCE."""
    return small(**(FLOW | changes))


def second(**changes: object) -> dict[str, object]:
    """Another flow to the same host from the other leaf, with changes."""
    flow: dict[str, object] = {"source": 2, "destination": 1, "size": "64 KiB", "outstanding": 8}
    return {f"flows__b__{key}": value for key, value in (flow | changes).items()}


def run(scenario: Scenario) -> tuple[Result, dict[str, float]]:
    result = methods.simulate(scenario)
    return result, metrics(result)


@pytest.mark.parametrize(
    ("weights", "share"), [([3, 0, 0, 0, 0, 1], 3), ([1, 1, 1, 1, 1, 4], 0.25)]
)
def test_classes_share_a_port_by_their_weights(weights: list[int], share: float) -> None:
    leaf = {"scheduling": "weighted", "weights": weights}
    keys = {f"network__switch__leaf__{key}": value for key, value in leaf.items()}
    _, found = run(flows(**second(service_level=5), **keys))
    rates = found["flow_throughput_bps.a"], found["flow_throughput_bps.b"]
    assert rates[0] / rates[1] == pytest.approx(share, rel=0.05)
    # Flow a has one link from a scheduled port; flow b another, up from its leaf.
    assert found["class_bytes.0"] == pytest.approx(rates[0] / 8 * 500e-6 * 1126 / 1024, rel=0.03)
    assert found["class_drops.0"] == found["class_drops.5"] == 0


@pytest.mark.parametrize("transport", ["system", "udp"])
@pytest.mark.parametrize("weights", [[1, 2, 5], [4, 1, 3]])
def test_a_host_shares_its_link_by_weights(weights: list[int], transport: str) -> None:
    keys: dict[str, Any] = {"hosts__scheduling": "weighted", "hosts__weights": weights}
    for level, name in enumerate("abc"):
        flow = {"source": 0, "destination": 1, "size": "64 KiB", "outstanding": 8}
        flow |= {"service_level": level, "transport": transport}
        keys |= {f"flows__{name}__{key}": value for key, value in flow.items()}
    _, found = run(flows(**keys, run__duration="3 ms"))
    carried = [found[f"class_bytes.{level}"] for level in range(3)]
    for size, weight in zip(carried, weights, strict=True):
        assert size / sum(carried) == pytest.approx(weight / sum(weights), abs=1e-3)


def test_strict_priority_gives_the_high_class_its_latency() -> None:
    """A short message beside a stream waits for one frame in front of each of the two wires."""
    short = second(source=0, size="32 B", interval="5 us", service_level=7)
    alone_s = 2 * 170e-9 + 2 * SHORT_BYTES * 8 / RATE_BPS
    frame_s = FRAME_BYTES * 8 / RATE_BPS
    result, found = run(flows(**short, **STRICT))
    assert result.warnings == []
    assert alone_s <= found["message_latency_s.level_7.min"]
    assert found["message_latency_s.level_7.max"] <= alone_s + 2 * frame_s
    assert found["message_latency_s.level_7.max"] == found["flow_latency_s.b.max"]
    assert found["message_latency_s.level_0.mean"] == found["flow_latency_s.a.mean"]


def test_levels_without_scheduled_ports_make_no_difference() -> None:
    result, found = run(flows(**second(service_level=7)))
    (warning,) = result.warnings
    assert "all ports send first-in first-out" in warning
    assert not any(name.startswith("class_") for name in found)
    assert found["flow_throughput_bps.a"] == pytest.approx(found["flow_throughput_bps.b"], rel=0.05)


def test_requests_of_a_high_class_pass_a_copy_that_fills_the_links() -> None:
    """The case of docs/how-to/give-messages-priority.md."""
    flow = {"source": "every", "destination": 0, "size": "1 MB", "outstanding": 2}
    copy: dict[str, object] = {f"flows.copy.{key}": value for key, value in flow.items()}
    run_of: dict[str, object] = {"run.duration": "150 ms", "run.warmup": "50 ms"}
    strict: dict[str, object] = {
        "transport.data_service_level": 5,
        "transport.control_service_level": 6,
        "hosts.scheduling": "strict",
        "network.switch.core.scheduling": "strict",
        "network.switch.tor.scheduling": "strict",
    }
    alone, beside, first = (
        simulated(load("small-rack", run_of | keys)) for keys in ({}, copy, copy | strict)
    )
    assert beside["collection_latency_s.mean"] > 20 * alone["collection_latency_s.mean"]
    median_s = alone["collection_latency_s.p50"]
    assert first["collection_latency_s.p50"] == pytest.approx(median_s, rel=0.01)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"flows__a__service_level": 8}, "service level of a message on Ethernet is the class"),
        ({LEAF: "weighted"}, r'scheduling = "weighted" requires weights, such as \[4, 1\]'),
        (WEIGHTED | {WEIGHTS: [0, 0]}, 'hosts: scheduling = "weighted" requires weights'),
        ({WEIGHTS: [1]}, 'hosts.weights means nothing with hosts.scheduling = "fifo"'),
        ({NAMED: [{"name": "leaf0", "weights": [1]}]}, "weights mean nothing with scheduling = "),
        (WEIGHTED | {WEIGHTS: [1001]}, "hosts.weights.0 = 1001 is too large; .* at most 1000"),
        (WEIGHTED | {WEIGHTS: [1] * 9}, "hosts.weights = .* 8"),
        (BY_CREDITS, 'hosts.scheduling means nothing with network.technology = "infiniband"'),
    ],
)
def test_impossible_classes_are_refused(keys: dict[str, object], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        flows(**keys)


def test_classes_read_back_as_shown(tmp_path: Path) -> None:
    named = [{"name": "leaf0", "scheduling": "weighted", "weights": [2, 1]}, {"name": "leaf1"}]
    scenario = flows(
        network__switch__named=named,
        network__switch__spine__scheduling="weighted",
        network__switch__spine__weights=[1, 2],
        transport__control_service_level=6,
    )
    assert from_text(tmp_path, to_toml(scenario)).hash() == scenario.hash()
