"""Faults of a simulated run: losses, rerouting and the remaining throughput, on every network and
transport."""

from statistics import fmean
from typing import Any

import pytest

from daqloom.results.result import Result
from daqloom.scenario.errors import ScenarioError
from daqloom.simulate.run import simulate
from support.regrouping import scenario_of

TREE = {
    "network.shape": "fat-tree",
    "network.leaves": 2,
    "network.spines": 1,
    "network.spine_links": 4,
    "network.hosts_per_leaf": 4,
    "network.switch.radix": 8,
    "network.links.rate": "25 Gb/s",
    "run.warmup": "0 s",
}
"""Four cables from each of two leaves with four hosts to a spine, at the rate of a host's."""
INFINIBAND = {
    **TREE,
    "network.technology": "infiniband",
    "network.links.delay": "170 ns",
    "transport.retry_timeout": "200 us",
}
FLOWS = {
    "building.protocol": "none",
    "run.duration": "10 ms",
    **{f"flows.f{i}.source": i for i in range(4)},
    **{f"flows.f{i}.destination": 4 + i for i in range(4)},
    **{f"flows.f{i}.size": "8 KiB" for i in range(4)},
}
"""Each host of the first leaf sends to one of the second, by a cable of its own."""
ALONE = {key: FLOWS[key] for key in FLOWS if key[:8] not in ("flows.f1", "flows.f2", "flows.f3")}
LOCAL = {"faults.routing": "local", "faults.detection": "100 us"}
SHIFT = {
    "building.protocol": "shift",
    "event.fragment_sizes": "fixed",
    "event.packing": 300,
    "readout.units": 8,
    "run.duration": "20 ms",
}


def run(*tables: dict[str, Any], seed: int = 1, **more: Any) -> Result:
    keys = {key.replace("__", "."): value for key, value in more.items()}
    return simulate(scenario_of(*tables, keys), seed=seed)


def broken(name: str = "a", **keys: Any) -> dict[str, Any]:
    given = {"which": "leaf00 port 5", "at": "2 ms", **keys}
    return {f"faults.injected.{name}.{key}": value for key, value in given.items()}


def cables_down(*ports: int) -> dict[str, Any]:
    """Cables at these ports of the first leaf are down from 2 ms on."""
    down = [broken(str(port), which=f"leaf00 port {port}") for port in ports]
    return {key: value for each in down for key, value in each.items()}


def share_after(result: Result, flow_bps: float, begin_s: float, end_s: float) -> float:
    """The throughput between two times, in units of `flow_bps`."""
    course = (result.series["throughput"][key] for key in ("begin_s", "end_s", "throughput_bps"))
    bins = zip(*course, strict=True)
    return fmean(bps for begin, end, bps in bins if begin >= begin_s and end <= end_s) / flow_bps


@pytest.mark.parametrize("down", [1, 2, 3])
def test_with_some_of_parallel_cables_down_the_others_share_the_flows(down: int) -> None:
    """Four flows fill four cables. The flows of broken cables go on by the next ones: with one of
    four down two flows share one, with two down two share each, with three down all share the
    last. Flow 0 alone keeps a whole cable."""
    cables = cables_down(*range(5, 5 + down)) | LOCAL
    one_bps = run(INFINIBAND, FLOWS).metric("flow_throughput_bps.f0")
    result = run(INFINIBAND, FLOWS, cables)
    assert share_after(result, one_bps, 0.5e-3, 2e-3) == pytest.approx(4, rel=0.01)
    assert share_after(result, one_bps, 6e-3, 10e-3) == pytest.approx(4 - down, rel=0.01)
    assert result.metric("writes_failed") == 0
    assert result.metric("faults_detected") == down
    single = run(INFINIBAND, ALONE, cables)
    assert share_after(single, one_bps, 6e-3, 10e-3) == pytest.approx(1, rel=0.01)


def test_a_link_that_is_back_before_the_detection_costs_its_packets() -> None:
    """170 ns at 25 Gb/s are 531 B, of packets of 4122 B: one is under way in each direction of a
    full link at most, of an idle one none."""
    result = run(INFINIBAND, FLOWS, broken(lasts="50 us"))
    lost = result.metric("packets_lost.on_wire")
    assert 1 <= lost <= 2 + 2
    assert result.metric("packets_lost.link_down") == 0
    assert result.metric("faults_detected") == 0
    # The next packet has a NAK: only a lost acknowledgement needs a timeout.
    assert result.metric("retransmission_timeouts") <= 1
    assert result.metric("writes_failed") == 0


def test_other_ways_are_found_after_the_time_of_the_routing() -> None:
    """With 0.1 ms until the detection: each switch at once, the subnet manager 2 ms later, neither
    until the link is back after 6 ms; then at the next retry, which are 1 ms apart."""
    for routing, known_s in (("local", 0.1e-3), ("sweep", 2.1e-3), ("none", 6e-3)):
        keys = {"routing": routing, "detection": "100 us", "sweep": "2 ms"}
        keys = {f"faults.{key}": value for key, value in keys.items()}
        keys |= {"network.routing": "minimal:balanced", "transport.retry_timeout": "1 ms"}
        keys |= {"run.duration": "12 ms"}
        result = run(INFINIBAND, ALONE, broken(lasts="6 ms"), keys)
        assert result.metric("writes_failed") == 0
        assert result.metric("fault_detection_s.a") == pytest.approx(1e-4)
        bin_s = 0.12e-3
        assert known_s - bin_s <= result.metric("fault_recovery_s.a") <= known_s + 1e-3 + bin_s


@pytest.mark.parametrize("seed", range(3))
def test_a_short_outage_of_poisson_traffic_is_no_dip_and_a_long_one_is(seed: int) -> None:
    """Half of each cable is used; a bin is 0.2 ms. Losses are retransmitted within 1 ms."""
    flow = {"load": 0.5, "arrivals": "poisson", "size": "2 KiB"}
    poisson = {f"flows.f{i}.{key}": value for i in range(4) for key, value in flow.items()}
    given = {"run.duration": "20 ms", "transport.retry_timeout": "1 ms"}
    for lasts, expected_s, within_s in (("30 us", 0, 0), ("2 ms", 2e-3, 1.2e-3)):
        result = run(INFINIBAND, FLOWS, poisson, given, broken(at="8 ms", lasts=lasts), seed=seed)
        assert result.metric("fault_recovery_s.a") == pytest.approx(expected_s, abs=within_s)


@pytest.mark.parametrize("messages", [(1500, 900, 700, 1200), (1500, 1500, 1500, 1500)])
def test_flows_that_end_before_the_run_are_not_waited_for(messages: tuple[int, ...]) -> None:
    """A message takes 2.7 us: flows end between 1.9 and 5 ms, one of them in the bin of 0.2 ms
    before the fault, which stops the first flow from 2 to 2.5 ms."""
    given = {f"flows.f{flow}.messages": count for flow, count in enumerate(messages)}
    given |= {"run.duration": "20 ms"}
    result = run(INFINIBAND, FLOWS, given, broken(lasts="500 us"))
    assert result.metric("flow_messages.f0") == messages[0]
    assert 0.5e-3 <= result.metric("fault_recovery_s.a") <= 1.0e-3


def test_events_are_built_all_the_same() -> None:
    """A shift in step over a cable that flaps four times: losses are retransmitted, no unit is
    lost, and the last half of the time is as in a run without faults."""
    whole = run(INFINIBAND, SHIFT)
    flapping = broken(lasts="100 us", repeats=4, period="1 ms")
    result = run(INFINIBAND, SHIFT, flapping, faults__detection="20 us", faults__routing="local")
    assert result.metric("writes_failed") == 0
    assert result.metric("faults_begun") == result.metric("faults_detected") == 4
    assert result.metric("phases") > 0.75 * whole.metric("phases")
    assert result.metric("phases") < whole.metric("phases")
    half_bps = share_after(result, 1.0, 10e-3, 20e-3)
    usual = run(INFINIBAND, SHIFT, broken(at="19.9 ms"))
    assert half_bps == pytest.approx(share_after(usual, 1.0, 10e-3, 19e-3), rel=0.01)


def test_without_retries_a_loss_blocks_with_a_warning() -> None:
    result = run(INFINIBAND, SHIFT, broken(lasts="100 us"), transport__retry_timeout="0 s")
    assert "packets were lost and none is retransmitted" in " ".join(result.warnings)
    assert "the event builder has stalled" in " ".join(result.warnings)


def test_a_degraded_cable_has_its_rate_for_a_while() -> None:
    """Only the flow on that cable is slower: 3 + 1/5."""
    result = run(INFINIBAND, FLOWS, broken(how="degraded", rate="5 Gb/s", lasts="4 ms"))
    one_bps = run(INFINIBAND, FLOWS).metric("flow_throughput_bps.f0")
    assert share_after(result, one_bps, 2.5e-3, 6e-3) == pytest.approx(3.2, rel=0.01)
    assert share_after(result, one_bps, 7e-3, 10e-3) == pytest.approx(4, rel=0.01)
    assert result.metric("packets_lost.on_wire") == 0


def test_a_link_that_retransmits_loses_nothing() -> None:
    errors = broken(how="degraded", bit_error_rate=1e-6)
    lossy = run(INFINIBAND, FLOWS, errors)
    again = run(INFINIBAND, FLOWS, {**errors, "faults.injected.a.link_retry": "1 us"})
    assert lossy.metric("packets_lost.on_wire") > 100
    assert lossy.metric("retransmissions.nak") > 0
    assert again.metric("packets_lost.on_wire") == 0
    assert again.metric("retransmissions.nak") == 0
    with pytest.raises(ScenarioError, match="link_retry means nothing"):
        run(ETHERNET, FLOWS, broken(how="degraded", bit_error_rate=1e-6, link_retry="1 us"))


ETHERNET = {**TREE, "network.technology": "ethernet", "network.links.delay": "1 us"}


@pytest.mark.parametrize("kind", ["tcp", "rdma"])
def test_on_ethernet_a_port_leaves_its_group(kind: str) -> None:
    """Half of the cables are down: all flows share the others, whatever their hash. On one cable,
    all outstanding data take 1.4 ms, which a timeout must exceed."""
    keys = {
        "tcp": {"transport.rto_min": "1 ms"},
        "rdma": {"transport.retry_timeout": "2 ms", "transport.mtu": "1 KiB"},
    }[kind] | {"transport.kind": kind, "run.duration": "30 ms"}
    result = run(ETHERNET, FLOWS, keys, cables_down(5, 6), LOCAL)
    for flow in range(4):
        assert result.metric(f"flow_messages.f{flow}") > 0
    assert 0.8 < share_after(result, 25e9, 20e-3, 30e-3) < 2
    assert result.metric("faults_detected") == 2


def test_racks_survive_the_loss_of_an_uplink() -> None:
    event = {"event.size": "100 kB", "event.rate": "2 kHz", "event.arrivals": "deterministic"}
    units = {"readout.units": 6, "builders.units": 4, "transport.rto_min": "2 ms"}
    uplink = {"network.links.uplink.count": 2, "network.links.uplink.rate": "100 Gb/s"}
    times = {"run.duration": "100 ms", "run.warmup": "10 ms"}
    fault = {"faults.injected.a.count": 1, "faults.injected.a.at": "40 ms"}
    result = run(event, units, uplink, times, fault, {"faults.routing": "local"})
    assert result.metric("event_rate_hz") == pytest.approx(2000, rel=0.01)
    assert result.metric("events_waiting") == 0
    assert result.metric("faults_detected") == 1


def test_a_stopped_unit_sends_nothing_and_then_goes_on() -> None:
    """Flow 0's sender stops after 2 ms for 4 ms; its adapter still sends the 128 posted messages,
    2.8 us each, without completions. The stopped receiver of flow 1 processes nothing, but its
    adapter acknowledges, so that the sender goes on."""
    stop = {"what": "unit", "how": "stopped", "lasts": "4 ms"}
    stops = (broken("a", which="0", **stop), broken("b", which="5", **stop))
    result = run(INFINIBAND, FLOWS, *stops)
    one_bps = run(INFINIBAND, FLOWS).metric("flow_throughput_bps.f2")
    assert share_after(result, one_bps, 3e-3, 5.85e-3) == pytest.approx(2, rel=0.01)
    assert share_after(result, one_bps, 7e-3, 10e-3) == pytest.approx(4, rel=0.01)
    lost_s = 4e-3 - 128 * 8 * 8192 / one_bps
    share = result.metric("flow_throughput_bps.f0") / one_bps
    assert share == pytest.approx(1 - lost_s / 10e-3, abs=0.01)
    assert result.metric("flow_throughput_bps.f1") == pytest.approx(one_bps, rel=0.01)


def test_all_in_step_wait_for_a_stopped_unit() -> None:
    stop = broken(what="unit", which="3", how="stopped", lasts="5 ms")
    result = run(INFINIBAND, SHIFT, stop)
    whole = run(INFINIBAND, SHIFT)
    assert share_after(result, 1.0, 3e-3, 6.7e-3) == 0
    # A phase in which they waited may be done at once after it: one phase, or two.
    phase_s = whole.metric("phase_s")
    expected = whole.metric("phases") * (1 - 5e-3 / 20e-3)
    assert result.metric("phases") == pytest.approx(expected, abs=2 * 8 + 5e-3 / phase_s * 0.1)


def test_a_slow_unit_sends_as_many_fewer_messages() -> None:
    """One message at a time, of 20 us for the processor, and then 60 us more."""
    costs = {"hosts.message_cost": "20 us", "flows.f0.outstanding": 1}
    slow = broken(what="unit", which="0", how="slow", factor=4, lasts="8 ms", at="10 ms")
    long = {"run__duration": "30 ms"}
    usual = run(INFINIBAND, ALONE, costs, **long).metric("flow_messages.f0")
    each_s = 30e-3 / usual
    expected = 22e-3 / each_s + 8e-3 / (each_s + 60e-6)
    result = run(INFINIBAND, ALONE, costs, slow, **long)
    assert result.metric("flow_messages.f0") == pytest.approx(expected, abs=3)
    assert expected < 0.9 * usual


def test_a_full_card_without_acknowledgements_stops_the_trigger() -> None:
    """MFPs of 300 fragments of 133 B at 1 MHz, three streams: a buffer of 399 kB holds ten of a
    stream, which come in 3 ms. After a stop of 8 ms, the trigger was off for the other 5 ms."""
    cards = {"event.rate": "1 MHz", "readout.card.buffer": "399 kB", "run.duration": "40 ms"}
    usual = run(INFINIBAND, SHIFT, cards)
    assert usual.metric("trigger_stopped_share.acknowledge") == 0
    stop = broken(what="card", which="2", at="20 ms", lasts="8 ms")
    result = run(INFINIBAND, SHIFT, cards, stop)
    share = result.metric("trigger_stopped_share.acknowledge")
    assert share * 40e-3 == pytest.approx(5e-3, abs=0.3e-3)


def test_the_same_seeds_give_the_same_run_and_draws_are_not_runs() -> None:
    drawn = broken(which="", count=2, lasts="1 ms")
    first = run(INFINIBAND, SHIFT, drawn)
    assert run(INFINIBAND, SHIFT, drawn).fingerprint == first.fingerprint
    other_run = run(INFINIBAND, SHIFT, drawn, seed=2)
    assert other_run.series["faults"] == first.series["faults"]
    other_draw = run(INFINIBAND, SHIFT, drawn, faults__seed=2)
    assert other_draw.series["faults"]["which"] != first.series["faults"]["which"]


def test_packets_that_are_overtaken_when_a_cable_is_back_are_named() -> None:
    """Two flows share a cable until the other one is back: packets queued there arrive after later
    ones by the other cable. Nothing is lost; without retries the connection ends."""
    flows = {**FLOWS, "flows.f0.start": "10 us"}
    keys = {"faults.routing": "local", "faults.detection": "1 ps"}
    for_a_while = broken(at="0 s", lasts="2 ms")
    repaired = run(INFINIBAND, flows, keys, for_a_while)
    assert repaired.metric("retransmissions.nak") > 0
    assert repaired.warnings == []
    network = {key: INFINIBAND[key] for key in INFINIBAND if key != "transport.retry_timeout"}
    stopped = run(network, flows, keys, for_a_while)
    assert sum(stopped.metrics["packets_lost"].values()) == 0
    (warning,) = (each for each in stopped.warnings if "out of sequence" in each)
    assert warning.endswith("set transport.retry_timeout")
