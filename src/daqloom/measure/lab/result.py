"""The metrics of the network of a laboratory, under the names that a simulation gives them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from daqloom.measure.lab.kernel import UNSEEN_BYTES
from daqloom.measure.lab.laboratory import LabCount
from daqloom.measure.lab.network import LabNetwork, Queue


def lab_metrics(
    network: LabNetwork, begin: LabCount, end: LabCount, window_s: float
) -> dict[str, Any]:
    """Return the metrics of the `window_s` between two counts; peaks are those of the second."""
    counted = {
        name: replace(
            now,
            sent=now.sent - begin.ports[name].sent,
            sent_bytes=now.sent_bytes - begin.ports[name].sent_bytes,
            dropped=now.dropped - begin.ports[name].dropped,
        )
        for name, now in end.ports.items()
    }
    peaks: dict[str, int] = {}
    for level, peak in zip(network.levels, end.peaks, strict=True):
        peaks[level] = max(peak, peaks.get(level, 0))
    queues = list(network.queues)
    dropped = {
        queue.link.name: counted[queue.link.name].dropped
        for queue in queues
        if counted[queue.link.name].dropped
    }
    drops, sent = sum(dropped.values()), sum(port.sent for port in counted.values())
    busy = {
        queue.link.name: 8
        * (counted[queue.link.name].sent_bytes + UNSEEN_BYTES * counted[queue.link.name].sent)
        / (queue.rate_bps * window_s)
        for queue in queues
    }
    return {
        "buffer_peak_bytes": peaks,
        "packets_dropped": drops,
        "drops_by_port": dropped,
        **({"drop_fraction": drops / (drops + sent)} if drops + sent else {}),
        "link_utilisation": {**_means(queues, busy), **busy},
    }


def _means(queues: list[Queue], of_link: Mapping[str, float]) -> dict[str, float]:
    kinds: dict[str, list[float]] = {}
    for queue in queues:
        kinds.setdefault(queue.link.kind, []).append(of_link[queue.link.name])
    return {kind: sum(values) / len(values) for kind, values in kinds.items()}
