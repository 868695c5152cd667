"""Percentiles of latencies from the merged histograms of all units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from math import ceil

from daqloom._engine import CounterName

BUCKET = CounterName.bucket
"""Separates a histogram's name from the number of its bucket in a counter's name; see
`_engine.latency_bucket`."""

HISTOGRAMS = {
    "collection_latency_s": CounterName.building_histogram,
    "barrier_s": CounterName.in_barrier_histogram,
}
"""Latency metrics and their histograms."""

Buckets = dict[int, int]
"""Counts by bucket number, in ascending order."""


def split(
    counters: Mapping[str, int | float],
) -> tuple[dict[str, int | float], dict[str, Buckets]]:
    """Split counters into plain ones and histograms by name."""
    numbers: dict[str, int | float] = {}
    histograms: dict[str, Buckets] = {}
    for name, value in counters.items():
        histogram, _, bucket = name.partition(BUCKET)
        if not bucket:
            numbers[name] = value
        elif bucket.isascii() and bucket.isdigit() and value > 0:
            histograms.setdefault(histogram, {})[int(bucket[:9])] = int(value)
    return numbers, {name: dict(sorted(found.items())) for name, found in histograms.items()}


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
    from daqloom._engine import latency_bucket

    try:
        places = [latency_bucket(bucket) for bucket in buckets]
    except ValueError:  # no unit of ours counts so
        return {}
    if not places:
        return {}
    up_to = list(accumulate(buckets.values()))
    found = {}
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        rank = max(1, ceil(share * up_to[-1]))
        lowest, width = places[next(i for i, count in enumerate(up_to) if count >= rank)]
        found[name] = lowest + width / 2
    return {**found, "max": sum(places[-1])}


def latencies(counted: Iterable[Mapping[str, int | float]]) -> dict[str, dict[str, float]]:
    """Return percentiles by metric, from the counters of all units; metrics without counts are left
    out."""
    units = [split(counters)[1] for counters in counted]
    found = {
        metric: percentiles(merged(unit.get(histogram, {}) for unit in units))
        for metric, histogram in HISTOGRAMS.items()
    }
    return {metric: values for metric, values in found.items() if values}
