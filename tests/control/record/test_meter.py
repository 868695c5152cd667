"""Meter of a run: bins that add up to the counters of units that report at any time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom._engine import latency_bucket
from daqloom.control.protocol.states import Phase
from daqloom.control.record.meter import KEPT, Meter, present
from support.recorded_runs import Totals


def test_a_count_between_two_reports_is_divided_at_the_end_of_a_bin():
    run = Totals(1)
    meter = Meter(run, packing=10)
    run.set(0, meps_delivered=8, elapsed_s=0.8)
    meter.count(0.8, 0)
    assert list(meter.close(0.9)) == []
    run.set(0, meps_delivered=12, elapsed_s=1.2)  # 10 MEPs a second
    meter.count(1.2, 0)
    (closed,) = meter.close(1.2)
    assert (closed.begin_s, closed.width_s) == (0.0, 1.0)
    assert closed.run["events"] == pytest.approx(100)
    assert closed.units[0]["events"] == pytest.approx(100)
    assert closed.run["unit_s"] == pytest.approx(1.0)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.floats(0.01, 1.5), st.integers(0, 1000)),
        min_size=1,
        max_size=60,
    )
)
def test_bins_add_up_to_the_counters_whenever_units_report(reports):
    run = Totals(3)
    meter = Meter(run, packing=2)
    totals, now_s, bins = [0, 0, 0], 0.0, []
    for unit, later_s, more in reports:
        now_s += later_s
        totals[unit] += more
        run.set(unit, meps_delivered=totals[unit])
        meter.count(now_s, unit)
        bins += meter.close(now_s)
    bins += meter.close(now_s, at_once=True)
    assert sum(each.run["events"] for each in bins) == pytest.approx(2 * sum(totals))
    ends = [each.begin_s + each.width_s for each in bins]
    assert [each.begin_s for each in bins] == pytest.approx([0.0, *ends[:-1]])
    for number in range(3):
        of_unit = sum(each.units[number]["events"] for each in bins)
        assert of_unit == pytest.approx(2 * totals[number])


def test_a_silent_member_delays_a_bin_for_a_second_at_most():
    run = Totals(2)
    meter = Meter(run, packing=1)
    run.set(0, meps_delivered=30)
    meter.count(1.5, 0)
    assert list(meter.close(1.9)) == []
    (closed,) = meter.close(2.0)
    assert closed.units[0]["events"] == pytest.approx(20)
    assert closed.units[1]["events"] == 0
    run.members = {0}
    assert list(meter.close(2.0)) == []  # the second bin has no report after its end
    meter.count(2.1, 0)
    assert len(list(meter.close(2.1))) == 1


def test_a_meter_begins_at_the_present_totals():
    run = Totals(1)
    run.set(0, meps_delivered=1_000_000, elapsed_s=50)
    meter = Meter(run, packing=1, now_s=50.0)
    run.set(0, meps_delivered=1_000_007, elapsed_s=51)
    meter.count(51.0, 0)
    (closed,) = meter.close(51.0)
    assert closed.begin_s == 50.0
    assert closed.run["events"] == 7


def test_events_of_a_gap_without_run_control_are_spread_over_it():
    run = Totals(2)
    for unit in (0, 1):
        run.set(unit, meps_delivered=100)
    run.phase = Phase.ATTACHING
    meter = Meter(run, packing=1, now_s=50.0, gap_end_s=64.0)
    assert list(meter.close(54.0)) == []
    run.phase = Phase.RUNNING
    run.set(0, meps_delivered=140)  # in 4 s
    meter.count(54.0, 0)
    assert list(meter.close(54.1)) == []
    run.set(1, meps_delivered=150)  # in 5 s
    meter.count(55.0, 1)
    run.set(0, meps_delivered=150)
    meter.count(55.0, 0)
    bins = list(meter.close(55.0))
    assert [each.begin_s for each in bins] == [50, 51, 52, 53, 54]
    assert [each.run["events"] for each in bins] == pytest.approx([20] * 5)


def test_a_unit_that_never_reports_after_a_gap_holds_up_no_bin_beyond_its_end():
    run = Totals(2)
    meter = Meter(run, packing=1, now_s=50.0, gap_end_s=54.0)
    run.set(0, meps_delivered=30)
    meter.count(53.0, 0)
    assert list(meter.close(53.9)) == []
    assert [each.begin_s for each in meter.close(54.0)] == [50, 51, 52]


def test_a_pause_of_the_run_control_is_one_bin():
    run = Totals(1)
    meter = Meter(run, packing=1)
    run.set(0, meps_delivered=5000)
    meter.count(500.0, 0)
    bins = list(meter.close(500.0))
    assert [each.width_s for each in bins] == [499.0, 1.0]
    assert [each.run["events"] for each in bins] == pytest.approx([4990, 10])


def test_waits_losses_and_fills_of_a_bin():
    run = Totals(2)
    meter = Meter(run, packing=100)
    waits = {"waiting_for_source_s": 0.1, "in_barrier_s": 0.2, "asking_s": 0.05}
    waits |= {"waiting_for_builder_s": 0.3, "waiting_for_consumer_s": 0.25}
    lost = {"meps_incomplete": 1, "meps_dropped": 2, "meps_discarded": 3, "meps_not_written": 4}
    buffers = {"output_buffer_bytes": 1000, "output_buffer_bytes_used": 900}
    disk = {"disk_free_bytes": 12}
    run.set(0, elapsed_s=1.0, **waits, **lost, **buffers, **disk)
    run.set(1, elapsed_s=1.0, disk_free_bytes=7, stream_buffer_bytes=10)
    run.counts = {"units_lost": 1, "regroupings": 2}
    run.balance.unfinished = 5
    for unit in (0, 1):
        meter.count(1.0, unit)
    (closed,) = meter.close(1.0)
    row = closed.units[0]
    assert row["wait_source_s"] == pytest.approx(0.1)
    assert row["wait_barrier_s"] == pytest.approx(0.2)
    assert row["wait_peer_s"] == pytest.approx(0.05 + 0.3 - 0.25)
    assert row["wait_consumer_s"] == pytest.approx(0.25)
    assert row["lost"] == 1000
    assert row["output_fill"] == 0.9
    assert "source_fill" not in row
    assert closed.units[1]["source_fill"] == 0
    total = closed.run
    assert [total[name] for name in ("incomplete", "dropped", "discarded", "not_written")] == [
        *(100, 200, 300, 400)
    ]
    assert (total["unfinished"], total["skipped"]) == (500, 0)
    assert (total["units_lost"], total["regroupings"]) == (1, 2)
    assert (total["disk_free_bytes"], total["output_fill"]) == (7, 0.9)
    rates, of_units = present([closed, *()])
    assert rates["wait_source"] == pytest.approx(0.05)  # of two units
    assert of_units[0]["wait_source"] == pytest.approx(0.1)
    assert (rates["lost_hz"], rates["discarded_hz"], rates["unfinished_hz"]) == (1500, 300, 500)


def test_fragments_alone_count_as_throughput():
    run = Totals(1)
    meter = Meter(run, packing=1)
    run.set(0, mfp_bytes_built=1000, mfp_bytes_taken=500, fragment_bytes_taken=400)
    meter.count(1.0, 0)
    (closed,) = meter.close(1.0)
    assert closed.run["bytes"] == closed.units[0]["bytes"] == pytest.approx(800)


def test_latencies_are_those_of_the_bin_alone():
    run = Totals(1)
    run.set(0, **{"building_bucket.100": 1000})
    meter = Meter(run, packing=1)
    run.set(0, **{"building_bucket.100": 1000, "building_bucket.300": 10})
    meter.count(1.0, 0)
    (closed,) = meter.close(1.0)
    lowest, width = latency_bucket(300)
    assert closed.run["latency_p50_s"] == closed.run["latency_p99_s"] == lowest + width / 2
    assert closed.run["latency_max_s"] == lowest + width
    meter.count(2.0, 0)
    (closed,) = meter.close(2.0)
    assert "latency_p50_s" not in closed.run


def test_present_rates_are_those_of_the_last_bins():
    run = Totals(1)
    meter = Meter(run, packing=1)
    assert present(meter.last) == ({}, {})
    for now in range(1, 11):
        run.set(0, meps_delivered=now**2, elapsed_s=now)
        meter.count(float(now), 0)
        list(meter.close(float(now)))
    rates, of_units = present(meter.last)
    assert rates["event_rate_hz"] == pytest.approx((10**2 - (10 - KEPT) ** 2) / KEPT)
    assert of_units[0]["event_rate_hz"] == rates["event_rate_hz"]
    run.phase = Phase.HALTING
    meter.count(11.0, 0)
    (closed,) = meter.close(11.0)
    assert (closed.phase, closed.run["members"]) == (Phase.HALTING, 0)
