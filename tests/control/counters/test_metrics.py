"""Latency histograms of units, merged."""

from hypothesis import given
from hypothesis import strategies as st

from daqloom._engine import Counters, latency_bucket
from daqloom.control.counters.metrics import latencies, merge, metrics, percentiles


def bucket_of(duration_s: float) -> int:
    """Bucket of a duration, by bisection."""
    low, high = 0, 960
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if latency_bucket(middle)[0] <= duration_s else (low, middle)
    return low


def test_counters_are_separate_from_histograms() -> None:
    buckets = {"building_bucket.17": 2, "building_bucket.5": 1, "building_bucket.6": 0}
    counted = Counters({"phases": 3, **buckets, "wrong.sizes": 4})
    assert counted.numbers == {"phases": 3, "wrong.sizes": 4}
    assert counted.plain == {"phases": 3}
    assert list(counted.building.items()) == [(5, 1), (17, 2)]
    assert counted.in_barrier == {}


durations = st.lists(st.floats(1e-9, 100), min_size=1, max_size=50)


@given(durations, durations)
def test_percentiles_of_several_units_are_those_of_all_durations(first, second) -> None:
    def counted(all_s: list[float]) -> dict[int, int]:
        found: dict[int, int] = {}
        for each in all_s:
            found[bucket_of(each)] = found.get(bucket_of(each), 0) + 1
        return found

    found = percentiles(merge([counted(first), counted(second)]))
    every = sorted(first + second)
    for name, share in (("p50", 0.50), ("p99", 0.99)):
        exact = every[-(-len(every) * round(100 * share) // 100) - 1]
        assert abs(found[name] - exact) <= exact / 32 * (1 + 1e-9) + 1e-12
    assert every[-1] <= found["max"] * (1 + 1e-9)
    assert found["max"] <= every[-1] * (1 + 1 / 16) * (1 + 1e-9) + 1e-12


def test_metrics_have_the_percentiles_of_the_window() -> None:
    bucket = bucket_of(0.001)
    lowest, width = latency_bucket(bucket)
    unit = {f"building_bucket.{bucket}": 4, "building_s": 0.004, "meps_delivered": 4}
    other = {**unit, f"in_barrier_bucket.{bucket}": 1}
    found = metrics({0: Counters(unit), 1: Counters(other)}, packing=1)
    assert found["collection_latency_s"] == {
        "mean": 0.001,
        "p50": lowest + width / 2,
        "p99": lowest + width / 2,
        "max": lowest + width,
    }
    assert found["barrier_s"]["p50"] == lowest + width / 2


def test_the_skew_of_phases_is_between_the_least_and_the_longest_wait() -> None:
    waits = {0: (1.0, 10), 1: (4.0, 20), 2: (0.0, 0)}
    counted = {unit: Counters({"in_barrier_s": s, "barriers": n}) for unit, (s, n) in waits.items()}
    found = metrics(counted, packing=1)["barrier_s"]
    assert found == {"whole": 5 / 30, "least": 1 / 10, "most": 4 / 20}


def test_invalid_buckets_have_no_percentiles() -> None:
    strange = ("99999", "x", "7x", "", "-1", "²")
    counted = Counters({f"building_bucket.{bucket}": 1 for bucket in strange})
    assert latencies([Counters(), counted]) == {}
    assert percentiles({}) == {}
