"""What linear shifting moves: the flows of each node, and its messages about them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from daqloom.analyse.fabric_link import ACKNOWLEDGE_BYTES, OnWire
from daqloom.analyse.fabric_slowest import Chance, Delay, Times, host_latency
from daqloom.analyse.fabric_view import View
from daqloom.topology.system import mfp_bytes

if TYPE_CHECKING:
    pass

EXCHANGES = 4
"""Messages of a node about a multi-event packet: sizes announced, places granted, sent and had."""


@dataclass(frozen=True)
class Push(View):
    """A scenario of linear shifting as the closed forms see it; arrays by node, in slot order."""

    @property
    def slots(self) -> int:
        """S: phases of a round, dummies included."""
        return len(self.traffic.slots)

    @property
    def nodes(self) -> int:
        """N."""
        return len(self.traffic.hosts)

    @property
    def packing(self) -> int:
        """Events in a multi-event packet."""
        return self.scenario.fragments.packing

    @cached_property
    def mfps(self) -> NDArray[np.int64]:
        """(nodes, streams): mean bytes of an MFP."""
        sizes = np.array(mfp_bytes(self.scenario, self.nodes), np.int64)
        return sizes.reshape(self.nodes, self.scenario.nodes.streams)

    @property
    def meps(self) -> int:
        """Multi-event packets of a phase."""
        return self.scenario.shift.meps_per_phase

    @property
    def writes(self) -> int:
        """Of a node in a phase: an MFP of each stream, of each multi-event packet."""
        return self.scenario.nodes.streams * self.meps

    @cached_property
    def wire_s(self) -> Times:
        """Time of a node's MFPs of one phase on a link of their own, while as many come the other
        way. Of all of them but the last the acknowledges go there, too, and credits for these."""
        others = (self.writes - 1) * (ACKNOWLEDGE_BYTES + self.link.update)
        return self._sum(self.link.wire_s) + self.link.bytes_s(others)

    @cached_property
    def credits_s(self) -> Times:
        """The least time for which credits keep them there."""
        return self._sum(self.link.credits_s)

    @cached_property
    def pcie_s(self) -> Times:
        """Time of them through the network card, as many the other way at once; 0 without limit."""
        return self._at(self.scenario.nodes.pcie_rate, self.meps * self.mfps.sum(axis=1))

    @cached_property
    def memory_s(self) -> Times:
        """Time in which a node's memory has them and, of the mean size, those that come meanwhile,
        each as often as it crosses memory; 0 without limit."""
        sent = self.meps * self.mfps.sum(axis=1)
        nodes = self.scenario.nodes
        return nodes.memory_passes * self._at(nodes.memory_rate, sent + sent.mean())

    @property
    def alone_s(self) -> Times:
        """Time of a flow with which nobody shares a link."""
        times_s: Times = np.max([self.wire_s, self.credits_s, self.pcie_s, self.memory_s], axis=0)
        return times_s

    @cached_property
    def copy_s(self) -> Times:
        """Time of the copies that stay within a node, all at once."""
        return self._at(self.scenario.nodes.local_rate, self.mfps.max(axis=1))

    def transfer_s(self, flow_s: Times, switches: NDArray[np.int32]) -> Times:
        """From a node's turn until it knows that all is written: its processor posts a write, the
        flow takes its time of the wires, the acknowledge comes back and is noticed.

        What is random about it, latency and jitter, is not in it: see `chance`.
        """
        largest = self.link.message(int(self.mfps.max()))
        ways_s = self.messages.known_s(largest, switches.astype(np.float64))
        posts_s = (self.writes - 1) * self.messages.cost_s + self.wire_s / self.writes
        time_s: Times = np.maximum(flow_s, posts_s) + ways_s  # short MFPs wait for their posts
        return time_s

    def chance(self, phases: int, remote: bool = True) -> Chance:
        """What is random about a node's time for so many phases: jitter; and, unless all that it
        sends stays on the node, the latency of a post and the sizes of MFPs."""
        shift, nodes = self.scenario.shift, self.scenario.nodes
        jitter = Delay(shift.jitter, shift.jitter_mean, shift.jitter_spread, phases)
        latency = host_latency(nodes, phases)
        if not remote:
            return Chance([jitter])
        return Chance([jitter, latency], math.sqrt(phases) * self.deviation_s)

    @property
    def deviation_s(self) -> float:
        """Standard deviation of the time on the wire of the largest node: its MFPs are sums of
        Poissonian sizes, so Poissonian themselves, with the variance of their mean in bytes."""
        if self.scenario.fragments.sizes == "fixed":
            return 0.0
        return self.link.bytes_s(float(np.sqrt(self.meps * self.mfps.sum(axis=1).max())))

    @property
    def barrier(self) -> str:
        """The kind of barrier; by the clock there is none."""
        shift = self.scenario.shift
        return "none" if shift.change == "window" else shift.barrier

    @property
    def barriers(self) -> float:
        """In a round."""
        phases = self.scenario.shift.phases_per_barrier
        return 0.0 if self.barrier == "none" else self.slots / phases

    @property
    def in_step(self) -> bool:
        """Whether there is a barrier after each phase."""
        return self.barrier != "none" and self.scenario.shift.phases_per_barrier == 1

    @property
    def events(self) -> int:
        """In a round: each node builds as many multi-event packets as a phase has."""
        return self.packing * self.nodes * self.meps

    @property
    def bytes_a_round(self) -> int:
        """Payload that all nodes push in a round: each its MFPs to each node, itself included."""
        return int(self.mfps.sum()) * self.nodes * self.meps

    @property
    def processor_s(self) -> float:
        """Of a node in a round without barriers: writes and exchanges, sent and received."""
        messages = 2 * self.writes + EXCHANGES * self.meps
        return float(messages * (self.nodes - 1) * self.messages.cost_s)

    def _sum(self, time_s: Callable[[OnWire], float]) -> Times:
        """Over the writes of each node in a phase."""
        sizes, where = np.unique(self.mfps, return_inverse=True)
        each = np.array([time_s(self.link.message(int(size))) for size in sizes])
        total: Times = self.meps * each[where.reshape(self.mfps.shape)].sum(axis=1)
        return total

    def _at(self, rate_bps: int, count: NDArray[np.int64] | Times) -> Times:
        """Time of so many bytes; 0 where there is no limit."""
        time_s: Times = 8 * count / rate_bps if rate_bps else np.zeros(self.nodes)
        return time_s
