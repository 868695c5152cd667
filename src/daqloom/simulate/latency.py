"""Distribution of simulated durations, as metrics and as a series of buckets."""

from collections.abc import Mapping

from daqloom._engine import Histogram


def summary(durations: Histogram) -> dict[str, float]:
    """Return minimum, mean, percentiles and maximum (s); empty without recorded durations."""
    if durations.count == 0:
        return {}
    return {
        "min": durations.min_s,
        "mean": durations.mean_s,
        "p50": durations.quantile_s(0.5),
        "p99": durations.quantile_s(0.99),
        "max": durations.max_s,
    }


def summaries(durations: Mapping[str, Histogram]) -> dict[str, float]:
    """Return the summaries of several distributions, by name: `NAME.mean`, …"""
    return {
        f"{name}.{which}": value
        for name, each in durations.items()
        for which, value in summary(each).items()
    }


def columns(durations: Histogram) -> dict[str, list[float]]:
    """Return the buckets with entries, as columns `lowest_s`, `width_s` and `count`."""
    names = ("lowest_s", "width_s", "count")
    return {name: getattr(durations.buckets, name).tolist() for name in names}
