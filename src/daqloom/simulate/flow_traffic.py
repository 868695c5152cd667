"""Flows in a simulated system, with or without a building protocol: their configuration in the
engine, and their metrics."""

import numpy as np

from daqloom import _engine
from daqloom.configuration.settings import settings
from daqloom.deployment.fabric_system import FabricSystem, check_paths
from daqloom.deployment.flow_ends import flow_destination, flow_hosts, flow_sources
from daqloom.scenario.schema.models import Scenario
from daqloom.simulate import latency
from daqloom.topology.routing.routes import trace


def flows_of(scenario: Scenario, system: FabricSystem) -> tuple[list[int], list[_engine.Flow]]:
    """Return the hosts of flows, and the flows; both may be empty. Raises ScenarioError for an
    unknown or unreachable host."""
    if not scenario.flows:
        return [], []
    hosts = np.array(flow_hosts(scenario, system))
    paths = None if scenario.network.is_racks else trace(system.fabric, system.routes)
    flows = []
    for name, sources in flow_sources(scenario, system).items():
        given = scenario.flows[name]
        to = flow_destination(scenario, system, name)
        if paths is not None:
            targets = hosts if to is None else hosts[[to]]
            check_paths(f"flows.{name}", paths, hosts[sources], targets)
            if scenario.transport.connection == "reliable":  # acknowledges go the other way
                check_paths(f"flows.{name}", paths, targets, hosts[sources])
        flow = settings(
            _engine.Flow,
            given,
            name=name,
            sources=sources,
            destination=_engine.Flow.ANY_OTHER if to is None else to,
            bytes=given.size,
            is_poissonian=given.arrivals == "poisson",
            is_datagram=given.transport == "udp",
        )
        flows.append(flow)
    return hosts.tolist(), flows


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
