"""File of a software switch, for one of a scenario or in place of a shared-memory switch."""

import ipaddress
from collections import Counter
from typing import Any

from daqloom.deployment.fabric_system import FabricSystem, fabric_system
from daqloom.lab.software import SMALLEST_FRAME_BYTES, shared_memory
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.quantities import RATE, SIZE
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.switches import Switch
from daqloom.softswitch.document import Runs
from daqloom.softswitch.sizes import IN_FLIGHT


def document_of(scenario: Scenario, hosts: str, switch: str = "") -> dict[str, Any]:
    """Return the file (as a document) of a scenario's software switch: the only one, or the one
    named `switch`, which may also be a shared-memory switch. Its ports are named after the nodes at
    the other ends of their cables, and lack devices; hosts get addresses of the network `hosts` in
    order. Raises ScenarioError."""
    system = fabric_system(scenario)
    number, model = _chosen(scenario, system, switch)
    addresses = _addresses(hosts, len(system.fabric.hosts))
    names = _port_names(system, number)
    title = f"{system.fabric.switches[number].name} of {scenario.name}"[:200]
    if model.architecture == "shared-memory":
        return {"title": title, **_stand_in(model, list(names.values()))}
    towards = system.ways.first(system.fabric).ports[number].tolist()
    limits = {
        "rate": model.pace and RATE.format(model.pace),
        "pause_at": model.pause_at,
        "ecn_threshold": model.ecn_threshold and SIZE.format(model.ecn_threshold),
    }
    rings = {}
    for host in system.with_rings(model):
        port = towards[host]
        if port in names:
            rings[system.fabric.hosts[host].name.replace(".", "-")] = {
                "port": names[port],
                "to": addresses[host],
                "packets": model.queue_packets,
                **{key: limit for key, limit in limits.items() if limit},
            }
    return {
        "title": title,
        "pace_counts": model.pace_counts,
        "runs": {"descriptors": max(32, model.descriptors)},
        "ports": {name: {} for name in names.values()},
        "rings": rings,
    }


def _stand_in(switch: Switch, ports: list[str]) -> dict[str, Any]:
    """Return the file of a switch without rings that drops packets like the memory of `switch`."""
    cell_bytes = switch.cell_size or SMALLEST_FRAME_BYTES  # each packet takes a cell at least
    packets = switch.buffer // cell_bytes
    return {
        "runs": {"buffers": packets + 2 * len(ports) * Runs().descriptors + IN_FLIGHT},
        "ports": {name: {"packets": packets} for name in ports},
        "shared_memory": shared_memory(switch),
    }


def _chosen(scenario: Scenario, system: FabricSystem, name: str) -> tuple[int, Switch]:
    network = scenario.network
    if network.technology != "ethernet":
        raise ScenarioError(
            f'network.technology = "{network.technology}" has no software switches; they forward '
            "Ethernet"
        )
    rows: list[tuple[int, Switch]] = []
    for number, node in enumerate(system.fabric.switches):
        switch = system.switch_at(number)
        may_be = ("software",) if not name else ("software", "shared-memory")
        if switch.architecture in may_be and name in ("", node.name):
            rows.append((number, switch))
    if len(rows) != 1:
        known = ", ".join(system.fabric.switches[number].name for number, _ in rows[:8])
        raise ScenarioError(
            f"{scenario.name} has {len(rows)} software switches, {known}; choose one with --switch"
            if rows
            else f"{scenario.name} has no software switch{f' {name}' if name else ''}; give one of "
            'network.switch the model "software", or name one of the model "shared-memory" for '
            "which the software switch is to stand in"
        )
    return rows[0]


def _addresses(network: str, hosts: int) -> list[str]:
    try:
        known = ipaddress.ip_network(network)
    except ValueError:
        raise ScenarioError(
            f'--hosts {network[:80]} is no network; expected one such as "10.0.0.0/16"'
        ) from None
    if known.num_addresses < hosts + 2:
        raise ScenarioError(f"--hosts {network} has too few addresses for {hosts} hosts")
    return [str(known[host + 1]) for host in range(hosts)]


def _port_names(system: FabricSystem, switch: int) -> dict[int, str]:
    """Return the name of each cabled port of the switch, by its number."""
    fabric = system.fabric
    node = fabric.switch_node(switch)
    peers = {}
    for cable in fabric.cables:
        for here, there in ((cable.a, cable.b), (cable.b, cable.a)):
            if here.node == node:
                peers[here.port] = fabric.nodes[there.node].name.replace(".", "-")
    times = Counter(peers.values())
    numbers: Counter[str] = Counter()
    names = {}
    for port, name in sorted(peers.items()):
        numbers[name] += 1
        names[port] = name if times[name] == 1 else f"{name}-{numbers[name]}"
    return names
