"""Metrics of a laboratory's network, with the names of the simulation's metrics."""

from dataclasses import replace
from typing import Any

from daqloom.lab.balance import Balance
from daqloom.lab.kernel import UNSEEN_BYTES
from daqloom.lab.laboratory import LabCount, Laboratory
from daqloom.lab.network import LabNetwork
from daqloom.lab.validity import host_metrics, pressure_s
from daqloom.topology.fabric.links import means_by_kind, most_by_level


class Watch:
    """Watch of a laboratory's counters from construction on."""

    def __init__(self, laboratory: Laboratory) -> None:
        """Start counting. Raises MeasureError."""
        self._laboratory, self._waited_s = laboratory, pressure_s()
        self._begin = self.end = laboratory.begin()

    def metrics(self) -> dict[str, Any]:
        """Return the metrics from the start until now. Raises MeasureError."""
        self.end, now_s = self._laboratory.read(), pressure_s()
        waited_s = None if now_s is None or self._waited_s is None else now_s - self._waited_s
        found = lab_metrics(self._laboratory.network, self._begin, self.end)
        return {**found, **host_metrics(self.end, waited_s)}


def lab_metrics(network: LabNetwork, begin: LabCount, end: LabCount) -> dict[str, Any]:
    """Return the metrics of the network between two counts; peaks are from the second count."""
    counted = {
        name: replace(
            now,
            sent=now.sent - begin.ports[name].sent,
            sent_bytes=now.sent_bytes - begin.ports[name].sent_bytes,
            dropped=now.dropped - begin.ports[name].dropped,
        )
        for name, now in end.ports.items()
    }
    ports = [(queue, counted[queue.link.name]) for queue in network.queues]
    dropped = {queue.link.name: port.dropped for queue, port in ports if port.dropped}
    drops, sent = sum(dropped.values()), sum(port.sent for port in counted.values())
    busy = {
        queue.link: 8
        * (port.sent_bytes + UNSEEN_BYTES * port.sent)
        / (queue.rate_bps * end.watched_s)
        for queue, port in ports
    }
    of_each = {link.name: share for link, share in busy.items()}
    return {
        "buffer_peak_bytes": most_by_level(network.levels, end.peaks),
        "packets_dropped": drops,
        "drops_by_port": dropped,
        **({"drop_fraction": drops / (drops + sent)} if drops + sent else {}),
        "link_utilisation": {**means_by_kind(busy, busy.values()), **of_each},
    }


def balance_metrics(balance: Balance) -> dict[str, Any]:
    """Return metrics that describe the fates of all packets."""
    dropped = {where: count for where, count in balance.in_hosts.items() if count}
    found: dict[str, Any] = {"packets_unaccounted": balance.unaccounted}
    return {**found, "host_drops": dropped} if dropped else found
