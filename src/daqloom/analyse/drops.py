"""Conditions for switches of a rack to buffer the frames of events without drops."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from daqloom.analyse.answer import Condition
from daqloom.analyse.bottleneck import Incast
from daqloom.analyse.memory import Memory
from daqloom.analyse.peak import Stack, stack_ports
from daqloom.analyse.system import System
from daqloom.scenario.schema.links import WIRE_OVERHEAD_BYTES
from daqloom.scenario.schema.switches import Switch

BATCH = 32
"""Maximum frames that a software switch's core takes from an input, or sends, per turn."""


def regular_events_fit(system: System, windows: Incast) -> Iterator[Condition]:
    """Yield conditions for periodic events to stay below all memory limits of ToR and core
    switch."""
    switches, sources = system.scenario.network.switch, system.scenario.readout.units
    links, builders = system.scenario.network.links, system.scenario.builders.units
    regular = stack_ports(system.triangle, system.rate_hz, windows.peak_bytes)
    ports = _Ports(regular.height_bytes, builders, regular)
    is_bound = regular.height_bytes < system.triangle.height_bytes or links.uplink.count > 1
    events = BOUND if is_bound else REGULAR  # see the cap in `peak.exact`
    yield _fits("tor", switches.tor, system.tor_memory(links.uplink.count), ports, events)
    yield _taken_in(system)
    # The core switch has forwarded an event before the next begins; all uplinks queue the same.
    waiting = min(system.event.frame_bytes, windows.windows_bytes)
    waiting *= _waiting_share(system, links.uplink.count)
    alike = _Ports(waiting / links.uplink.count, links.uplink.count)
    yield _fits("core", switches.core, system.core_memory(sources), alike, events)


def any_events_fit(system: System, windows: Incast) -> Iterator[Condition]:
    """Yield conditions for the ToR and core switch to hold all data that TCP windows and
    outstanding requests allow in flight."""
    scenario = system.scenario
    switches, builders = scenario.network.switch, scenario.builders.units
    ports = _Ports(windows.peak_bytes, builders)
    if system.is_in_turn and system.input_bps <= builders * system.output_bps:
        # Events follow each other as fast as the input allows: see `peak.back_to_back`.
        rate_hz = system.triangle.input_bps / (8 * system.triangle.size_bytes)
        loaded = stack_ports(system.triangle, rate_hz, windows.peak_bytes)
        ports = _Ports(loaded.height_bytes, builders, loaded)
    yield _fits("tor", switches.tor, system.tor_memory(1), ports, ANY)
    waiting = builders * windows.windows_bytes * _waiting_share(system, 1)
    yield _fits("core", switches.core, system.core_memory(1), _Ports(waiting, 1), ANY)


REGULAR = "regular events bring"
BOUND = "regular events bring at most"
ANY = "events that are not regular, or uplinks that ECMP loads unequally, bring at most"


class _Ports(NamedTuple):
    """Occupancy (B) of the fullest of `ports` ports; others hold the same or, with `stack`,
    less."""

    own_bytes: float
    ports: int
    stack: Stack | None = None

    def others_bytes(self, level_bytes: float) -> float:
        """Return the occupancy of the other ports, counted above a level in each (B)."""
        own = max(0.0, self.own_bytes - level_bytes)
        most = (self.ports - 1) * own
        return min(most, self.stack.above(level_bytes)[0] - own) if self.stack else most


def _fits(level: str, switch: Switch, memory: Memory, ports: _Ports, events: str) -> Condition:
    own, others = ports.own_bytes, ports.others_bytes(memory.dedicated_bytes)
    most = memory.most_bytes(others)
    is_lower = others and most < memory.port_bytes
    meanwhile = ""
    if is_lower and others < memory.pool_bytes:
        meanwhile = f" while others hold {others / 1e6:.4g} MB"
    elif is_lower:
        meanwhile = " once others have filled the shared memory"
    end = "pauses of its senders" if switch.pause_at else "drops"
    end = f"expect {end}" if events == REGULAR else f"{end} are possible"
    return Condition(
        f"port ≤ memory of the {level}",
        own <= most * (1 + 1e-12),
        f"network.switch.{level} ({switch.model}): {events} {own / 1e6:.4g} MB to a port that may "
        f"hold {most / 1e6:.4g} MB{meanwhile}: {end}",
    )


def _taken_in(system: System) -> Condition:
    """Return whether the busiest core of a software switch empties descriptors before they fill.
    The core also forwards acknowledgements (one for two segments) and serves outputs."""
    scenario, event, triangle = system.scenario, system.event, system.triangle
    switch, uplinks = scenario.network.switch.tor, scenario.network.links.uplink.count
    inputs = math.ceil(uplinks / switch.cores)
    wire_bits = 8 * (event.mean_frame_bytes + WIRE_OVERHEAD_BYTES)
    coming_hz = system.input_bps / wire_bits * inputs / uplinks
    outputs = scenario.builders.units / switch.cores
    busy = math.ceil(min(outputs, triangle.length_s * system.rate_hz))
    leaving_hz = busy * system.output_bps / wire_bits
    turns_hz = coming_hz / inputs / BATCH
    batches_hz = inputs * turns_hz + min(turns_hz, leaving_hz / 2)
    batches_hz += sum(min(busy * turns_hz, hz) for hz in (leaving_hz, leaving_hz / 2))
    load = (coming_hz + leaving_hz / 2) * switch.packet_cost + batches_hz * switch.batch_cost
    if switch.memory_bandwidth:  # each byte crosses memory twice
        load = max(load, 2 * system.input_bps * event.wire_share / switch.memory_bandwidth)
    piled = event.packets * inputs / uplinks * max(0.0, 1 - 1 / load) if load else 0.0
    return Condition(
        "input ≤ core of a software switch",
        switch.architecture != "software" or piled <= inputs * switch.descriptors / 2,
        f"network.switch.tor ({switch.model}): packet_cost, batch_cost and memory_bandwidth let "
        f"some {piled:,.0f} frames of an event wait for a core, and inputs have "
        f"{switch.descriptors:,} descriptors: drops are likely",
    )


def _waiting_share(system: System, uplinks: int) -> float:
    """Return the share of a simultaneous burst of all sources that queues before the uplinks."""
    links, sources = system.scenario.network.links, system.scenario.readout.units
    return 1 - min(1.0, links.uplink.rate * uplinks / (sources * links.source.rate))
