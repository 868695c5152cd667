"""Flows over a simulated fabric: known answers through the whole chain."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from daqloom.deployment.fabric_system import fabric_system
from daqloom.deployment.scenarios import load, override
from daqloom.scenario import Scenario, ScenarioError, to_toml
from daqloom.simulate import SimulationError
from daqloom.simulate.run import _check_stall
from daqloom.study.methods import methods
from support.small_fabrics import from_text, simulated, small, way_s

RATE_BPS = 200e9


def flows(**changes: object) -> Scenario:
    """Flow a from host 0 to its neighbour on the leaf, with changes."""
    fixed: dict[str, object] = {
        "building__protocol": "none",
        "flows__a__source": 0,
        "flows__a__destination": 1,
        "run__duration": "500 us",
        "run__warmup": "50 us",
    }
    return small(**(fixed | changes))


def wire_bytes(size: int) -> int:
    """Bytes of a write with a header on each packet, address and immediate data."""
    return size + -(-size // 4096) * 26 + 16 + 4


def test_a_write_takes_its_wire_two_cables_and_the_switch_or_a_round_trip() -> None:
    one = simulated(
        flows(flows__a__size="8 B", flows__a__outstanding=1, hosts__message_cost="50 ns")
    )
    wire = wire_bytes(8)
    expected = 2 * 50e-9 + wire * 8 / RATE_BPS + way_s(1, wire)
    assert one["flow_latency_s.a.min"] == pytest.approx(expected, abs=2e-12)
    assert one["flow_latency_s.a.max"] == pytest.approx(expected, abs=2e-12)
    # Across a spine, it passes three switches and four cables.
    far = simulated(flows(flows__a__size="8 B", flows__a__interval="5 us", flows__a__destination=2))
    expected = wire * 8 / RATE_BPS + way_s(3, wire)
    assert far["flow_latency_s.a.mean"] == pytest.approx(expected, abs=2e-12)
    one = simulated(flows(flows__a__size="4 KiB", flows__a__outstanding=1))
    there = wire_bytes(4096) * 8 / RATE_BPS + way_s(1, 4096)
    back = 30 * 8 / RATE_BPS + way_s(1, 30)
    update = 8 * 8 / RATE_BPS  # of credit, in front of an acknowledge, on each of two wires at most
    period_s = 450e-6 / one["flow_messages.a"]
    assert there + back <= period_s * (1 + 1 / one["flow_messages.a"])
    assert period_s * (1 - 1 / one["flow_messages.a"]) <= there + back + 2 * update


def test_one_flow_reaches_the_payload_rate_and_two_share_it() -> None:
    share = 2**16 / wire_bytes(2**16)
    alone = simulated(flows())
    messages = alone["flow_messages.a"]
    assert alone["throughput_bps"] == pytest.approx(RATE_BPS * share, rel=1 / messages)
    both = simulated(flows(flows__b__source=2, flows__b__destination=1))
    for name in "ab":
        half = both[f"flow_throughput_bps.{name}"]
        assert half == pytest.approx(RATE_BPS * share / 2, rel=3 / messages)
        # Messages of the other half of the time wait.
        assert both[f"flow_wait_s.{name}"] == pytest.approx(250e-6, rel=0.03)
    assert both["throughput_bps"] == pytest.approx(RATE_BPS * share, rel=2 / messages)


def test_a_load_at_random_is_delivered() -> None:
    scenario = flows(
        flows__a__source="every",
        flows__a__destination="random",
        flows__a__size="256 B",
        flows__a__load=0.3,
        flows__a__arrivals="poisson",
        flows__a__outstanding=4096,
    )
    one = simulated(scenario)
    mean = 4 * 0.3 * 450e-6 / (wire_bytes(256) * 8 / RATE_BPS)
    assert one["flow_messages.a"] == pytest.approx(mean, abs=5 * mean**0.5)
    assert one["link_utilisation.host.up"] > 0.3  # acknowledges besides
    unreliable = simulated(override(scenario, {"transport.connection": "unreliable"}))
    assert unreliable["link_utilisation.host.up"] == pytest.approx(0.3, rel=0.03)
    assert simulated(scenario) == one
    assert simulated(scenario, seed=2)["flow_messages.a"] != one["flow_messages.a"]


def test_hosts_have_names_and_a_flow_without_arrivals_has_a_warning() -> None:
    named = flows(flows__a__source="h0", flows__a__destination="h1")
    with pytest.raises(ScenarioError) as refused:
        methods.simulate(named)
    [first, _, last] = str(refused.value).split("a name from ")[1].split()
    found = simulated(flows(flows__a__source=first, flows__a__destination=last))
    assert found["flow_messages.a"] > 0
    result = methods.simulate(flows(flows__a__start="499.9 us"))
    assert list(result.warnings) == ["no message of flows.a arrived after the warm-up"]
    with pytest.raises(ScenarioError, match="requires a flow"):
        small(building__protocol="none")


def test_a_timeline_has_every_message(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    result = methods.simulate(flows(flows__a__messages=7, run__warmup="0 s"), trace=trace)
    assert result.metric("flow_messages.a") == 7
    events = json.loads(trace.read_text())["traceEvents"]
    begun = [event["ts"] for event in events if event["ph"] == "b"]
    ended = [event["ts"] for event in events if event["ph"] == "e"]
    assert begun == [0] * 7
    assert ended == sorted(ended)
    assert {event["name"] for event in events if event["ph"] == "b"} == {"a"}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ("flows.a.source=1", "both 1; a host cannot send to itself"),
        ("flows.a.source=-1", "is not a host; give its place in the order of ports"),
        ("flows.a.source=true", "is not a host"),
        ("flows.a.load=1.5", "must be at most 1"),
        ("flows.a.arrivals=poisson", "requires a mean"),
        ("flows.a.outstanding=0", "must be at least 1"),
        ("flows.a.service_level=16", "must be at most 15"),
        ("flows.a.start=1 ms", r"flows\.a\.start = 1 ms is not before the end of the run"),
        ("flows.a.size=0 B", "more than 0"),
        ("flows.b.source=0", r"flows\.b = .* lacks the key destination"),
        ("flows.a.b.size=1 B", r'unknown key "flows\.a\.b\.size"'),
        ("flows.a.sice=1 B", r'did you mean "flows\.a\.size"'),
        ("flows.a=1", r'"flows\.a" is a table'),
        ("flows.å.size=1 B", "may hold only letters"),
        ("flows.a.transport=udp", r'flows.a.transport = "udp" means nothing with'),
        (
            "flows.a.service_level=1; network.lanes.count=2; network.lanes.service_levels=[0, 1]",
            r"flows\.a\.service_level = 1 is on lane 1",
        ),
        (
            "transport.connection=unreliable; transport.retry_timeout=1 ms",
            r"transport.retry_timeout means nothing with",
        ),
    ],
)
def test_impossible_flows_are_refused(changed: str, sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        override(flows(), changed.split("; "))


def test_unknown_hosts_and_closed_forms_beside_event_building_are_refused() -> None:
    for changes, sentence in (
        ({"source": 4}, r"flows\.a\.source = 4 is not a node; expected 0 to 3, or a name"),
        ({"destination": "x"}, r"flows\.a\.destination = x is not a node"),
    ):
        with pytest.raises(ScenarioError, match=sentence):
            methods.simulate(flows(**{f"flows__a__{key}": host for key, host in changes.items()}))
    with pytest.raises(ScenarioError, match="would write only to itself"):
        methods.simulate(flows(hosts__count=1, flows__a__destination="random"))
    shift = small(flows__a__source=0, flows__a__destination=1)
    rack = load("small-rack", {"flows.a.source": 0, "flows.a.destination": 1})
    for scenario in (shift, rack):
        (warning,) = methods.analyse(scenario).warnings
        assert "beside [flows] has no closed form" in warning


BUILDING: dict[str, dict[str, object]] = {
    "pull": {
        "building__protocol": "pull",
        "building__concurrent_events": 4,
        "event__size": "100 kB",
        "event__rate": "20 kHz",
        "readout__units": 2,
        "builders__units": 1,
        "builders__folded": False,
    },
    "shift": {"building__protocol": "shift"},
    "DAQPIPE": {"building__protocol": "daqpipe"},
}
ETHERNET: dict[str, object] = {"network__technology": "ethernet", "network__shape": "fat-tree"}
CARRYING: dict[str, dict[str, object]] = {
    "InfiniBand": {},
    "TCP": ETHERNET | {"transport__kind": "tcp"},
    "RoCE": ETHERNET | {"transport__kind": "rdma"},
}


SHORT = {"run__duration": "2 ms", "run__warmup": "200 us"}


@pytest.mark.parametrize("building", BUILDING)
@pytest.mark.parametrize("carrying", CARRYING)
def test_a_flow_beside_event_building(building: str, carrying: str) -> None:
    """Both make progress; the flow has its load, and its own metrics beside those of the rest."""
    fixed = BUILDING[building] | CARRYING[carrying] | SHORT
    alone = simulated(small(**fixed))
    flow = {"flows__a__source": 0, "flows__a__destination": 1}
    scenario = small(**fixed, **flow, flows__a__load=0.25, flows__a__size="8 kB")
    beside = simulated(scenario)
    of_flow = {name for name in beside if name.startswith("flow_")}
    assert set(beside) - of_flow == set(alone)
    assert {"flow_throughput_bps.a", "flow_messages.a", "flow_latency_s.a.mean"} <= of_flow
    load_bps = 0.25 * RATE_BPS * 8000 / scenario.wire_bytes(8000)
    assert 0.6 * load_bps < beside["flow_throughput_bps.a"] < 1.05 * load_bps  # DAQPIPE is greedy
    assert beside["events_built"] > 0
    assert simulated(scenario) == beside


RACK = load("small-rack", {"run.duration": "50 ms", "run.warmup": "10 ms"})


def test_hosts_of_flows_in_racks_are_units_and_may_have_none() -> None:
    """By place or by name."""
    system = fabric_system(RACK)
    units = (system.readouts, system.builders)
    names = [system.fabric.hosts[int(each[0])].name for each in units]
    by_place, by_name = (
        simulated(
            override(RACK, {"flows.a.source": a, "flows.a.destination": b, "flows.a.load": 0.1})
        )
        for a, b in ((0, len(system.readouts)), names)
    )
    assert by_place == by_name
    assert by_place["flow_messages.a"] > 0
    # Here to a readout unit, whose link carries nothing else but requests.
    pull = small(**BUILDING["pull"], **SHORT)
    system = fabric_system(pull)
    hosts = system.fabric.hosts
    free = next(host.name for place, host in enumerate(hosts) if place not in system.hosts)
    alone = simulated(pull)
    ends = {"flows.a.source": free, "flows.a.destination": hosts[0].name}
    beside = simulated(override(pull, ends))
    assert beside["flow_messages.a"] > 0
    assert beside["events_built"] == alone["events_built"]


def test_a_flow_over_udp_loses_packets_at_a_full_queue() -> None:
    """Two flows of half a link each with pull building, into the link of one builder unit with a
    switch that drops; the building retransmits its losses, and the flows do not."""
    link_bps = RACK.network.links.access.rate
    tor = {"model": "drop-tail", "queue_packets": 100}
    changes = {f"network.switch.tor.{key}": value for key, value in tor.items()}
    flow = {"size": "1472 B", "interval": f"{1538 * 8 / (0.6 * link_bps)} s", "transport": "udp"}
    flow["destination"] = len(fabric_system(RACK).readouts)
    for place, name in enumerate(("a", "b")):
        given = flow | {"source": place}
        changes |= {f"flows.{name}.{key}": value for key, value in given.items()}
    both = simulated(override(RACK, changes))
    sent = 40e-3 * 0.6 * link_bps / (1538 * 8)
    for name in "ab":
        ended = both[f"flow_messages.{name}"] + both[f"flow_messages_lost.{name}"]
        assert ended == pytest.approx(sent, abs=110)  # but for those in the queue
    lost = both["flow_messages_lost.a"] + both["flow_messages_lost.b"]
    assert lost >= 2 * sent * 0.2 / 1.2 - 110  # 1.2 times what the link carries
    assert both["packets_dropped"] >= lost
    assert both["events_built"] > 0


def test_a_stall_where_frames_were_cut_is_no_deadlock() -> None:
    engine = SimpleNamespace(deadlock=list)
    ports = SimpleNamespace(discards=np.zeros(1), cut=np.zeros(1), dropped=np.zeros(1))
    counted = SimpleNamespace(stalled=True, drops=0, cut=1, unrouted=0, retries=None, ports=ports)
    _check_stall(engine, small_system := fabric_system(flows()), counted)
    counted.cut = 0
    with pytest.raises(SimulationError):
        _check_stall(engine, small_system, counted)


def test_flows_read_back_as_shown_in_any_order(tmp_path: Path) -> None:
    scenario = flows(flows__b__source="every", flows__b__destination="random")
    assert from_text(tmp_path, to_toml(scenario)).hash() == scenario.hash()
    one = flows(flows__b__source=2, flows__b__destination="random", flows__b__load=0.1)
    other = one.model_copy(update={"flows": dict(reversed(one.flows.items()))})
    assert one.hash() == other.hash()
    assert simulated(one) == simulated(other)


def test_the_wire_of_a_write_is_the_engines() -> None:
    for size in (1, 16, 255, 256, 257, 4096, 4097, 70_001):
        flow = {"flows__a__size": f"{size} B", "flows__a__messages": 3}
        transport = {"transport__connection": "unreliable", "transport__mtu": "1 KiB"}
        scenario = flows(**flow, **transport)
        # Up to the leaf and down to the neighbour, with updates of credit counted apart.
        carried = [size for size in methods.simulate(scenario).series["ports"]["bytes"] if size > 0]
        assert carried == [3 * scenario.transport.write_bytes(size)] * 2


def test_measured_latencies_less_the_network_come_out_as_they_were_measured(tmp_path: Path) -> None:
    """The way of `docs/how-to/use-measured-latencies.md`."""
    alone = simulated(load("ib-write-lat"))["flow_latency_s.ping.mean"]
    seen_us = [1.21, 1.22, 1.22, 1.25, 1.61]
    measured = tmp_path / "latencies.txt"
    lines = [f"{number}, {value}" for number, value in enumerate(seen_us, 1)]
    measured.write_text("\n".join(["#, usec", *lines]))
    latency = {"kind": "histogram", "file": str(measured), "less": f"{alone * 1e9:.3f} ns"}
    keys = {f"hosts.latency.{key}": value for key, value in latency.items()}
    drawn = simulated(load("ib-write-lat", keys | {"run.duration": "4 ms"}))
    assert drawn["flow_latency_s.ping.min"] == pytest.approx(1.21e-6, rel=1e-3)
    assert drawn["flow_latency_s.ping.max"] == pytest.approx(1.61e-6, rel=1e-3)
    # Some 2 000 draws, whose standard deviation is 0.15 us.
    mean_s = sum(seen_us) / len(seen_us) * 1e-6
    assert drawn["flow_latency_s.ping.mean"] == pytest.approx(mean_s, abs=4 * 0.16e-6 / 2000**0.5)
