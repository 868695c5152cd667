"""Parameters of links and switches by level and by name."""

import pytest

from daqloom.deployment.fabric_system import fabric_system
from daqloom.deployment.scenarios import override
from daqloom.scenario import Scenario, ScenarioError
from daqloom.study.methods import methods
from daqloom.topology.fabric.levels import tree
from daqloom.topology.fabric.links import delays_s

FLOW = {"source": 0, "destination": 1, "size": "1 kB", "messages": 1}
SHAPE = {"technology": "ethernet", "shape": "fat-tree", "pods": 2, "leaves": 2, "spines": 2}
SHAPE |= {"spine_links": 1, "cores": 1, "hosts_per_leaf": 3}
SHAPE |= {"links.rate": "100 Gb/s", "links.delay": "200 ns"}
THREE_LEVELS = {f"network.{key}": value for key, value in SHAPE.items()}
THREE_LEVELS |= {f"flows.a.{key}": value for key, value in FLOW.items()}
THREE_LEVELS |= {"transport.kind": "rdma", "transport.connection": "unreliable"}
THREE_LEVELS |= {"building.protocol": "none", "run.duration": "1 ms", "run.warmup": "0 s"}


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


def test_links_differ_by_level_and_by_name() -> None:
    assert cables(system()) == {(0, 1): {(100, 200)}, (1, 2): {(100, 200)}, (2, 3): {(100, 200)}}
    changes = {"links__spine__delay": "50 ns", "links__core__rate": "400 Gb/s"}
    levels = system(links__host__rate="25 Gb/s", **changes)
    assert cables(levels) == {(0, 1): {(25, 200)}, (1, 2): {(100, 50)}, (2, 3): {(400, 200)}}
    host = fabric_system(system()).fabric.hosts[1].name
    named = [{"end": host, "rate": "10 Gb/s", "delay": "1 us"}]
    one = system(links__host__rate="25 Gb/s", links__named=named)
    assert cables(one)[0, 1] == {(25, 200), (10, 1000)}


def test_a_message_takes_the_time_of_its_links() -> None:
    """Latency of one packet of 1000 B with 62 + 20 B of headers, gap and preamble, and 20 B of its
    write: store and forward by a leaf. The gap behind it delays no packet."""
    scenario = system(links__named=[{"end": "leaf00 port 2", "rate": "10 Gb/s", "delay": "1 us"}])
    latency = methods.simulate(scenario).metric("flow_latency_s.a.min")
    alike = methods.simulate(system()).metric("flow_latency_s.a.min")
    assert alike is not None
    slower = 8 * (1000 + 62 + 20 + 20) * (1 / 10e9 - 1 / 100e9) + 1e-6 - 200e-9
    assert latency - alike == pytest.approx(slower, rel=0.02)


def test_a_name_that_nothing_has_and_different_cables_in_closed_forms_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"network.links.named has a cable at nowhere, where"):
        methods.simulate(system(links__named=[{"end": "nowhere", "rate": "1 Gb/s"}]))
    with pytest.raises(ScenarioError, match=r"network.switch.named has nobody, which is no switch"):
        methods.simulate(system(switch__named=[{"name": "nobody", "model": "infinite"}]))
    keys = {"network.technology": "infiniband", "network.links.host.rate": "EDR"}
    shift = override(Scenario(), keys)
    with pytest.raises(ScenarioError, match=r"cables that differ from the others"):
        methods.analyse(shift)


def test_one_switch_drops_where_the_others_do_not() -> None:
    full = {"flows.a.source": "every", "flows.a.size": "64 KiB", "flows.a.messages": 20}
    full |= {"transport.connection": "reliable", "transport.retry_timeout": "100 us"}
    shallow = {"name": "leaf00", "model": "drop-tail", "queue_packets": 4}
    one = override(system(switch__named=[shallow]), full)
    ports = methods.simulate(one).series["ports"]
    dropped = [name for name, drops in zip(ports["name"], ports["drops"], strict=True) if drops]
    leaf = fabric_system(one).fabric.switches[0].name
    assert {name.partition(" ")[0] for name in dropped} == {leaf}
    assert methods.simulate(override(system(), full)).metric("packets_dropped") == 0


def test_a_named_switch_is_shown_with_the_keys_of_its_model() -> None:
    shallow = {"name": "leaf0", "model": "drop-tail", "queue_packets": 4}
    (shown,) = system(switch__named=[shallow]).document()["network"]["switch"]["named"]
    unlimited = dict.fromkeys(("buffer", "port_limit", "ecn_threshold"), "0 B")
    assert shown == shallow | unlimited | {"scheduling": "fifo", "cost": 1.0}
