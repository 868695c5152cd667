"""Closed forms of DAQPIPE: the event rate at which the first resource saturates. Builder units are
not synchronised, so they contend for readout units. Contention has no closed form, so the results
are bounds. With one credit and one parallel send and without contention, the latency of an event is
the sum of the latencies of its messages (test `DaqpipeSystem.OneCredit…`)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from daqloom.analyse.answer import Answer, Condition
from daqloom.analyse.fabric.link import OnWire
from daqloom.analyse.fabric.messages import OFFSET_BYTES
from daqloom.analyse.fabric.slowest import Times
from daqloom.analyse.fabric.view import View, rates_of
from daqloom.deployment.fabric_system import mfp_bytes, unit_slots
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario
from daqloom.topology.schedule.slots import hosts_of, slots_of


@dataclass(frozen=True)
class Pipe(View):
    """Terms of the closed forms of DAQPIPE. An event is one packet of `packing` collisions from
    each readout unit. Rates count all builder units. c: credits, s: parallel sends."""

    @cached_property
    def readouts(self) -> NDArray[np.int32]:
        """Hosts of the readout units; the first host also runs the event manager."""
        return self._units[0]

    @cached_property
    def builders(self) -> NDArray[np.int32]:
        """Hosts of the builder units. Raises ScenarioError where there is none."""
        hosts = self._units[1]
        if not len(hosts):
            raise ScenarioError(
                f"{self.scenario.name} has one node and builders.folded = false; expected at least "
                "two, one to read out and one to build"
            )
        return hosts

    @cached_property
    def _units(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        readouts, builders = unit_slots(self.scenario, self.traffic.slots)
        return slots_of(hosts_of(readouts)), slots_of(hosts_of(builders))

    @cached_property
    def fragments(self) -> NDArray[np.int64]:
        """Mean size of a fragment (bytes), all streams of a node together, shape (readouts,)."""
        sizes = np.array(mfp_bytes(self.scenario, len(self.traffic.hosts)), np.int64)
        total: NDArray[np.int64] = sizes.reshape(len(self.readouts), -1).sum(axis=1)
        return total

    @cached_property
    def remote(self) -> NDArray[np.bool_]:
        """Whether a builder unit and a readout unit are on different nodes, shape (builders,
        readouts)."""
        remote: NDArray[np.bool_] = self.builders[:, None] != self.readouts[None, :]
        return remote

    @cached_property
    def on_wire(self) -> list[OnWire]:
        """The fragments as messages."""
        return [self.link.message(size) for size in self.fragments.tolist()]

    @cached_property
    def request(self) -> OnWire:
        """A request, which names a place in memory."""
        return self.link.message(self.scenario.building.control_size + OFFSET_BYTES)

    @cached_property
    def wire_s(self) -> Times:
        """Time of a fragment on its readout unit's link with control packets, shape (readouts,).
        The control packets are the acknowledge of the request, and credit updates for the request
        and the fragment's acknowledge. On a node with both units, the packets of a fragment that
        its builder unit receives are added."""
        other = self.link.acknowledge.bytes + 2 * self.link.update
        if not self.scenario.is_folded:
            bare = np.array([float(fragment.bytes) for fragment in self.on_wire])
            return 8 * (bare + other) / self.link.rate_bps
        other += self.link.acknowledge.bytes + self.request.bytes + self.link.update
        both = np.array([self.link.wire_s(fragment) for fragment in self.on_wire])
        return both + self.link.bytes_s(other)

    @cached_property
    def managed_s(self) -> Times:
        """Latency of a message between a builder unit and the event manager, shape (builders,)."""
        switches = self._switches(self.readouts[:1])[:, 0]
        message_s = self.messages.sent_s(self.messages.control, switches)
        return np.where(self.remote[:, 0], message_s, 0.0)

    @cached_property
    def collected_s(self) -> Times:
        """The least time from an event's first request until its last fragment arrives, shape
        (builders,). Each fragment takes a request and a transfer, and s fragments
        (`parallel_sends`) are in flight at a time. All fragments pass the builder unit's link one
        after the other; the remaining time of one trip is added. If readout units push, all
        requests leave together, one message cost o apart. A fragment within a node takes the time
        of a copy."""
        rate = self.scenario.hosts.local_rate
        alone_s = self.link.bytes_s(1) * np.array([float(each.bytes) for each in self.on_wire])
        switches = self._switches(self.readouts)
        largest = max(self.on_wire, key=lambda each: each.bytes)
        sent_s = self.messages.sent_s(largest, switches) + alone_s - alone_s.max()
        copies_s = 8 * self.fragments / rate if rate else np.zeros(len(self.fragments))
        request_s = self.messages.sent_s(self.request, switches)
        trips_s = np.where(self.remote, request_s + sent_s, copies_s)
        link_s = np.where(self.remote, alone_s, 0.0)
        others_s = np.where(self.remote, trips_s - link_s, np.inf).min(axis=1)
        all_s = np.where(np.isfinite(others_s), link_s.sum(axis=1) + others_s, copies_s.max())
        if self.scenario.building.mode == "pull":
            least_s: Times = trips_s.sum(axis=1) / self.scenario.building.parallel_sends
        else:
            posts = np.maximum(self.remote.sum(axis=1) - 1, 0)
            least_s = posts * self.messages.cost_s + trips_s.min(axis=1)
        longest_s: Times = np.maximum(all_s, least_s)
        return longest_s

    def busy_s(self) -> dict[str, float]:
        """Return the busy time of each resource per event; the longest bounds the event rate.

        `parallel_events` is Little's law: each builder unit collects c events at a time, each for
        at least its shortest time. In push mode, readout units have at most c · s fragments in
        flight. With time slots, an event takes R − 1 slots for R readout units, because the last
        fragment of an event and the first of the next share a slot. `fabric_link` assumes that all
        builder units build equally many events. With unequally loaded links, the event manager
        assigns more events to faster builder units.
        """
        link, building, hosts = self.link, self.scenario.building, self.scenario.hosts
        rate, credits_s = self.scenario.event.rate, [*map(link.credits_s, self.on_wire)]
        builders, away = len(self.builders), self.remote.mean(axis=0)
        held_s = 2 * self.managed_s + self.collected_s + self.scenario.builders.processing_mean
        busy = {
            "host_link": self._of_busiest_link(self.wire_s),
            "fabric_link": self.traffic.busiest_s(self.readouts, self.builders, self.wire_s)
            / builders,
            "link_credits": self._of_busiest_link(np.array(credits_s)),
            "processor": hosts.message_cost * self._of_busiest_node(),
            "time_slots": max(1, len(self.readouts) - 1)
            * building.slot
            / (builders * building.credits),
        }
        if held_s.min() > 0:
            busy["parallel_events"] = 1 / (building.credits * float((1 / held_s).sum()))
        if hosts.pcie_rate:
            busy["pcie"] = self._of_busiest_link(8 * self.fragments / hosts.pcie_rate)
        if hosts.memory_rate:
            passes_s = 8 * hosts.memory_passes * self.fragments / hosts.memory_rate
            busy["memory"] = float(self._of_hosts(passes_s).max())
        if building.mode == "push":
            busy["parallel_sends"] = float((away * self._in_flight_s()).max())
            busy["parallel_sends"] /= building.credits * building.parallel_sends
        if rate:
            busy["source"] = self.scenario.event.packing / rate
        return busy

    @property
    def letters(self) -> float:
        """Messages of an event between nodes: assignment, report, requests, fragments."""
        return float(2 * self.remote[:, 0].mean() + 2 * self.remote.mean(axis=0).sum())

    def _switches(self, hosts: NDArray[np.int32]) -> Times:
        """Switches on the path from a builder unit's node to each host, shape (builders, hosts)."""
        leaf = self.traffic.paths.wiring.leaf[self.builders]
        return self.traffic.switches[leaf[:, None], hosts[None, :]].astype(np.float64)

    def _of_busiest_link(self, fragment_s: Times) -> float:
        """Return the busy time per event of the busiest direction of any host's cable."""
        return max(float(way_s.max()) for way_s in self._ways(fragment_s))

    def _of_hosts(self, fragment_s: Times) -> Times:
        """Return the time per event of each host, shape (hosts,), both directions together."""
        up_s, down_s = self._ways(fragment_s)
        return up_s + down_s if self.scenario.is_folded else np.concatenate([up_s, down_s])

    def _ways(self, fragment_s: Times) -> tuple[Times, Times]:
        """Return fragments' time per event on links out of readout units and into builder units."""
        up_s: Times = self.remote.mean(axis=0) * fragment_s
        down_s: Times = self.remote @ fragment_s / len(self.builders)
        return up_s, down_s

    def _of_busiest_node(self) -> float:
        """Return the messages per event of the busiest node, without those within the node."""
        readout = 2 * self.remote.mean(axis=0)  # requests taken in, fragments sent
        readout[0] += 2 * self.remote[:, 0].mean()  # assignments sent, reports taken in
        builder = 2 * (self.remote.sum(axis=1) + self.remote[:, 0]) / len(self.builders)
        if not self.scenario.is_folded:
            return max(float(readout.max()), float(builder.max()))
        return float((readout + builder).max())

    def _in_flight_s(self) -> Times:
        """Return the least time from a write to its completion at the sender, shape (readouts,)."""
        near = np.where(self.remote, self._switches(self.readouts), np.inf).min(axis=0)
        near = np.where(np.isfinite(near), near, 0.0)
        known_s = self.messages.known_s(self.on_wire[0], near) + self.messages.latency_s
        there_s: Times = np.array([self.link.bytes_s(each.bytes) for each in self.on_wire])
        return there_s + known_s


def daqpipe(scenario: Scenario) -> Answer:
    """Evaluate the closed forms of DAQPIPE. Raises ScenarioError where nodes are not connected."""
    pipe = Pipe(scenario)
    pipe.check_connected()
    events, building = scenario.event.packing, scenario.building
    bounds = pipe.rates_hz(events, pipe.busy_s())
    rate_hz = min(bounds.values())
    throughput_bps = 8 * int(pipe.fragments.sum()) * rate_hz / events
    processor_s = 2 * pipe.letters * pipe.messages.cost_s
    metrics = {
        **rates_of(rate_hz, rate_hz, throughput_bps, len(pipe.readouts)),
        "collection_latency_s": {"min": float((pipe.managed_s + pipe.collected_s).min())},
        "processor_share": processor_s * rate_hz / events / len(pipe.traffic.hosts),
    }
    slowest = min(bounds, key=lambda name: bounds[name])
    entries = {"event": {"value_s": float(pipe.collected_s.mean()), "limit": slowest}}
    condition = Condition(
        "one builder unit, one at a time",
        len(pipe.builders) == building.credits == building.parallel_sends == 1,
        "builder units contend for readout units, and events for builder units, for which "
        "there is no closed form: these are bounds (that of fabric_link if all builder units "
        "build equally many events)",
    )
    of_network = pipe.of_network(int(pipe.fragments.max()), bounds)
    return Answer(metrics, entries | of_network, {"event": [condition]}, [])
