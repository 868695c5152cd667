"""Flows beside a measured run: programs on the hosts of units send and receive their messages."""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from daqloom.deployment.fabric_system import FabricSystem, fabric_system
from daqloom.deployment.flow_ends import flow_destination, flow_sources
from daqloom.machine.launch import Launcher
from daqloom.machine.traffic import HEADER, Count, sum_up
from daqloom.measure.configure import kernel_congestion
from daqloom.measure.programs import Programs, check_network
from daqloom.results.metrics import with_unit
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.flows import Flow
from daqloom.scenario.schema.links import FRAME_OVERHEAD_BYTES, WIRE_OVERHEAD_BYTES
from daqloom.scenario.schema.models import Scenario

ANSWER_S = 30.0
"""Time limit for an answer of a program that sends and receives (s)."""
UDP_HEADERS_BYTES = 20 + 8
LATE_SHARE = 0.02
"""A sender that is later than this share of its time has not reached its rate."""


def check_flows(scenario: Scenario) -> None:
    """Raise ScenarioError for flows that cannot be measured."""
    measure, system = scenario.measure, fabric_system(scenario)
    for name, flow in sorted(scenario.flows.items()):
        key = f"flows.{name}"
        if measure.shares_memory:
            raise ScenarioError(
                f'{key}: measure.transport = "{measure.transport}" has no network that a flow '
                'could share; use another one, such as "tcp", or leave [flows] out'
            )
        for fault, injected in scenario.faults.injected.items():
            if injected.kind.breaks == "host":
                raise ScenarioError(
                    f'{key}: faults.injected.{fault}.what = "{injected.what}" ends the units of a '
                    'measured host, not its flows; use what = "cable" or "unit", or leave one out'
                )
        if flow.transport == "system" and not measure.over_tcp:
            raise ScenarioError(
                f'{key}.transport = "system": a measured flow is sent over TCP or UDP, and '
                f'measure.transport is "{measure.transport}"; use "udp", or measure over "tcp"'
            )
        if flow.service_level:
            raise ScenarioError(
                f"{key}.service_level = {flow.service_level}: measured flows have no classes; use 0"
            )
        last_bytes = flow.size % (scenario.network.mtu - UDP_HEADERS_BYTES)
        if flow.transport == "udp" and 0 < last_bytes < HEADER.size:
            raise ScenarioError(
                f"{key}.size = {flow.size} B: the last datagram of a measured message over UDP "
                f"would have {last_bytes} B; expected {HEADER.size} B or more, so change the size"
            )
        check_network(scenario, key)
        used = set(flow_sources(scenario, system)[name]) | set(
            _destinations(scenario, system, name)
        )
        if max(used) >= len(system.hosts):
            raise ScenarioError(
                f"{key}: its source or destination is a host without a unit, on which a "
                "measurement starts nothing; name the hosts of units"
            )


def _destinations(scenario: Scenario, system: FabricSystem, name: str) -> list[int]:
    to = flow_destination(scenario, system, name)
    return list(range(len(system.hosts))) if to is None else [to]


def interval_s(scenario: Scenario, system: FabricSystem, flow: Flow, source: int) -> float:
    """Return the mean time between two messages of a source."""
    if not flow.load:
        return flow.interval
    wire_bytes = scenario.wire_bytes(flow.size)
    if flow.transport == "udp":
        headers = UDP_HEADERS_BYTES + FRAME_OVERHEAD_BYTES + WIRE_OVERHEAD_BYTES
        datagrams = math.ceil(flow.size / (scenario.network.mtu - UDP_HEADERS_BYTES))
        wire_bytes = flow.size + datagrams * headers
    host = system.hosts[source]
    [rate_bps] = {c.rate_bps for c in system.fabric.cables if host in (c.a.node, c.b.node)}
    return 8 * wire_bytes / rate_bps / flow.load


@dataclass(frozen=True)
class FlowCounts:
    """Messages of all flows until a moment, by name."""

    time_s: float
    """Time since the begin of the flows."""
    sent: Mapping[str, Count]
    received: Mapping[str, Count]
    overflowed: int
    """Datagrams that found a receiver's buffer full, because its program was too slow."""


class Flows(Programs):
    """The flows of a scenario."""

    title = "the flows, on the hosts of their units"

    def __init__(self, scenario: Scenario, launcher: Launcher) -> None:
        self._system = fabric_system(scenario)
        self._sources = flow_sources(scenario, self._system)
        self._targets = {
            name: _destinations(scenario, self._system, name) for name in self._sources
        }
        ends = (*self._sources.values(), *self._targets.values())
        hosts = {_name(unit): unit for unit in sorted({unit for units in ends for unit in units})}
        super().__init__(scenario, launcher, "daqloom.machine.traffic", hosts)
        self._addresses: dict[str, dict[str, Any]] = {}
        self._began_s = 0.0
        self._counts: list[FlowCounts] = []

    def _open(self, listen: dict[str, Any]) -> None:
        self._addresses = self._ask_all(listen)

    def begin(self, run: str) -> None:
        """Let all sources send. Raises MeasureError."""
        self._began_s = time.monotonic()
        for number, (name, sources) in enumerate(self._sources.items()):
            for source in sources:
                self._ask(_name(source), {"send": self._orders(number, name, source)}, ANSWER_S)

    def _orders(self, number: int, name: str, source: int) -> dict[str, Any]:
        scenario, flow = self._scenario, self._scenario.flows[name]
        kind = "udp" if flow.transport == "udp" else "tcp"
        ends = [self._addresses[_name(unit)] for unit in self._targets[name] if unit != source]
        return {
            "number": number,
            "source": source,
            "destinations": [(end["address"], end[kind]) for end in ends],
            "size": flow.size,
            "messages": flow.messages,
            "interval_s": interval_s(scenario, self._system, flow, source),
            "poisson": flow.arrivals == "poisson",
            "start_s": flow.start,
            "outstanding": flow.outstanding,
            "datagram_bytes": scenario.network.mtu - UDP_HEADERS_BYTES if kind == "udp" else 0,
            "congestion": kernel_congestion(scenario),
            "seed": f"{scenario.run.seed} {name} {source}",
        }

    def count(self) -> None:
        """Count the messages until now. Raises MeasureError if a program has ended or stalls."""
        sent, received = ({name: Count() for name in self._sources} for _ in range(2))
        overflowed, names = 0, list(self._sources)
        for answer in self._ask_all({"count": True}, timeout_s=ANSWER_S).values():
            overflowed += answer["overflowed"]
            for into, what in ((sent, "sent"), (received, "received")):
                for number, counted in answer[what].items():
                    count = into[names[int(number)]]
                    sum_up(count, Count(**counted))
                    count.behind_s = max(count.behind_s, counted["behind_s"])
        now_s = time.monotonic() - self._began_s
        self._counts.append(FlowCounts(now_s, sent, received, overflowed))

    def finish(self) -> None:
        """Leave the counts of the end, because sources have gone on."""

    def metrics(self, window_s: float, share: float) -> dict[str, Any]:
        """Return the metrics of each flow between both counts, by their own times."""
        return flow_metrics(self._scenario, *self._counts) if len(self._counts) == 2 else {}

    def warnings(self) -> Iterator[str]:
        """Yield warnings about flows."""
        if len(self._counts) == 2:
            yield from flow_warnings(self._scenario, *self._counts)


def _name(unit: int) -> str:
    return f"the flows of unit {unit}'s host"


def flow_metrics(
    scenario: Scenario, begin: FlowCounts, end: FlowCounts
) -> dict[str, dict[str, float]]:
    """Return the metrics of each flow between two moments."""
    window_s = end.time_s - begin.time_s
    before, after = begin.received, end.received
    over_udp = [name for name in after if scenario.flows[name].transport == "udp"]
    return {
        "flow_throughput_bps": {
            name: 8 * (count.size_bytes - before[name].size_bytes) / window_s
            for name, count in after.items()
        },
        "flow_messages": {n: count.messages - before[n].messages for n, count in after.items()},
        "flow_messages_lost": {n: after[n].lost - before[n].lost for n in over_udp},
    }


def flow_warnings(scenario: Scenario, begin: FlowCounts, end: FlowCounts) -> list[str]:
    """Return warnings about flows that did not reach their rate, or of which no message arrived
    between two moments, and about losses at receiving programs."""
    found = []
    for name, count in end.sent.items():
        late_s, before = count.behind_s, begin.sent[name]
        received_bytes = end.received[name].size_bytes - begin.received[name].size_bytes
        if late_s > LATE_SHARE * max(end.time_s - scenario.flows[name].start, 0):
            found.append(
                f"flows.{name} did not reach its rate: a sender was {with_unit(late_s, 's')} late "
                f"at the end; {with_unit(count.size_bytes - before.size_bytes, 'B')} were sent "
                f"after the warm-up and {with_unit(received_bytes, 'B')} received, which is what "
                "the network, or the programs on this machine, carry"
            )
        if end.received[name].messages == begin.received[name].messages:
            found.append(f"no message of flows.{name} arrived after the warm-up")
    if end.overflowed > begin.overflowed:
        found.append(
            f"{end.overflowed - begin.overflowed:,} datagrams of flows were lost by receiving "
            "programs, not by the network; reduce the rates of flows, or raise net.core.rmem_max"
        )
    return found
