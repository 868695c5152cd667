"""The data of linear shifting: the flows of each node, and its control messages."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from daqloom.analyse.fabric.link import OnWire
from daqloom.analyse.fabric.messages import OFFSET_BYTES
from daqloom.analyse.fabric.slowest import Chance, Times, delay_of
from daqloom.analyse.fabric.view import View
from daqloom.deployment.fabric_system import barrier_groups, mfp_bytes
from daqloom.topology.fabric.wiring import tree_levels

EXCHANGES = 4
"""Control messages of a node per multi-event packet: sizes and memory grants, sent and received."""
READY_BYTES = 6 * OFFSET_BYTES
"""Payload size of a request to write to a builder unit (bytes)."""
GO_BYTES = OFFSET_BYTES
"""Payload size of the answer to a request to write (bytes)."""
REQUEST_MESSAGES = 4
"""Messages of a node per builder-paced phase: ready and go, sent and received."""


@dataclass(frozen=True)
class Push(View):
    """Inputs for the closed forms of linear shifting, as arrays over the nodes in slot order."""

    @property
    def slots(self) -> int:
        """S: number of phases in a round, including those of empty slots."""
        return len(self.traffic.slots)

    @property
    def nodes(self) -> int:
        """N: number of nodes."""
        return len(self.traffic.hosts)

    @cached_property
    def mfps(self) -> NDArray[np.int64]:
        """Mean bytes of a multi-fragment packet (MFP), shape (nodes, streams)."""
        sizes = np.array(mfp_bytes(self.scenario, self.nodes), np.int64)
        return sizes.reshape(self.nodes, self.scenario.readout.streams)

    @property
    def meps(self) -> int:
        """Multi-event packets per phase."""
        return self.scenario.building.meps_per_phase

    @property
    def writes(self) -> int:
        """Writes of a node per phase: one MFP per stream and multi-event packet."""
        return self.scenario.readout.streams * self.meps

    @cached_property
    def wire_s(self) -> Times:
        """Time that a node's MFPs of one phase take on a link without other flows, while equally
        many arrive in the other direction. Acknowledges and credit updates are included for all but
        one."""
        others = (self.writes - 1) * (self.link.acknowledge.bytes + self.link.update)
        return self._sum(self.link.wire_s) + self.link.bytes_s(others)

    @cached_property
    def credits_s(self) -> Times:
        """Least time of a node's MFPs of one phase on the link, as limited by credits."""
        return self._sum(self.link.credits_s)

    @cached_property
    def pcie_s(self) -> Times:
        """Time of a node's MFPs of one phase on PCIe, which is full duplex; 0 without limit."""
        return self._time_s(self.scenario.hosts.pcie_rate, self.meps * self.mfps.sum(axis=1))

    @cached_property
    def memory_s(self) -> Times:
        """Time that a node's memory takes for the MFPs sent in a phase and for those received,
        which have the mean size. Each MFP crosses memory `memory_passes` times. 0 without limit."""
        sent = self.meps * self.mfps.sum(axis=1)
        hosts = self.scenario.hosts
        return hosts.memory_passes * self._time_s(hosts.memory_rate, sent + sent.mean())

    @property
    def alone_s(self) -> Times:
        """Time of a node's flow in a phase if no link is shared."""
        times_s: Times = np.max([self.wire_s, self.credits_s, self.pcie_s, self.memory_s], axis=0)
        return times_s

    @cached_property
    def copy_s(self) -> Times:
        """Time of the copies that a node makes to itself, all streams in parallel."""
        return self._time_s(self.scenario.hosts.local_rate, self.mfps.max(axis=1))

    def transfer_s(self, flow_s: Times, switches: NDArray[np.int32]) -> Times:
        """Return the time from a node's turn until all its writes are acknowledged: the processor
        posts a write, the data cross the wires, the acknowledge returns and the node polls it.
        Random latency and jitter are not included: see `chance`."""
        largest = self.link.message(int(self.mfps.max()))
        ways_s = self.messages.known_s(largest, switches.astype(np.float64))
        posts_s = (self.writes - 1) * self.messages.cost_s + self.wire_s / self.writes
        time_s: Times = np.maximum(flow_s, posts_s) + ways_s  # short MFPs wait for their posts
        return time_s

    @property
    def is_paced(self) -> bool:
        """Whether builder units set the pace."""
        return self.scenario.building.pace == "builder"

    @property
    def parts_lanes(self) -> bool:
        """Whether control messages and data use different lanes (Ethernet: classes)."""
        transport, network = self.scenario.transport, self.scenario.network
        has_lanes = network.technology == "ethernet" or network.lanes.count > 1
        return has_lanes and transport.control_service_level != transport.data_service_level

    @property
    def posts(self) -> int:
        """Successive posts before a node's data leave, each with a random latency: the request to
        write, the answer and the first write. Without builder pacing there is only the write."""
        return 3 if self.is_paced else 1

    def asking_s(self, switches: NDArray[np.int32]) -> Times:
        """Return the time of a request to write and of the answer from an idle builder unit,
        without random latency (see `chance`). It is 0 if the schedule sets the pace."""
        count = switches.astype(np.float64)
        time_s = np.zeros(count.shape)
        if self.is_paced:
            for more in (READY_BYTES, GO_BYTES):
                message = self.link.message(self.scenario.building.control_size + more)
                time_s += self.messages.sent_s(message, count) - self.messages.latency_s
        return time_s

    def chance(self, phases: int, remote: bool = True) -> Chance:
        """Return the random part of a node's time for a number of phases: jitter and, if data leave
        the node, the latency of posts and the sizes of MFPs."""
        jitter = delay_of(self.scenario.building.jitter, phases)
        latency = delay_of(self.scenario.hosts.latency, self.posts * phases)
        if not remote:
            return Chance([jitter])
        return Chance([jitter, latency], math.sqrt(phases) * self.deviation_s)

    @property
    def deviation_s(self) -> float:
        """Standard deviation of the wire time for the node with most data (s). Its MFPs are sums of
        Poissonian sizes, so their variance in bytes² equals their mean in bytes."""
        if self.scenario.event.fragment_sizes == "fixed":
            return 0.0
        return self.link.bytes_s(float(np.sqrt(self.meps * self.mfps.sum(axis=1).max())))

    @property
    def barrier(self) -> str:
        """The kind of barrier; phases by the clock have none."""
        building = self.scenario.building
        return "none" if building.change == "window" else building.barrier

    @property
    def barriers(self) -> float:
        """Barriers per round."""
        phases = self.scenario.building.phases_per_barrier
        return 0.0 if self.barrier == "none" else self.slots / phases

    @property
    def has_barrier_each_phase(self) -> bool:
        """Whether nodes wait at a barrier after each phase, for all nodes or for their group."""
        return self.waits_at_barriers and self.scenario.building.phases_per_barrier == 1

    @property
    def waits_at_barriers(self) -> bool:
        """Whether nodes always wait at barriers. They do not with barrier slack, if they wait for
        neighbours only, or if they may leave step; how often they wait then has no closed form."""
        building = self.scenario.building
        is_strict = building.barrier_slack == 0 and building.synchronise == "always"
        return self.barrier not in ("none", "neighbour") and is_strict

    @property
    def in_step(self) -> bool:
        """Whether all nodes begin each phase together."""
        return self.has_barrier_each_phase and len(self.groups) == 1

    @cached_property
    def groups(self) -> list[NDArray[np.intp]]:
        """Groups of nodes that share a barrier, as arrays of node numbers."""
        building, wiring = self.scenario.building, self.traffic.paths.wiring
        found = barrier_groups(building.barrier_group, self.traffic.hosts.tolist(), wiring)
        if not found:
            return [np.arange(self.nodes)]
        return [np.flatnonzero(np.array(found) == group) for group in dict.fromkeys(found)]

    @property
    def crossing_s(self) -> Times:
        """Time from each node to the root of its group's tree, for a barrier of the network."""
        levels = np.zeros(self.nodes)
        for group in self.groups:
            levels[group] = tree_levels(self.traffic.paths.wiring, self.traffic.hosts[group])
        time_s: Times = levels * self.scenario.building.barrier_level_latency
        return time_s

    @property
    def events(self) -> int:
        """Events per round: each node builds the multi-event packets of one phase."""
        return self.scenario.event.packing * self.nodes * self.meps

    @property
    def bytes_a_round(self) -> int:
        """Payload (bytes) that all nodes send per round, each its MFPs to every node and to
        itself."""
        return int(self.mfps.sum()) * self.nodes * self.meps

    @property
    def processor_s(self) -> float:
        """CPU time of a node per round, without barriers: messages for writes and memory grants
        and, if builder-paced, for requests to write. Sent and received messages count."""
        messages = (
            2 * self.writes + EXCHANGES * self.meps + (REQUEST_MESSAGES if self.is_paced else 0)
        )
        return float(messages * (self.nodes - 1) * self.messages.cost_s)

    def _sum(self, time_s: Callable[[OnWire], float]) -> Times:
        """Return the sum of `time_s` over the writes of each node in a phase."""
        sizes, where = np.unique(self.mfps, return_inverse=True)
        each = np.array([time_s(self.link.message(int(size))) for size in sizes])
        total: Times = self.meps * each[where.reshape(self.mfps.shape)].sum(axis=1)
        return total

    def _time_s(self, rate_bps: int, count: NDArray[np.int64] | Times) -> Times:
        """Return the time of `count` bytes at a rate; 0 if the rate is unlimited (0)."""
        time_s: Times = 8 * count / rate_bps if rate_bps else np.zeros(self.nodes)
        return time_s
