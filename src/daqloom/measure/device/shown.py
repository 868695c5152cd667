"""What a device has and has counted, for people to look at."""

from pathlib import Path
from typing import Any

from daqloom.measure.device.document import load_device
from daqloom.measure.device.found import configuring, counting


def device_shown(path: Path) -> dict[str, dict[str, Any]]:
    """Return by port what its buffer is and what it has counted, by name. Raises ScenarioError and
    MeasureError."""
    device, source = load_device(path), str(path)
    found: dict[str, dict[str, Any]] = {port: {} for port in device.ports}
    if (sets := configuring(device, source)) is not None:
        with sets:
            for port, buffer in sets.applied().items():
                found[port] |= buffer.given
    if (counts := counting(device, source)) is not None:
        with counts:
            for port, count in counts.read().items():
                found[port] |= {
                    name: value for name, value in vars(count).items() if value is not None
                }
    return found
