"""Counters of a software switch for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from daqloom.base import lazy
from daqloom.softswitch.status import DROPS, PortStatus, RingStatus, SwitchStatus

with lazy.imports():
    from prometheus_client import core


OF_PORTS: dict[str, tuple[str, Callable[[PortStatus], float]]] = {
    "frames": ("Frames that came in by a port.", lambda port: port.frames["packets"]),
    "bytes": ("Bytes of frames that came in by a port.", lambda port: port.frames["bytes"]),
    "sent_frames": ("Frames given to a port's device.", lambda port: port.device_counts["sent"]),
    "missed_frames": ("Frames that a port's device could not take in.", lambda port: port.missed),
    "unlearned_frames": (
        "Frames whose source was not learned, as the port or the table was full.",
        lambda port: port.frames["not_learned"],
    ),
    "addresses": ("Addresses learned behind a port.", lambda port: port.addresses),
    "up": ("Whether a port's link is up.", lambda port: port.is_up),
}
OF_RINGS: dict[str, tuple[str, Callable[[RingStatus], float]]] = {
    "ring_packets": ("Packets that a ring holds.", lambda ring: ring.packets),
    "ring_peak_packets": (
        "Most packets that a ring has held.",
        lambda ring: ring.counts["peak_packets"],
    ),
    "ring_frames": ("Packets taken into a ring.", lambda ring: ring.counts["packets"]),
    "ring_dropped_frames": ("Packets dropped, as a ring was full.", lambda ring: ring.dropped),
}
GAUGES = frozenset({"addresses", "up", "ovsdb_up", "ring_packets", "ring_peak_packets"})


class SwitchCollector:
    """Collector of a software switch's metrics for the Prometheus client."""

    def __init__(self, read: Callable[[], SwitchStatus]) -> None:
        self._read = read

    def collect(self) -> Iterator[core.Metric]:
        """Yield the metrics; called at each scrape."""
        status = self._read()
        for name, (text, of_port) in OF_PORTS.items():
            yield _family(name, text, {(port.name,): of_port(port) for port in status.ports})
        yield _family(
            "dropped_frames",
            "Frames dropped, by cause.",
            {(port.name, cause): port.frames[cause] for port in status.ports for cause in DROPS},
            ("port", "cause"),
        )
        behind = "Frames dropped, as the core of their ring was behind with those of others."
        yield _family("behind_frames", behind, {(): status.loop["behind"]}, ())
        if status.ovsdb is not None:
            follows = "Whether the switch follows Open vSwitch's database."
            yield _family("ovsdb_up", follows, {(): not status.ovsdb.failure}, ())
        for name, (text, of_ring) in OF_RINGS.items():
            values = {(ring.name, ring.port): of_ring(ring) for ring in status.rings}
            yield _family(name, text, values, ("ring", "port"))


def _family(
    name: str, text: str, values: dict[Any, float], labels: tuple[str, ...] = ("port",)
) -> core.Metric:
    """Return a metric whose values belong to tuples of label values."""
    kind = core.GaugeMetricFamily if name in GAUGES else core.CounterMetricFamily
    family = kind(f"daqloom_switch_{name}", text, labels=labels)
    for of_labels, value in values.items():
        family.add_metric(of_labels, float(value))
    return family
