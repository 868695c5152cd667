"""A simulated run of flows: its metrics and its timeline."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom import _engine
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.flows import EVERY, RANDOM
from daqloom.simulate import latency
from daqloom.simulate.port_wait import probe_of
from daqloom.simulate.system_config import no_frames, set_system
from daqloom.timeline import write_messages
from daqloom.topology.routes import trace
from daqloom.topology.system import check_paths

if TYPE_CHECKING:
    from daqloom.scenario.models import Scenario
    from daqloom.topology.system import FabricSystem


def flows_config(
    scenario: Scenario, system: FabricSystem, seed: int
) -> tuple[_engine.FlowsConfig, dict[str, list[int]]]:
    """Return the configuration of simulated flows, and the source nodes of each.

    Raises ScenarioError for an unknown host.
    """
    config = _engine.FlowsConfig()
    set_system(config, scenario, system, seed)
    config.hosts = system.hosts
    named = {system.fabric.hosts[host].name: node for node, host in enumerate(system.hosts)}
    sources: dict[str, list[int]] = {}
    paths = trace(system.fabric, system.routes)
    hosts = np.array(system.hosts)
    for name, given in sorted(scenario.flows.items()):
        flow = _engine.Flow()
        flow.name = name
        flow.destination = _engine.Flow.ANY_OTHER
        if given.destination != RANDOM:
            flow.destination = _node(f"flows.{name}.destination", given.destination, named)
        nodes = list(named.values())
        if given.source != EVERY:
            nodes = [_node(f"flows.{name}.source", given.source, named)]
        nodes = [node for node in nodes if node != flow.destination]
        if not nodes or (given.destination == RANDOM and len(named) < 2):
            raise ScenarioError(
                f"flows.{name}: {given.source} would write only to itself; name another host as "
                "source or destination, or use more hosts"
            )
        flow.sources = sources[name] = nodes
        targets = hosts if given.destination == RANDOM else hosts[[flow.destination]]
        check_paths(f"flows.{name}", paths, hosts[nodes], targets)
        if scenario.transport.connection == "reliable":  # acknowledges go the other way
            check_paths(f"flows.{name}", paths, targets, hosts[nodes])
        flow.service_level = given.service_level
        flow.bytes = given.size
        flow.messages = given.messages
        flow.start_s = given.start
        flow.interval_s = given.interval
        flow.load = given.load
        flow.is_poissonian = given.arrivals == "poisson"
        flow.outstanding = given.outstanding
        config.add(flow)
    return config, sources


def _node(key: str, host: int | str, named: dict[str, int]) -> int:
    """Return the node on a host given by its place or its name."""
    if isinstance(host, int) and host < len(named):
        return host
    if host not in named:
        names = list(named)
        raise ScenarioError(
            f"{key} = {host} is not a node; expected 0 to {len(names) - 1}, or a name from "
            f"{names[0]} to {names[-1]}"
        )
    return named[str(host)]


class FlowsRun:
    """See `daqloom.simulate.run.ProtocolRun`."""

    def __init__(self, scenario: Scenario, system: FabricSystem, seed: int) -> None:
        self.scenario, self.system = scenario, system
        self.end_s = scenario.run.duration
        self._trace: Path | None = None
        config, self.sources = flows_config(scenario, system, seed)
        self.engine = _engine.FlowSystem(config)

    @cached_property
    def counted(self) -> _engine.FlowsReport:
        """The report at the end of the run."""
        return self.engine.report()

    def record(self, captures: Mapping[str, Path], trace: Path | None) -> None:
        """Record what the timeline needs. Raises ValueError for captures of frames."""
        no_frames(captures)
        self._trace = trace
        self.engine.record_messages()

    def finish_recording(self) -> None:
        """Write which messages each host had in flight when."""
        if self._trace is None:
            return
        hosts = [self.system.fabric.hosts[host].name for host in self.system.hosts]
        arrived = self.engine.arrivals()
        columns = (arrived.posted_s, arrived.arrived_s, arrived.source, arrived.flow)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        write_messages(self._trace, list(rows), hosts, list(self.sources))

    def series(self, *, timeline: bool) -> dict[str, Any]:
        """Return no series: there are too many messages to draw."""
        return {}

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of all flows together, and of each."""
        counted = self.counted
        window_s, nodes = counted.window_s, self.system.nodes
        flows = dict(zip(self.sources, counted.flows, strict=True))
        latencies = dict(zip(self.sources, self.engine.latencies(), strict=True))
        waiting: dict[str, Any] = {}
        if self.scenario.network.technology == "infiniband":
            waits = self._waits(counted)
            waiting = {
                "flow_wait_s": waits,
                "inferred_buffer_bytes": self._buffer(waits, flows),
            }
        return {
            "throughput_bps": 8 * sum(flow.bytes for flow in flows.values()) / window_s,
            "flow_throughput_bps": {
                name: 8 * flow.bytes / window_s for name, flow in flows.items()
            },
            "flow_messages": {name: flow.messages for name, flow in flows.items()},
            "flow_latency_s": {
                f"{name}.{which}": value
                for name, durations in latencies.items()
                for which, value in latency.summary(durations).items()
            },
            **waiting,
            "processor_share": counted.processor_s / (nodes * window_s),
        }

    def _buffer(
        self, waits: dict[str, float], flows: dict[str, _engine.FlowCount]
    ) -> dict[str, int]:
        """Return the size of the buffer behind a stream's port, if the flows are set up to find
        it."""
        if (found := probe_of(self.scenario)) is None:
            return {}
        stream, burst, probe = found
        if flows[burst].messages < self.scenario.flows[burst].messages:
            return {}
        if (held := probe.holds(waits[stream])) is None:
            return {}
        least, most = held
        return {"least": least} | ({} if most is None else {"most": most})

    def _waits(self, counted: _engine.RunReport) -> dict[str, float]:
        """Return the waiting time of the ports of each flow's sources."""
        hosts, ports = len(self.system.fabric.hosts), counted.ports
        waits_s = (ports.wait_credits_s + ports.wait_crossbar_s).tolist()
        waited = {
            node: wait_s
            for node, wait_s in zip(ports.node.tolist(), waits_s, strict=True)
            if node < hosts
        }
        return {
            name: sum(waited.get(self.system.hosts[node], 0.0) for node in nodes)
            for name, nodes in self.sources.items()
        }

    def warnings(self) -> list[str]:
        """Return warnings about the numbers."""
        silent = [
            name
            for name, flow in zip(self.sources, self.counted.flows, strict=True)
            if flow.messages == 0
        ]
        return [f"no message of flows.{name} arrived after the warm-up" for name in silent]
