"""Default length of a simulation of a fabric, for a scenario without `[run]`."""

import math
from typing import NamedTuple

from daqloom.deployment.fabric_system import mfp_bytes, node_slots
from daqloom.scenario.schema.flows import EVERY, RANDOM
from daqloom.scenario.schema.models import Scenario
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.schedule.slots import DUMMY
from daqloom.topology.shapes.shape import cables

ROUNDS = 20
"""Rounds counted; events are built by the round, so their rate has an error of 5 % at most."""
MESSAGES = 1000
"""Messages counted from each source of a flow."""
MOST_PACKETS = 1e7
"""Limit on packets that cross a fabric in a run: about 30 million packet hops, ten seconds of CPU
time. For larger systems fewer rounds are counted, at least two if possible."""
SWITCHES = 3
"""Typical number of switches between two hosts."""


class Round(NamedTuple):
    """The time in which each builder unit builds one event (with DAQPIPE: one for each credit)."""

    length_s: float
    packets: float
    begins_s: float = 0.0
    """Time when all fragments of the first event have arrived at the readout units."""


def run_length(scenario: Scenario) -> tuple[float, float]:
    """Return warm-up and the counted time after it (s), for rounds of event building or messages.
    The estimate ignores conflicts, random times, and waiting except at barriers. Raises
    ScenarioError if fabric and nodes do not fit together."""
    fabric, _ = cables(scenario)
    slots = node_slots(scenario, fabric)
    nodes = int((slots != DUMMY).sum())
    set_bps = 0 if scenario.network.is_racks else scenario.network.links.rate
    rate_bps = set_bps or _slowest_bps(fabric)
    if not scenario.protocol.builds:
        return _of_flows(scenario, nodes, rate_bps)
    if scenario.protocol.has_phases:
        return _of_rounds(_round(scenario, nodes, len(slots), rate_bps))
    return _of_rounds(_turn(scenario, nodes, rate_bps))


def _of_rounds(each: Round) -> tuple[float, float]:
    """Return one round of warm-up, in which nodes settle, and the counted time (s)."""
    affordable = MOST_PACKETS / max(1.0, each.packets)
    if affordable < 2:  # not even a round: a part of it, and a warning at the end
        return each.begins_s + affordable / 3 * each.length_s, affordable * 2 / 3 * each.length_s
    counted = min(ROUNDS, math.floor(affordable) - 1)
    return each.begins_s + each.length_s, counted * each.length_s


def _round(scenario: Scenario, nodes: int, slots: int, rate_bps: float) -> Round:
    """Return a round of linear shift: one phase for each slot."""
    building, event = scenario.building, scenario.event
    readouts = scenario.readouts(nodes)
    builders = scenario.builder_units(nodes)
    phases = slots if scenario.is_folded else -(-slots // 2)
    sizes, streams = mfp_bytes(scenario, nodes), scenario.readout.streams
    largest = max(sum(sizes[i : i + streams]) for i in range(0, len(sizes), streams))
    round_s = phases * building.window
    if building.change == "count":
        messages = 2
        if building.barrier not in ("none", "network", "ideal"):
            messages += 2 * math.ceil(math.log2(max(2, readouts)))
        round_s = phases * (messages * _message_s(scenario) + building.jitter.mean)
        writes = phases - scenario.is_folded  # in one phase nodes copy within themselves
        round_s += writes * building.meps_per_phase * _write_s(scenario, largest, rate_bps)
    packets = sum(math.ceil(size / scenario.packet_payload) for size in sizes)
    filled_s = 0.0
    if event.rate:
        filled_s = builders * building.meps_per_phase * event.packing / event.rate
    in_round = building.meps_per_phase * packets * max(1, builders - 1)
    return Round(max(round_s, filled_s), in_round, filled_s)


def _turn(scenario: Scenario, nodes: int, rate_bps: float) -> Round:
    """Return a round without phases, as in DAQPIPE: the time of one event for each credit of a
    builder unit."""
    building, event = scenario.building, scenario.event
    readouts = scenario.readouts(nodes)
    builders = max(1, scenario.builder_units(nodes))
    sizes = mfp_bytes(scenario, nodes)
    packets = sum(math.ceil(size / scenario.packet_payload) for size in sizes)
    fragment_s = _write_s(scenario, sum(sizes) / readouts, rate_bps)
    message_s = _message_s(scenario)
    turn_s = max(
        building.credits * max(readouts, builders) * fragment_s,
        readouts / min(readouts, building.parallel_sends) * (2 * message_s + fragment_s),
        readouts * building.slot,
    )
    turn_s += 3 * message_s + scenario.builders.processing_mean
    events = builders * building.credits
    if event.rate:
        turn_s = max(turn_s, events * event.packing / event.rate)
    return Round(turn_s, events * packets)


def _of_flows(scenario: Scenario, nodes: int, rate_bps: float) -> tuple[float, float]:
    """Return warm-up and counted time (s), for the counted messages of the slowest flow."""
    longest_s, packets_hz = 0.0, 0.0
    for flow in scenario.flows.values():
        sources = nodes if flow.source == EVERY else 1
        wire_s = 8 * scenario.wire_bytes(flow.size) / rate_bps
        sharing = 1 if flow.destination == RANDOM else sources
        each_s = flow.interval or wire_s / (flow.load or 1 / sharing)
        counted = min(flow.messages or MESSAGES, MESSAGES)
        longest_s = max(longest_s, counted * each_s + 10 * _message_s(scenario))
        packets_hz += sources * math.ceil(flow.size / scenario.packet_payload) / each_s
    counted_s = min(longest_s, MOST_PACKETS / packets_hz)
    begun_s = max(flow.start for flow in scenario.flows.values())
    endless = any(flow.messages == 0 for flow in scenario.flows.values())
    return (counted_s / 10 if endless else 0.0), begun_s + counted_s


def _write_s(scenario: Scenario, size: float, rate_bps: float) -> float:
    """Return the time to write `size` bytes over a link, PCIe and memory (s)."""
    hosts = scenario.hosts
    limits = [rate_bps, hosts.pcie_rate, hosts.memory_rate / (2 * hosts.memory_passes)]
    return 8 * scenario.wire_bytes(math.ceil(size)) / min(each for each in limits if each)


def _message_s(scenario: Scenario) -> float:
    """Return the time of a minimal message from one processor to another (s)."""
    hosts, network = scenario.hosts, scenario.network
    passing_s = network.switch.latency if network.technology == "infiniband" else 0.0
    delay_s = network.links.access.delay if network.is_racks else network.links.delay
    switches_s = SWITCHES * passing_s + (SWITCHES + 1) * delay_s
    return 2 * hosts.message_cost + hosts.polling_delay + hosts.latency.mean + switches_s


def _slowest_bps(fabric: Fabric) -> float:
    """Return the rate of the slowest host cable (b/s)."""
    hosts = len(fabric.hosts)
    return min(cable.rate_bps for cable in fabric.cables if min(cable.a.node, cable.b.node) < hosts)
