"""Desired state of a device, from the scenario's keys for the switch's packet buffer."""

from collections.abc import Collection

from daqloom.device.adapter import PortBuffer
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.links import FRAME_OVERHEAD_BYTES
from daqloom.scenario.schema.models import Scenario

KEYS = {
    "limit_bytes": "port_limit",
    "limit_packets": "queue_packets",
    "reserved_bytes": "dedicated",
    "shared_bytes": "buffer",
    "alpha": "alpha",
    "ecn_bytes": "ecn_threshold",
    "pace_bps": "pace",
}
"""Field of a port's buffer → key of network.switch.LEVEL."""
NO_LIMIT = frozenset({"limit_bytes", "limit_packets", "shared_bytes"})
"""Fields in which 0 means no limit."""


def desired_buffer(
    scenario: Scenario, level: str, ports: int, settable: Collection[str]
) -> PortBuffer:
    """Return the buffer of each of `ports` ports at a switch level, without defaults of the
    scenario. Raises ScenarioError for a key that is not `settable` on the device."""
    buffer = scenario.network.switch.at_level(level)
    given = {
        field: getattr(buffer, key) for field, key in KEYS.items() if key in buffer.model_fields_set
    }
    if buffer.buffer and given.keys() & {"reserved_bytes", "shared_bytes"}:
        given["reserved_bytes"] = buffer.dedicated // (buffer.ports or ports)
        given["shared_bytes"] = buffer.shared
    frame_bytes = scenario.network.mtu + FRAME_OVERHEAD_BYTES
    if buffer.port_limit and buffer.queue_packets * frame_bytes >= buffer.port_limit:
        given.pop("limit_packets", None)  # the limit in bytes is reached first
    for field, value in list(given.items()):
        if value == 0 and (field in NO_LIMIT or field not in settable):
            del given[field]  # no limit, or nothing to switch off
        elif field not in settable:
            able = ", ".join(sorted(key_of(each, level) for each in settable))
            raise ScenarioError(
                f"{key_of(field, level)} cannot be set on this device; its adapter sets {able}"
            )
    return PortBuffer(**given)


def key_of(field: str, level: str) -> str:
    """Return the scenario's key for a field of a port's buffer."""
    return f"network.switch.{level}.{KEYS[field]}"
