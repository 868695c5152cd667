"""What the closed forms of each protocol on a fabric answer with."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from daqloom.analyse.condition import Condition
from daqloom.analyse.fabric_link import OnWire
from daqloom.analyse.fabric_messages import Messages
from daqloom.analyse.fabric_traffic import Traffic
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.models import Scenario
from daqloom.topology.system import check_paths


class Answer(NamedTuple):
    """The answer of a protocol's closed forms."""

    metrics: dict[str, Any]
    analysis: dict[str, dict[str, Any]]
    conditions: dict[str, list[Condition]]
    """Conditions, by the entry of `analysis` that they belong to."""


def check_connected(scenario: Scenario, traffic: Traffic) -> None:
    """Raise ScenarioError where a node cannot reach another."""
    check_paths(scenario.name, traffic.paths, traffic.hosts, traffic.hosts)


def rates_hz(scenario: Scenario, events: int, busy: Mapping[str, float]) -> dict[str, float]:
    """Return the rate at which each part saturates: events divided by its busy time, if it has any.
    Raises ScenarioError where nothing limits the rate."""
    rates = {name: events / time_s for name, time_s in busy.items() if time_s > 0}
    if not rates.keys() - {"output_buffer"}:
        raise ScenarioError(
            f"{scenario.name}: a single node sends nothing over the network, so nothing limits "
            "its rate; set more nodes, or hosts.local_rate"
        )
    return rates


def written(rate_hz: float, throughput_bps: float) -> dict[str, float]:
    """Return the rates of fragments written, which in the long term equal those of events built."""
    return {"written_event_rate_hz": rate_hz, "written_throughput_bps": throughput_bps}


def of_network(
    messages: Messages, traffic: Traffic, largest: OnWire, bounds: dict[str, float]
) -> dict[str, dict[str, Any]]:
    """Return the entries of `analysis` that are the same for every protocol. `largest`: message."""
    link = messages.link
    payload, credits_s = 8 * largest.payload, link.credits_s(largest)
    rates_bps = {
        "payload_bps": payload / max(link.wire_s(largest), credits_s),
        "headers_bps": payload / link.bytes_s(largest.bytes),
    }
    return {
        "link": rates_bps | ({"credits_bps": payload / credits_s} if credits_s else {}),
        "message": {"value_s": messages.sent_s(messages.control, float(traffic.farthest))},
        "rate_bounds_hz": bounds,
    }
