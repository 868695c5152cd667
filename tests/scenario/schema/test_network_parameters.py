"""Parameters of links and switches by level and by name."""

import pytest

from daqloom.scenario import Scenario, ScenarioError
from daqloom.study.methods import methods
from daqloom.topology.fabric.levels import tree
from daqloom.topology.fabric.links import delays_s
from daqloom.topology.system.scenarios import override
from daqloom.topology.system.system import fabric_system

THREE_LEVELS = {
    "network.technology": "ethernet",
    "network.shape": "fat-tree",
    "network.pods": 2,
    "network.leaves": 2,
    "network.spines": 2,
    "network.spine_links": 1,
    "network.cores": 1,
    "network.hosts_per_leaf": 3,
    "network.links.rate": "100 Gb/s",
    "network.links.delay": "200 ns",
    "building.protocol": "none",
    "transport.kind": "rdma",
    "transport.connection": "unreliable",
    "flows.a.source": 0,
    "flows.a.destination": 1,
    "flows.a.size": "1 kB",
    "flows.a.messages": 1,
    "run.duration": "1 ms",
    "run.warmup": "0 s",
}


def system(**changes: object) -> Scenario:
    more = {f"network.{key.replace('__', '.')}": value for key, value in changes.items()}
    return override(Scenario(), THREE_LEVELS | more)


def cables(scenario: Scenario) -> dict[tuple[int, int], set[tuple[float, float]]]:
    """Rates (Gb/s) and delays (ns) of the cables between two levels; hosts are level 0."""
    fabric = fabric_system(scenario).fabric
    level = (0,) * len(fabric.hosts) + tree(fabric).level
    found: dict[tuple[int, int], set[tuple[float, float]]] = {}
    for cable, delay_s in zip(fabric.cables, delays_s(scenario.network, fabric), strict=True):
        low, high = sorted((level[cable.a.node], level[cable.b.node]))
        ends = found.setdefault((low, high), set())
        ends.add((cable.rate_bps / 1e9, round(delay_s * 1e9)))
    return found


def test_links_differ_by_level() -> None:
    assert cables(system()) == {(0, 1): {(100, 200)}, (1, 2): {(100, 200)}, (2, 3): {(100, 200)}}
    levels = system(
        links__host__rate="25 Gb/s", links__spine__delay="50 ns", links__core__rate="400 Gb/s"
    )
    assert cables(levels) == {(0, 1): {(25, 200)}, (1, 2): {(100, 50)}, (2, 3): {(400, 200)}}


def test_one_link_differs_from_those_of_its_level() -> None:
    host = fabric_system(system()).fabric.hosts[1].name
    named = [{"end": host, "rate": "10 Gb/s", "delay": "1 us"}]
    one = system(links__host__rate="25 Gb/s", links__named=named)
    assert cables(one)[0, 1] == {(25, 200), (10, 1000)}


def test_a_message_takes_the_time_of_its_links() -> None:
    """Of one packet of 1000 B with 62 + 20 B of headers, gap and preamble, and 20 B of its write:
    store and forward by a leaf. The gap behind it delays nobody."""
    scenario = system(links__named=[{"end": "leaf00 port 2", "rate": "10 Gb/s", "delay": "1 us"}])
    latency = methods.simulate(scenario).metric("flow_latency_s.a.min")
    alike = methods.simulate(system()).metric("flow_latency_s.a.min")
    assert alike is not None
    slower = 8 * (1000 + 62 + 20 + 20) * (1 / 10e9 - 1 / 100e9) + 1e-6 - 200e-9
    assert latency - alike == pytest.approx(slower, rel=0.02)


def test_a_name_that_nothing_has_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"network.links.named has a cable at nowhere, where"):
        methods.simulate(system(links__named=[{"end": "nowhere", "rate": "1 Gb/s"}]))
    with pytest.raises(ScenarioError, match=r"network.switch.named has nobody, which is no switch"):
        methods.simulate(system(switch__named=[{"name": "nobody", "model": "infinite"}]))


def test_closed_forms_need_cables_that_are_alike() -> None:
    shift = override(
        Scenario(),
        {"network.technology": "infiniband", "network.links.host.rate": "EDR"},
    )
    with pytest.raises(ScenarioError, match=r"cables that differ from the others"):
        methods.analyse(shift)


def test_one_switch_drops_where_the_others_do_not() -> None:
    full = {
        "flows.a.source": "every",
        "flows.a.size": "64 KiB",
        "flows.a.messages": 20,
        "transport.connection": "reliable",
        "transport.retry_timeout": "100 us",
    }
    shallow = {"name": "leaf00", "model": "drop-tail", "queue_packets": 4}
    one = override(system(switch__named=[shallow]), full)
    ports = methods.simulate(one).series["ports"]
    where = {
        name.partition(" ")[0]
        for name, drops in zip(ports["name"], ports["drops"], strict=True)
        if drops
    }
    assert where == {fabric_system(one).fabric.switches[0].name}
    assert methods.simulate(override(system(), full)).metric("packets_dropped") == 0


def test_a_named_switch_is_shown_with_the_keys_of_its_model() -> None:
    shallow = {"name": "leaf0", "model": "drop-tail", "queue_packets": 4}
    (shown,) = system(switch__named=[shallow]).document()["network"]["switch"]["named"]
    assert shown == {
        "name": "leaf0",
        "model": "drop-tail",
        "buffer": "0 B",
        "port_limit": "0 B",
        "queue_packets": 4,
        "ecn_threshold": "0 B",
        "scheduling": "fifo",
        "cost": 1.0,
    }
