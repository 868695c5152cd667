"""Memory of a simulation, estimated before it starts.

The estimate covers the parts that grow without bound: state for each pair of hosts that write to
each other, events that wait at an overloaded rack, and outstanding messages of flows. Sizes are
measured sizes of the engine's structures; see the test."""

import math
import os
import re
from pathlib import Path

from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.quantities import SIZE
from daqloom.scenario.schema.flows import EVERY, RANDOM
from daqloom.scenario.schema.models import Scenario

CONNECTION_BYTES = 2000
"""Size of a TCP connection in use: both ends, and messages in flight."""
SHIFT_PAIR_BYTES, SHIFT_MFP_BYTES = 300, 230
"""Sizes of a queue pair in linear shift, and of each of its MFPs in a phase."""
PAIR_BYTES = 60
"""Size of a queue pair in DAQPIPE or of a flow."""
FLOW_MESSAGE_BYTES = 180
"""Size of a flow's message that awaits completion."""
WAITING_EVENT_BYTES = 64
"""Size of an event that waits for a builder unit."""
LIMIT_FILE = Path("/sys/fs/cgroup/memory.max")
"""File with the memory limit of the container (cgroup v2)."""


def check_memory(scenario: Scenario, nodes: int) -> None:
    """Raise ScenarioError if the simulation of `nodes` hosts with units would need more memory than
    the machine has."""
    needed, has = needed_bytes(scenario, nodes), machine_bytes()
    if needed > has:
        pairs = _pairs(scenario, nodes) + sum(_flow_pairs(scenario, nodes).values())
        raise ScenarioError(
            f"{scenario.name}: the simulation needs about {SIZE.format(float(f'{needed:.2g}'))} of "
            f"memory for {pairs:,} connections, and this machine has "
            f"{SIZE.format(float(f'{has:.2g}'))}; use fewer units or a shorter run"
        )


def needed_bytes(scenario: Scenario, nodes: int) -> int:
    """Return the estimated size of all pairs of units, waiting events and flows (B)."""
    pairs, protocol = _pairs(scenario, nodes), scenario.protocol
    if protocol.has_arrivals:
        building = CONNECTION_BYTES * pairs + WAITING_EVENT_BYTES * _waiting(scenario, nodes)
    elif protocol.has_phases:
        mfps = scenario.readout.streams * scenario.building.meps_per_phase
        building = pairs * (SHIFT_PAIR_BYTES + mfps * SHIFT_MFP_BYTES)
    else:
        building = pairs * PAIR_BYTES
    return round(building) + _flow_bytes(scenario, nodes)


def _pairs(scenario: Scenario, nodes: int) -> int:
    if not scenario.protocol.builds:
        return 0
    if scenario.protocol.has_arrivals:  # connections come into being with the first request
        events = math.ceil(scenario.event.rate * scenario.run.duration)
        return scenario.readouts(nodes) * min(scenario.builder_units(nodes), events)
    return scenario.readouts(nodes) * scenario.builder_units(nodes)


def _flow_pairs(scenario: Scenario, nodes: int) -> dict[str, int]:
    """Return the number of pairs of hosts for each flow."""
    return {
        name: (nodes if flow.source == EVERY else 1) * (nodes if flow.destination == RANDOM else 1)
        for name, flow in scenario.flows.items()
    }


def _flow_bytes(scenario: Scenario, nodes: int) -> int:
    of_pair = CONNECTION_BYTES if scenario.transport.kind == "tcp" else PAIR_BYTES
    needed = 0
    for name, pairs in _flow_pairs(scenario, nodes).items():
        flow = scenario.flows[name]
        messages = min(flow.outstanding, flow.messages or flow.outstanding)
        needed += (nodes if flow.source == EVERY else 1) * messages * FLOW_MESSAGE_BYTES
        needed += 0 if flow.transport == "udp" else pairs * of_pair
    return needed


def _waiting(scenario: Scenario, nodes: int) -> float:
    """Return the number of events that wait at the end because builders' links are too slow."""
    links = scenario.network.links
    rate_bps = links.access.rate if scenario.network.is_racks else links.rate
    if not rate_bps:  # a rate for each cable
        return 0.0
    carried_hz = rate_bps * scenario.builder_units(nodes) / (8 * scenario.event.size)
    return max(0.0, scenario.event.rate - carried_hz) * scenario.run.duration


def peak_bytes() -> int:
    """Return the peak memory of this process, from VmHWM; ru_maxrss may be the parent's."""
    peak = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.M)
    return 1024 * int(peak[1]) if peak else 0


def machine_bytes() -> int:
    """Return the memory of this machine, or the limit of its container if lower (B)."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(physical, int(LIMIT_FILE.read_text()))
    except (OSError, ValueError):  # no such file, or "max"
        return physical
