"""Inputs of the closed forms that are common to all building protocols on a fabric."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from daqloom.analyse.fabric.link import Link
from daqloom.analyse.fabric.messages import Messages
from daqloom.analyse.fabric.traffic import Traffic, traffic
from daqloom.deployment.fabric_system import check_paths
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario


@dataclass(frozen=True)
class View:
    """A fabric scenario's cables, paths and messages, as all building protocols use them."""

    scenario: Scenario

    @cached_property
    def messages(self) -> Messages:
        """The cost of messages."""
        return Messages.from_scenario(self.scenario)

    @property
    def link(self) -> Link:
        """The link model of a cable."""
        return self.messages.link

    @cached_property
    def traffic(self) -> Traffic:
        """Paths and slots of the fabric."""
        return traffic(self.scenario)

    def check_connected(self) -> None:
        """Raise ScenarioError where a node cannot reach another."""
        hosts = self.traffic.hosts
        check_paths(self.scenario.name, self.traffic.paths, hosts, hosts)

    def rates_hz(self, events: int, busy: Mapping[str, float]) -> dict[str, float]:
        """Return the event rate at which each resource saturates: `events` divided by the busy
        time. Idle resources are left out. Raises ScenarioError if nothing limits the rate."""
        rates = {name: events / time_s for name, time_s in busy.items() if time_s > 0}
        if not rates.keys() - {"output_buffer"}:
            raise ScenarioError(
                f"{self.scenario.name}: a single node sends nothing over the network, so nothing "
                "limits its rate; set more nodes, or hosts.local_rate"
            )
        return rates

    def of_network(self, largest: int, bounds: dict[str, float]) -> dict[str, dict[str, Any]]:
        """Return the `analysis` entries of all protocols. `largest`: largest message payload
        (B)."""
        message, link, messages = self.link.message(largest), self.link, self.messages
        payload, credits_s = 8 * message.payload, link.credits_s(message)
        rates_bps = {
            "payload_bps": payload / max(link.wire_s(message), credits_s),
            "headers_bps": payload / link.bytes_s(message.bytes),
        }
        farthest = float(self.traffic.farthest)
        return {
            "link": rates_bps | ({"credits_bps": payload / credits_s} if credits_s else {}),
            "message": {"value_s": messages.sent_s(messages.control, farthest)},
            "rate_bounds_hz": bounds,
        }


def rates_of(
    rate_hz: float, bound_hz: float, throughput_bps: float, readouts: int
) -> dict[str, float]:
    """Return the metrics for an event rate; in the long term, it is also the rate of writes."""
    return {
        "event_rate_hz": rate_hz,
        "event_rate_bound_hz": bound_hz,
        "throughput_bps": throughput_bps,
        "written_event_rate_hz": rate_hz,
        "written_throughput_bps": throughput_bps,
        "node_throughput_bps": throughput_bps / readouts,
    }
