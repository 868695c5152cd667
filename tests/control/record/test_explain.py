"""Explanations of changes of rate whose causes are known."""

from dataclasses import replace

import numpy as np
import pytest

from daqloom.control.protocol.states import Phase
from daqloom.control.record.explain import explain
from daqloom.control.record.past import read_events, read_run
from daqloom.control.record.series import RUN, UNITS, read_series
from support.recorded_runs import entry, loss, record_of, second


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("DAQLOOM_RUNS", str(tmp_path))


def sentences(bins, events=(), at_s=300.0):
    folder = record_of(bins=bins, events=events)
    run, units = (read_series(folder, kind)[0] for kind in (RUN, UNITS))
    return explain(read_run(folder), run, units, list(read_events(folder)), at_s)


def steady(count=600, **more):
    return [second(begin, **more) for begin in range(count)]


def test_a_steady_run_has_no_cause():
    (only,) = sentences(steady())
    assert "the event rate hardly changed: 100 Hz, then 100 Hz" in only.sentence


def test_a_lost_unit_comes_first_and_the_recovery_is_found():
    bins = steady(310) + [
        second(begin, rate_hz=0, units=4, phase=Phase.PREPARING, members=0, epoch=2)
        for begin in range(310, 313)
    ]
    bins += [second(begin, members=3, epoch=2) for begin in range(313, 600)]
    events = [
        loss(309.8, 2, "unit 2 is lost: silent for 1.0 s"),
        loss(500.0, 3, "unit 3 is lost: later"),
    ]
    rate, first, *others = sentences(bins, events)
    assert "the event rate went from 100 Hz to 0 Hz, -100 %" in rate.sentence
    assert rate.sentence.endswith(":13")  # back at 313 s
    texts = [each.sentence for each in (first, *others)]
    assert any("unit 2 is lost: silent for 1.0 s" in text for text in texts[:2])
    assert any("epoch 1 became 2" in text for text in texts)
    assert not any("unit 3" in text for text in texts)
    assert [each.weight for each in (first, *others)] == sorted(
        (each.weight for each in (first, *others)), reverse=True
    )


def with_waits(closed, unit, **waits):
    """The bin in which one unit waits."""
    units = {**closed.units, unit: closed.units[unit] | waits}
    return replace(closed, units=units, run=closed.run | waits)


def test_the_unit_that_waits_for_its_source_is_named():
    bins = steady(310)
    for begin in range(310, 600):
        slow = second(begin, rate_hz=40.0, wait_barrier_s=0.5)
        slow = with_waits(slow, 3, wait_barrier_s=0.01, wait_source_s=0.9)
        bins.append(replace(slow, run=slow.run | {"wait_source_s": 0.92, "wait_barrier_s": 1.52}))
    found = [each for each in sentences(bins) if each.about == "waits"]
    barrier, source = found
    assert barrier.sentence.startswith("units waited for barriers 38% of the time, 0% before")
    assert "least unit 3 (1%)" in barrier.sentence
    assert source.sentence.startswith("units waited for their sources 23% of the time, 0% before")
    assert "most unit 3 (90%)" in source.sentence


def test_losses_buffers_and_disk_have_numbers():
    bins = [second(begin, output_fill=0.1, disk_free_bytes=5e9) for begin in range(300)]
    for begin in range(300, 600):
        full = second(begin, rate_hz=50, discarded=50.0, output_fill=1.0, disk_free_bytes=0.0)
        units = {
            number: row | {"output_fill": float(number == 1)} for number, row in full.units.items()
        }
        bins.append(replace(full, units=units))
    texts = "\n".join(each.sentence for each in sentences(bins))
    assert "events were discarded after it" in texts
    assert "output buffers filled from 10% to 100% (unit 1)" in texts
    assert "the disk had 0 B left, 5 GB before" in texts


def test_a_gap_in_the_series_is_the_run_controls_absence():
    bins = [each for each in steady() if not 300 <= each.begin_s < 340]
    texts = [each.sentence for each in sentences(bins)]
    assert any("no bins for 40 s: the run control was away" in text for text in texts)


def test_orders_of_the_operator_are_causes():
    bins = steady(300) + [second(begin, rate_hz=0) for begin in range(300, 400)]
    texts = [each.sentence for each in sentences(bins, [entry(300.2, "the operator wants a stop")])]
    assert "the operator wants a stop" in texts[1]


def test_the_death_of_a_run_control_is_a_cause():
    bins = steady(300) + [second(begin, rate_hz=10) for begin in range(300, 600)]
    text = "attaching: the run control replaces one that was running"
    assert text in sentences(bins, [entry(301.0, text)])[1].sentence


@pytest.mark.parametrize("seed", range(5))
def test_the_time_of_a_fall_is_found_in_noise(seed):
    rng = np.random.default_rng(seed)
    noisy = rng.normal(1.0, 0.1, 900)
    bins = [
        second(begin, rate_hz=noisy[begin] * (100 if begin < 420 else 55)) for begin in range(900)
    ]
    rate, *_ = sentences(bins, at_s=400.0)
    minute, seconds = rate.sentence.split(":")[1:3]
    assert abs(60 * int(minute) + int(seconds) - 420) <= 3


def test_an_empty_series_is_one_sentence():
    (only,) = sentences([])
    assert only.sentence.startswith("the series has no bin near")
