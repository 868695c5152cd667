"""A switch's counters for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from daqloom.softswitch.status import DROPS, SwitchStatus

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class SwitchCollector:
    """Collects the metrics of a switch."""

    def __init__(self, read: Callable[[], SwitchStatus]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; called at each scrape."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        status = self._read()
        of_port, of_ring = ["port"], ["ring", "port"]
        frames = CounterMetricFamily(
            "daqloom_switch_frames", "Frames that came in by a port.", labels=of_port
        )
        size = CounterMetricFamily(
            "daqloom_switch_bytes", "Bytes of frames that came in by a port.", labels=of_port
        )
        dropped = CounterMetricFamily(
            "daqloom_switch_dropped_frames", "Frames dropped, by cause.", labels=["port", "cause"]
        )
        sent = CounterMetricFamily(
            "daqloom_switch_sent_frames", "Frames given to a port's device.", labels=of_port
        )
        missed = CounterMetricFamily(
            "daqloom_switch_missed_frames",
            "Frames that a port's device could not take in.",
            labels=of_port,
        )
        unlearned = CounterMetricFamily(
            "daqloom_switch_unlearned_frames",
            "Frames whose source was not learned, as the port or the table was full.",
            labels=of_port,
        )
        addresses = GaugeMetricFamily(
            "daqloom_switch_addresses", "Addresses learned behind a port.", labels=of_port
        )
        up = GaugeMetricFamily("daqloom_switch_up", "Whether a port's link is up.", labels=of_port)
        for port in status.ports:
            frames.add_metric([port.name], port.frames["packets"])
            size.add_metric([port.name], port.frames["bytes"])
            sent.add_metric([port.name], port.device_counts["sent"])
            missed.add_metric([port.name], port.missed)
            unlearned.add_metric([port.name], port.frames["not_learned"])
            addresses.add_metric([port.name], port.addresses)
            up.add_metric([port.name], float(port.is_up))
            for cause in DROPS:
                dropped.add_metric([port.name, cause], port.frames[cause])
        yield from (frames, size, dropped, sent, missed, unlearned, addresses, up)
        yield CounterMetricFamily(
            "daqloom_switch_behind_frames",
            "Frames dropped, as the core of their ring was behind with those of others.",
            value=status.loop["behind"],
        )
        if status.ovsdb is not None:
            yield GaugeMetricFamily(
                "daqloom_switch_ovsdb_up",
                "Whether the switch follows Open vSwitch's database.",
                value=float(not status.ovsdb.failure),
            )
        held = GaugeMetricFamily(
            "daqloom_switch_ring_packets", "Packets that a ring holds.", labels=of_ring
        )
        peak = GaugeMetricFamily(
            "daqloom_switch_ring_peak_packets", "Most packets that a ring has held.", labels=of_ring
        )
        taken = CounterMetricFamily(
            "daqloom_switch_ring_frames", "Packets taken into a ring.", labels=of_ring
        )
        drops = CounterMetricFamily(
            "daqloom_switch_ring_dropped_frames",
            "Packets dropped, as a ring was full.",
            labels=of_ring,
        )
        for ring in status.rings:
            labels = [ring.name, ring.port]
            held.add_metric(labels, ring.packets)
            peak.add_metric(labels, ring.counts["peak_packets"])
            taken.add_metric(labels, ring.counts["packets"])
            drops.add_metric(labels, ring.dropped)
        yield from (held, peak, taken, drops)
