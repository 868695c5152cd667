"""Buffers and counters of a device's ports, prepared for display."""

from pathlib import Path
from typing import Any

from daqloom.device.document import load_device
from daqloom.device.registry import configuring, counting


def port_states(path: Path) -> dict[str, dict[str, Any]]:
    """Return limits and counters by port name. Raises ScenarioError and MeasureError."""
    device, source = load_device(path), str(path)
    found: dict[str, dict[str, Any]] = {port: {} for port in device.ports}
    if (sets := configuring(device, source)) is not None:
        with sets:
            for port, buffer in sets.applied().items():
                found[port] |= buffer.set_fields
    if (counts := counting(device, source)) is not None:
        with counts:
            for port, count in counts.read().items():
                found[port] |= {
                    key: value for key, value in vars(count).items() if value is not None
                }
    return found
