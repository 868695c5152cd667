"""Percentiles of latencies from the merged histograms of all units."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from math import ceil

from daqloom._engine import Counters, latency_bucket

Buckets = dict[int, int]
"""Counts by bucket number, in ascending order."""

HISTOGRAMS: dict[str, Callable[[Counters], Buckets]] = {
    "collection_latency_s": lambda counted: counted.building,
    "barrier_s": lambda counted: counted.in_barrier,
}
"""Latency metrics and their histograms."""


def merged(all_of_them: Iterable[Buckets]) -> Buckets:
    """Merge several histograms into one."""
    found: Buckets = {}
    for buckets in all_of_them:
        for bucket, count in buckets.items():
            found[bucket] = found.get(bucket, 0) + count
    return dict(sorted(found.items()))


def percentiles(buckets: Buckets) -> dict[str, float]:
    """Return p50 and p99 (s), at the middle of their buckets, so within 3 %; and max, the end of
    the last bucket."""
    places = [latency_bucket(bucket) for bucket in buckets]
    if not places:
        return {}
    up_to = list(accumulate(buckets.values()))
    found = {}
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        rank = max(1, ceil(share * up_to[-1]))
        lowest, width = places[next(i for i, count in enumerate(up_to) if count >= rank)]
        found[name] = lowest + width / 2
    return {**found, "max": sum(places[-1])}


def latencies(counted: Sequence[Counters]) -> dict[str, dict[str, float]]:
    """Return percentiles by metric, from the counters of all units; metrics without counts are left
    out."""
    found = {
        metric: percentiles(merged(histogram(unit) for unit in counted))
        for metric, histogram in HISTOGRAMS.items()
    }
    return {metric: values for metric, values in found.items() if values}
