"""Metrics of a device's ports, with the names of the simulation's metrics."""

from collections.abc import Mapping
from typing import Any

from daqloom.device.adapter import PortCount
from daqloom.device.under_test import DeviceUnderTest
from daqloom.results.errors import MeasureError


class DeviceWatch:
    """Watch of a device's counters from construction on."""

    def __init__(self, device: DeviceUnderTest) -> None:
        """Start counting. Raises MeasureError."""
        self._device, self._begin = device, device.begin()

    def metrics(self) -> dict[str, Any]:
        """Return the metrics from the start until now. Raises MeasureError."""
        return device_metrics(self._begin, self._device.read(), self._device.file.level)


def device_metrics(
    begin: Mapping[str, PortCount], end: Mapping[str, PortCount], level: str
) -> dict[str, Any]:
    """Return the metrics of ports between two readings; empty without counters. The switch's peak
    is the sum of its ports' peaks, an upper bound. Raises MeasureError if a counter has fallen."""
    if not end:
        return {}
    dropped = {port: _since(port, begin[port].dropped, end[port].dropped) for port in end}
    sent = sum(_since(port, begin[port].sent, end[port].sent) for port in end)
    drops = sum(dropped.values())
    found: dict[str, Any] = {
        "packets_dropped": drops,
        "drops_by_port": {port: count for port, count in dropped.items() if count},
    }
    if drops + sent:
        found["drop_fraction"] = drops / (drops + sent)
    peaks = [count.peak_bytes for count in end.values()]
    known = [peak for peak in peaks if peak is not None]
    if len(known) == len(peaks):
        found["buffer_peak_bytes"] = {level: sum(known)}
    return found


def _since(port: str, before: int, now: int) -> int:
    if now < before:
        raise MeasureError(
            f"{port}: a counter of the device fell from {before} to {now} during the measurement; "
            "it was cleared, or the device restarted"
        )
    return now - before
