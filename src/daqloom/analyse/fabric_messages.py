"""What a message between two nodes costs: processors, wires, and the delay of noticing it.

With o a processor's time for a message, w its way through an idle network and p the polling delay,
it has been taken in m = 2·o + w + p after it was asked for (LogP's o and L: Culler et al., PPoPP
1993). It is o that decides over barriers: at the master of a centralised one it counts N times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from daqloom.analyse.fabric_link import ACKNOWLEDGE, Count, Link, OnWire
from daqloom.analyse.fabric_slowest import host_latency

if TYPE_CHECKING:
    from daqloom.scenario.fabric import FabricScenario

OFFSET_BYTES = 8
"""Of a size or a place in a message."""


@dataclass(frozen=True, slots=True)
class Messages:
    """Between nodes whose processors have nothing else to do."""

    link: Link
    cost_s: float
    """o."""
    polling_s: float
    """p."""
    latency_s: float
    """Mean, of software and adapter, before a message's first packet."""
    control: OnWire
    """That says nothing but what it is."""

    @classmethod
    def of(cls, scenario: FabricScenario) -> Messages:
        """Those of a scenario."""
        nodes, link = scenario.nodes, Link.of(scenario)
        return cls(
            link,
            nodes.message_cost,
            nodes.polling_delay,
            host_latency(nodes).mean_s,
            link.message(nodes.control_size),
        )

    def sent_s(self, message: OnWire, switches: Count) -> Count:
        """m: from asking for a message until its receiver's processor has taken it in."""
        way_s = self.link.bytes_s(message.bytes) + self.link.way_s(message, switches)
        return 2 * self.cost_s + self.latency_s + way_s + self.polling_s

    def known_s(self, message: OnWire, switches: Count) -> Count:
        """What it takes, besides the time on the wire and random latency, until the sender knows
        that a write is where it belongs: the adapter of the other side acknowledges."""
        there_s = self.cost_s + self.link.way_s(message, switches)
        back_s = self.link.way_s(ACKNOWLEDGE, switches) + self.link.bytes_s(ACKNOWLEDGE.bytes)
        return there_s + back_s + self.polling_s
