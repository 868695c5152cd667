"""Configuration of a switch in the engine, derived from its file."""

import ipaddress
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from daqloom._switch import (
    Action,
    AddressesConfig,
    DevicesConfig,
    ForwarderConfig,
    Match,
    OutputConfig,
    PortLimits,
    RingConfig,
    SharedMemoryConfig,
    SwitchConfig,
)
from daqloom.configuration.settings import settings
from daqloom.control.calls.registry import runs_folder
from daqloom.softswitch.document import MOST_BYTES, Matching, Rule, SwitchFile
from daqloom.softswitch.sizes import buffers_of, memory_of

OVERHEAD_BYTES = {"wire": 24, "ip": -14}
"""Bytes that paces count for a frame, in addition to its bytes without check sequence."""
MOST_ENTRIES, MOST_METERS = 16_384, 1024
"""Limits on flow entries and meters from OpenFlow controllers."""
UNLIMITED: Mapping[str, object] = {"rate_bps": 0, "bytes": MOST_BYTES, "mark_bytes": 0}
"""Settings for the rings of ports, which limit only the number of packets."""
PROTOCOLS = {"tcp": 6, "udp": 17}


@dataclass(frozen=True)
class Entry:
    """A rule for the engine; rules are compared by `priority` and `keys`."""

    match: Match = field(compare=False)
    priority: int
    action: Action = field(compare=False)
    keys: tuple[object, ...]
    """Comparable values of match and action."""


def config_of(switch: SwitchFile) -> SwitchConfig:
    """Return the initial configuration of the engine, without rules and fixed addresses."""
    runs = switch.runs
    return settings(
        SwitchConfig,
        eal=list(eal_options(switch)),
        devices=settings(
            DevicesConfig,
            runs,
            names=[port.device.partition(",")[0] for port in switch.ports.values()],
            buffers=buffers_of(switch),
            buffer_bytes=runs.buffer_size,
        ),
        forwarder=settings(
            ForwarderConfig,
            switch,
            output=_output(switch),
            addresses=settings(AddressesConfig, switch.addresses),
            limits=[settings(PortLimits, port) for port in switch.ports.values()],
            most_flow_entries=MOST_ENTRIES if switch.control.openflow else 0,
            most_meters=meters_of(switch) if switch.control.openflow else 0,
            floods_unknown=switch.addresses.unknown == "flood",
            mirror=-1 if switch.mirror is None else port_number(switch, switch.mirror),
        ),
        cores=cores_of(switch),
        longest_sleep_s=runs.sleep,
    )


def cores_of(switch: SwitchFile) -> int:
    """Return the number of cores on which a switch runs."""
    return max(1, len(switch.runs.cores))


def meters_of(switch: SwitchFile) -> int:
    """Return the limit on controllers' meters; 0 with several cores, because each core would have
    its own counts."""
    return MOST_METERS if cores_of(switch) == 1 else 0


def _output(switch: SwitchFile) -> OutputConfig:
    """Return the configuration of all rings: first the rings of ports, one for each class."""
    memory = switch.shared_memory
    of_ports = [
        settings(RingConfig, port=number, priority=each, packets=port.packets, **UNLIMITED)
        for number, port in enumerate(switch.ports.values())
        for each in range(switch.classes)
    ]
    of_destinations = [
        settings(
            RingConfig,
            ring,
            port=port_number(switch, ring.port),
            priority=ring.traffic_class,
            mark_bytes=ring.ecn_threshold,
        )
        for ring in switch.rings.values()
    ]
    return settings(
        OutputConfig,
        ports=len(switch.ports),
        rings=[*of_ports, *of_destinations],
        overhead=OVERHEAD_BYTES[switch.pace_counts],
        shared=settings(SharedMemoryConfig, memory, dedicated_ports=memory.ports),
    )


def keep_dpdk_apart() -> None:
    """Give DPDK a folder of this user before it starts, because root of a user namespace cannot
    write to the default folder in /var/run. Raises MeasureError."""
    os.environ.setdefault("RUNTIME_DIRECTORY", str(runs_folder()))


def eal_options(switch: SwitchFile) -> Iterator[str]:
    """Yield arguments for DPDK's environment layer (EAL), among them options that prevent files."""
    runs = switch.runs
    yield from ("--no-telemetry", "--log-level=error")
    yield from ("--in-memory",) if runs.huge_pages else ("--no-huge", "--no-shconf")
    memory = runs.memory or memory_of(switch)
    yield from ("-m", str(-(-memory >> 20)))
    if runs.cores:
        yield from ("-l", ",".join(str(core) for core in runs.cores))
    cards = [port.device for port in switch.ports.values() if _is_card(port.device)]
    if not cards:
        yield "--no-pci"
    for port in switch.ports.values():
        yield from ("-a" if _is_card(port.device) else "--vdev", port.device)
    yield from runs.options


def _is_card(device: str) -> bool:
    return device[0] in "0123456789abcdefABCDEF" and ":" in device.partition(",")[0]


def port_number(switch: SwitchFile, name: str) -> int:
    """Return the number of a port."""
    return list(switch.ports).index(name)


def first_ring(switch: SwitchFile) -> int:
    """Return the engine's number of the file's first ring; rings of ports have lower numbers."""
    return switch.classes * len(switch.ports)


def ring_names(switch: SwitchFile) -> list[str]:
    """Return the names of all rings in the engine's order: first the rings of ports."""
    of_ports = [
        f"port {name}" if switch.classes == 1 else f"port {name} class {traffic_class}"
        for name in switch.ports
        for traffic_class in range(switch.classes)
    ]
    return [*of_ports, *switch.rings]


def entries_of(switch: SwitchFile) -> dict[str, Entry]:
    """Return all rules, including the matches of rings, by the dotted names of their tables."""
    found = {}
    for number, (name, ring) in enumerate(switch.rings.items(), first_ring(switch)):
        found[f"rings.{name}"] = _entry(switch, ring, Action.queue(number), number)
    for name, rule in switch.rules.items():
        action = _action(switch, rule)
        found[f"rules.{name}"] = _entry(switch, rule, action, rule.action, rule.port)
    return found


def _entry(switch: SwitchFile, given: Matching, action: Action, *more: object) -> Entry:
    keys = (getattr(given, key) for key in Matching.model_fields)
    return Entry(match_of(switch, given), given.priority, action, (*keys, *more))


def _action(switch: SwitchFile, rule: Rule) -> Action:
    if rule.action == "drop":
        return Action.drop()
    return Action.forward() if rule.port is None else Action.port(port_number(switch, rule.port))


def match_of(switch: SwitchFile, given: Matching) -> Match:
    """Return the engine's description of matching frames."""
    to, prefix = None, 128
    if given.to is not None:
        network = ipaddress.ip_network(given.to)
        address, is_v4 = int(network.network_address), network.version == 4
        to = divmod(address | (0xFFFF << 32 if is_v4 else 0), 1 << 64)
        prefix = network.prefixlen + (96 if is_v4 else 0)
    return settings(
        Match,
        given,
        destination=None if given.destination is None else address_number(given.destination),
        protocol=None if given.protocol is None else PROTOCOLS[given.protocol],
        ingress=None if given.ingress is None else port_number(switch, given.ingress),
        to=to,
        prefix=prefix,
    )


def address_number(address: str) -> int:
    """Return an Ethernet address as a number of 48 bits."""
    return int(address.replace(":", ""), 16)
