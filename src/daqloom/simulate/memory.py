"""Memory of a simulation, estimated before it begins.

The state of each pair of hosts that write to each other, the events that wait at an overloaded
rack, and the outstanding messages of flows grow without bound. Sizes are those of the engine's
structures, measured; see the test."""

import math
import os
import re
from pathlib import Path

from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.quantities import SIZE
from daqloom.scenario.schema.flows import EVERY, RANDOM
from daqloom.scenario.schema.models import Scenario

CONNECTION_BYTES = 2000
"""A TCP connection in use: both ends, and messages under way."""
SHIFT_PAIR_BYTES, SHIFT_MFP_BYTES = 300, 230
"""A queue pair of linear shifting, and each of its MFPs in a phase."""
PAIR_BYTES = 60
"""A queue pair of DAQPIPE or of flows."""
FLOW_MESSAGE_BYTES = 180
"""A message of a flow that awaits completion."""
WAITING_EVENT_BYTES = 64
"""An event that no builder unit has begun."""
LIMIT_FILE = Path("/sys/fs/cgroup/memory.max")
"""File with the memory limit of the container (cgroup v2)."""


def check_memory(scenario: Scenario, nodes: int) -> None:
    """Raise ScenarioError where the simulation of `nodes` hosts with a unit would need more memory
    than the machine has."""
    needed, has = needed_bytes(scenario, nodes), machine_bytes()
    if needed > has:
        pairs = _pairs(scenario, nodes) + sum(_flow_pairs(scenario, nodes).values())
        raise ScenarioError(
            f"{scenario.name}: the simulation needs about {SIZE.format(float(f'{needed:.2g}'))} of "
            f"memory for {pairs:,} connections, and this machine has "
            f"{SIZE.format(float(f'{has:.2g}'))}; use fewer units or a shorter run"
        )


def needed_bytes(scenario: Scenario, nodes: int) -> int:
    """Return the estimate for all pairs of units, waiting events and flows."""
    pairs, protocol = _pairs(scenario, nodes), scenario.building.protocol
    if protocol == "pull":
        building = CONNECTION_BYTES * pairs + WAITING_EVENT_BYTES * _waiting(scenario, nodes)
    elif protocol == "shift":
        mfps = scenario.readout.streams * scenario.building.meps_per_phase
        building = pairs * (SHIFT_PAIR_BYTES + mfps * SHIFT_MFP_BYTES)
    else:
        building = pairs * PAIR_BYTES
    return round(building) + _flow_bytes(scenario, nodes)


def _pairs(scenario: Scenario, nodes: int) -> int:
    if scenario.building.protocol == "none":
        return 0
    if scenario.building.protocol == "pull":  # connections come into being with the first request
        events = math.ceil(scenario.event.rate * scenario.run.duration)
        return scenario.readouts(nodes) * min(scenario.builder_units(nodes), events)
    return scenario.readouts(nodes) * scenario.builder_units(nodes)


def _flow_pairs(scenario: Scenario, nodes: int) -> dict[str, int]:
    """Return the pairs of hosts of each flow."""
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
    """Return the number of events that wait at the end, as builders' links are too slow."""
    links = scenario.network.links
    rate_bps = links.access.rate if scenario.network.is_racks else links.rate
    if not rate_bps:  # a rate for each cable
        return 0.0
    carried_hz = rate_bps * scenario.builder_units(nodes) / (8 * scenario.event.size)
    return max(0.0, scenario.event.rate - carried_hz) * scenario.run.duration


def peak_bytes() -> int:
    """Return the peak memory of this process; ru_maxrss may be that of its parent process."""
    peak = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.M)
    return 1024 * int(peak[1]) if peak else 0


def machine_bytes() -> int:
    """Return the memory of this machine, or the limit of its container."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(physical, int(LIMIT_FILE.read_text()))
    except (OSError, ValueError):  # no such file, or "max"
        return physical
