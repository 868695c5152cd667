"""Flows in a simulated system, with or without a building protocol: their configuration in the
engine, and their metrics."""

import numpy as np

from daqloom import _engine
from daqloom.configuration.settings import settings
from daqloom.deployment.fabric_system import FabricSystem, check_paths
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.flows import EVERY, RANDOM
from daqloom.scenario.schema.models import Scenario
from daqloom.simulate import latency
from daqloom.topology.routing.routes import trace


def flow_hosts(scenario: Scenario, system: FabricSystem) -> list[int]:
    """Return the hosts of flows: first the hosts of nodes in order; with a building protocol, then
    other hosts that flows name."""
    hosts = system.hosts
    if not scenario.protocol.builds:
        return hosts
    named = {host for flow in scenario.flows.values() for host in (flow.source, flow.destination)}
    others = {number for number, host in enumerate(system.fabric.hosts) if host.name in named}
    return [*hosts, *sorted(others - set(hosts))]


def flow_sources(scenario: Scenario, system: FabricSystem) -> dict[str, list[int]]:
    """Return the sources of each flow as indices in `flow_hosts`, in the engine's order of flows.
    Raises ScenarioError for an unknown host."""
    places = _places(system, flow_hosts(scenario, system))
    sources: dict[str, list[int]] = {}
    for name, given in sorted(scenario.flows.items()):
        nodes = list(places.values())
        if given.source != EVERY:
            nodes = [_place(f"flows.{name}.source", given.source, places)]
        if given.destination != RANDOM:
            to = _place(f"flows.{name}.destination", given.destination, places)
            nodes = [node for node in nodes if node != to]
        if not nodes or (given.destination == RANDOM and len(places) < 2):
            raise ScenarioError(
                f"flows.{name}: {given.source} would write only to itself; name another host as "
                "source or destination, or use more hosts"
            )
        sources[name] = nodes
    return sources


def flows_of(scenario: Scenario, system: FabricSystem) -> tuple[list[int], list[_engine.Flow]]:
    """Return the hosts of flows, and the flows; both may be empty. Raises ScenarioError for an
    unknown or unreachable host."""
    if not scenario.flows:
        return [], []
    hosts = np.array(flow_hosts(scenario, system))
    places = _places(system, hosts.tolist())
    paths = None if scenario.network.is_racks else trace(system.fabric, system.routes)
    flows = []
    for name, sources in flow_sources(scenario, system).items():
        given = scenario.flows[name]
        destination = _engine.Flow.ANY_OTHER
        if given.destination != RANDOM:
            destination = _place(f"flows.{name}.destination", given.destination, places)
        if paths is not None:
            targets = hosts if given.destination == RANDOM else hosts[[destination]]
            check_paths(f"flows.{name}", paths, hosts[sources], targets)
            if scenario.transport.connection == "reliable":  # acknowledges go the other way
                check_paths(f"flows.{name}", paths, targets, hosts[sources])
        flow = settings(
            _engine.Flow,
            given,
            name=name,
            sources=sources,
            destination=destination,
            bytes=given.size,
            is_poissonian=given.arrivals == "poisson",
            is_datagram=given.transport == "udp",
        )
        flows.append(flow)
    return hosts.tolist(), flows


def _places(system: FabricSystem, hosts: list[int]) -> dict[str, int]:
    return {system.fabric.hosts[host].name: place for place, host in enumerate(hosts)}


def _place(key: str, host: int | str, places: dict[str, int]) -> int:
    """Return the index of a host that is given as an index or as a name."""
    if isinstance(host, int) and host < len(places):
        return host
    if host not in places:
        names = list(places)
        raise ScenarioError(
            f"{key} = {host} is not a node; expected 0 to {len(names) - 1}, or a name from "
            f"{names[0]} to {names[-1]}"
        )
    return places[str(host)]


def flow_metrics(
    scenario: Scenario, report: _engine.RunReport, window_s: float
) -> dict[str, dict[str, float]]:
    """Return metrics of each flow; empty if the scenario has no flows."""
    if not scenario.flows:
        return {}
    flows = dict(zip(sorted(scenario.flows), report.flows, strict=True))
    latencies = dict(zip(flows, report.flow_latencies, strict=True))
    over_udp = [name for name in flows if scenario.flows[name].transport == "udp"]
    return {
        "flow_throughput_bps": {name: 8 * flow.bytes / window_s for name, flow in flows.items()},
        "flow_messages": {name: flow.messages for name, flow in flows.items()},
        "flow_messages_lost": {name: flows[name].lost for name in over_udp},
        "flow_latency_s": latency.summaries(latencies),
    }


def flow_warnings(scenario: Scenario, report: _engine.RunReport) -> list[str]:
    """Return a warning for each flow without an arrived message."""
    flows = zip(sorted(scenario.flows), report.flows, strict=True)
    silent = [name for name, flow in flows if flow.messages == 0]
    return [f"no message of flows.{name} arrived after the warm-up" for name in silent]
