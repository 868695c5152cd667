"""The cost of a message between two nodes: processors, wires, and the polling delay. Let o be a
processor's time to send or receive a message, w the latency of an idle network and p the polling
delay. The receiver has processed the message m = 2·o + w + p after the send call (LogP's o and L:
Culler et al., PPoPP 1993). The cost of barriers depends on o, which counts N times at the master of
a centralised barrier."""

from dataclasses import dataclass
from typing import Self

from daqloom.analyse.fabric.link import Count, Link, OnWire
from daqloom.analyse.fabric.slowest import delay_of
from daqloom.scenario.schema.models import Scenario

OFFSET_BYTES = 8
"""Bytes of a size or an address in a message."""


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages between nodes whose processors are otherwise idle."""

    link: Link
    cost_s: float
    """o: processor time of a message (s)."""
    polling_s: float
    """p: mean wait until a polling processor sees a message (s)."""
    latency_s: float
    """Mean latency of software and adapter before the first packet of a message (s)."""
    control: OnWire
    """An empty message."""

    @classmethod
    def from_scenario(cls, scenario: Scenario) -> Self:
        """Return the messages of a scenario."""
        link = Link.from_scenario(scenario)
        hosts, control = scenario.hosts, link.message(scenario.building.control_size)
        latency_s = delay_of(hosts.latency).mean_s
        return cls(link, hosts.message_cost, hosts.polling_delay, latency_s, control)

    def sent_s(self, message: OnWire, switches: Count) -> Count:
        """Return m, the latency from the send call until the receiver has processed the message."""
        way_s = self.link.bytes_s(message.bytes) + self.link.way_s(message, switches)
        return 2 * self.cost_s + self.latency_s + way_s + self.polling_s

    def known_s(self, message: OnWire, switches: Count) -> Count:
        """Return the time until the sender has the acknowledge of a write from the receiver's
        adapter, without the write's time on the wire and without random latency."""
        there_s = self.cost_s + self.link.way_s(message, switches)
        answer = self.link.acknowledge
        back_s = self.link.way_s(answer, switches) + self.link.bytes_s(answer.bytes)
        return there_s + back_s + self.polling_s
