"""The course of a run: bins, and when and at which cost it recovers from faults."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daqloom.results.course import MOST_BINS, Bins, Break, fault_metrics, series
from daqloom.results.recovery import Bin


def a_second_each(*throughputs_bps: float) -> list[Bin]:
    return [Bin(s, s + 1, float(bps)) for s, bps in enumerate(throughputs_bps)]


def broken(name: str, begin_s: float, **more: object) -> Break:
    return Break(name, "unit", "2", "down", begin_s, **more)  # type: ignore[arg-type]


def test_an_amount_is_spread_over_the_bins_of_its_time() -> None:
    bins = Bins(0.5)
    bins.add(0.25, 1.25, 8)  # a quarter of it before 0.5 s, half before 1 s, a quarter after it
    bins.add(1.5, 1.5, 3)  # in no time
    assert [each.throughput_bps for each in bins.rates(2.0)] == [4, 8, 4, 6]
    assert bins.rates(0.9, factor=8) == [Bin(0, 0.5, 32)]
    assert bins.rates(2.6)[-1] == Bin(2.0, 2.5, 0)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 5), st.integers(0, 10**6)), min_size=1))
def test_bins_of_any_width_keep_the_amount(added: list[tuple[float, float, int]]) -> None:
    bins = Bins(0.004)
    for begin_s, length_s, amount in added:
        bins.add(begin_s, begin_s + length_s, amount)
    rates = bins.rates(200)
    assert len(bins.rates(max(begin + length for begin, length, _ in added))) <= MOST_BINS
    total = sum(each.throughput_bps * (each.end_s - each.begin_s) for each in rates)
    assert total == pytest.approx(sum(amount for _, _, amount in added), abs=1e-3)


def test_a_fault_counts_the_events_lost_until_the_next_fault() -> None:
    breaks = [
        broken("flapping", 1.0, lost_before=0, detected_s=1.5, end_s=2.0),
        broken("two", 3.0, lost_before=10, detected_s=3.25),
        broken("two", 3.0, lost_before=10, detected_s=3.75),
        broken("flapping", 5.0, lost_before=40, end_s=6.0),
    ]
    found = fault_metrics(breaks, [], [], 9.0, lost=41)
    assert found == {
        "faults_begun": 4,
        "faults_detected": 3,
        "faults_recovered": 0,
        "fault_detection_s": {"flapping": 0.5, "two": 0.5},  # of 0.25 and 0.75
        "fault_events_lost": {"flapping": 10 + 1, "two": 30},
    }
    none = dict.fromkeys(("faults_begun", "faults_detected", "faults_recovered"), 0)
    assert fault_metrics([], [], [], 9.0, lost=5) == none


def test_series_list_the_begin_detection_and_end_of_faults() -> None:
    breaks = [broken("a", 1.0, detected_s=1.5, end_s=3.0), broken("b", 2.0)]
    told = series(breaks, a_second_each(5, 6), [(0.0, 4), (1.6, 0)])
    assert told["faults"] == {
        "time_s": [1.0, 1.5, 2.0, 3.0],
        "name": ["a", "a", "b", "a"],
        "what": ["unit"] * 4,
        "which": ["2"] * 4,
        "how": ["down"] * 4,
        "change": ["begins", "detected", "begins", "ends"],
    }
    assert told["throughput"] == {"begin_s": [0, 1], "end_s": [1, 2], "throughput_bps": [5.0, 6.0]}
    assert told["members"] == {"time_s": [0.0, 1.6], "members": [4, 0]}
    empty = series([], [], [])
    assert empty["throughput"] == {"begin_s": [], "end_s": [], "throughput_bps": []}
    assert "faults" not in empty
