"""The search of the rate that the switch forwards without loss."""

import json
import random
import subprocess
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from support.softswitch.switches import DAQLOOM

pytest.importorskip("daqloom._switch", reason="daqloom was built without DPDK")
pytest.importorskip("MLRsearch", reason="the Python package MLRsearch is not installed")

from daqloom.softswitch.benchmark import Throughput, search


def forwards(most_hz: float, can_send_hz: float = 1e9):
    """A switch that forwards so much and loses the rest, and a generator that sends so much."""

    def run(load_hz: float, duration_s: float) -> SimpleNamespace:
        intended = round(load_hz * duration_s)
        offered = min(intended, round(can_send_hz * duration_s))
        forwarded = min(offered, round(most_hz * duration_s))
        return SimpleNamespace(
            intended=intended,
            offered=offered,
            missed=offered - forwarded,
            forwarded=forwarded,
            duration_s=duration_s,
            away_s=0.0,
        )

    return run


DESCRIPTORS = 512


def paused(most_hz: float, pauses_s: Callable[[float], list[float]]):
    """Return a switch whose core is taken away for each of these times in a trial of a length:
    what comes meanwhile and finds no descriptor is lost."""
    without = forwards(most_hz)

    def run(load_hz: float, duration_s: float) -> SimpleNamespace:
        result, pauses = without(load_hz, duration_s), pauses_s(duration_s)
        lost = sum(max(0, round(load_hz * pause) - DESCRIPTORS) for pause in pauses)
        result.forwarded = max(0, result.forwarded - lost)
        result.missed = result.offered - result.forwarded
        result.away_s = sum(pauses)
        return result

    return run


@pytest.mark.parametrize("most_hz", [1.3e6, 42e6])
def test_the_highest_load_without_loss_is_found(most_hz: float) -> None:
    found = search(forwards(most_hz), 64, seconds=10)
    assert 0.97 * most_hz <= found.forwarded_hz <= most_hz
    assert found.wire_bps == pytest.approx(8 * 84 * found.forwarded_hz)
    assert not any(trial.rejected for trial in found.trials)
    assert found.document()["frame_rate_hz"] == found.forwarded_hz


def test_a_trial_that_sends_too_little_is_repeated_and_counts_as_loss() -> None:
    found = search(forwards(42e6, can_send_hz=5e6), 64, seconds=10)
    assert 0.97 * 5e6 <= found.forwarded_hz <= 5.01e6
    rejected = [trial for trial in found.trials if trial.rejected]
    assert rejected
    assert all(trial.load_hz > 5e6 for trial in rejected)


def timed(run, clock: list[float]):
    """A run that takes its time, and a tenth more."""

    def takes(load_hz: float, duration_s: float) -> SimpleNamespace:
        clock[0] += 1.1 * duration_s
        return run(load_hz, duration_s)

    return takes


@pytest.mark.parametrize("seconds", [1.0, 15.0, 60.0])
@pytest.mark.parametrize("width", [0.02, 0.001])
def test_a_search_keeps_to_its_time(seconds: float, width: float) -> None:
    clock = [0.0]
    run = timed(forwards(42e6, can_send_hz=60e6), clock)
    found = search(run, 64, seconds=seconds, width=width, clock=lambda: clock[0])
    assert clock[0] <= seconds + 0.1 * 0.5
    assert 0.9 * 42e6 <= found.forwarded_hz <= 42e6
    assert found.is_lower_bound == bool(found.reason)


def test_a_search_whose_time_is_up_has_a_lower_bound() -> None:
    clock = [0.0]

    def run(load_hz: float, duration_s: float) -> SimpleNamespace:
        clock[0] += 1.0  # the switch takes long to drain
        return forwards(42e6, can_send_hz=60e6)(load_hz, duration_s)

    found = search(run, 64, seconds=5, clock=lambda: clock[0])
    assert len(found.trials) == 5
    assert found.reason == "the time was up: a lower bound"
    # That which was forwarded of loads up to the rate, above which some was lost.
    assert found.forwarded_hz == pytest.approx(
        max((trial.load_hz for trial in found.trials if trial.load_hz <= 42e6), default=0)
    )


def test_a_search_on_a_busy_machine_ends_with_the_reason() -> None:
    """The generator is held up in all trials but each seventh."""
    count = iter(range(1000))

    def run(load_hz: float, duration_s: float) -> SimpleNamespace:
        share = 1.0 if next(count) % 7 in (0, 1) else 0.7
        return forwards(42e6, can_send_hz=share * min(load_hz, 60e6))(load_hz, duration_s)

    found = search(run, 64, seconds=60)
    held_up = sum(trial.was_held_up for trial in found.trials)
    assert len(found.trials) < 30
    assert 2 * held_up >= len(found.trials)
    assert found.reason.startswith(
        f"{held_up} of {len(found.trials)} trials prove no limit because this machine was busy"
    )
    assert found.reason.endswith(": a lower bound")
    assert found.document()["is_lower_bound"]


@pytest.mark.parametrize("loss_ratio", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(10))
def test_a_switch_whose_core_is_taken_away_has_no_firm_rate(seed: int, loss_ratio: float) -> None:
    """Others take the core in time slices of 1 to 8 ms, in most trials; now and then in none."""
    source = random.Random(seed)
    share = source.uniform(0.05, 0.6)

    def slices(duration_s: float) -> list[float]:
        count = 0 if source.random() < 0.2 else round(duration_s * share / 4.5e-3)
        return [source.uniform(1e-3, 8e-3) for _ in range(count)]

    found = search(paused(4e6, slices), 64, seconds=60, loss_ratio=loss_ratio)
    assert found.is_lower_bound
    assert found.forwarded_hz <= 4e6 / (1 - loss_ratio)
    assert f"{found.away_share:.1%}" in found.reason
    assert f"load average {found.load_average:.1f}" in found.reason
    document = found.document()
    assert document["cores_away_share"] == found.away_share
    assert document["load_average"] == found.load_average


def test_pauses_that_are_short_or_in_every_third_trial_leave_the_rate_firm() -> None:
    """50 us each, for a thousandth of the time: no descriptor is short."""
    run = paused(4e6, lambda duration_s: [5e-5] * round(duration_s * 20))
    found = search(run, 64, seconds=60)
    assert not found.is_lower_bound
    assert 0.97 * 4e6 <= found.forwarded_hz <= 4e6
    count = iter(range(10_000))
    run = paused(4e6, lambda _: [4e-3] if next(count) % 3 == 0 else [])
    found = search(run, 64, seconds=60)
    assert any(trial.was_held_up for trial in found.trials)
    assert not found.is_lower_bound
    assert 0.97 * 4e6 <= found.forwarded_hz <= 4e6


@pytest.mark.process
def test_the_real_switch_is_measured() -> None:
    done = subprocess.run(
        [
            *(*DAQLOOM, "switch", "benchmark", "--seconds", "5", "--destinations", "12"),
            *("--loss", "0.5", "--width", "0.5", "--json", "--quiet"),
            *("--soak", "2.5"),
        ],
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    trials = told["trials"]
    assert trials
    for trial in trials:
        # Whatever the machine does: frames are forwarded, missed or dropped, and none is invented.
        assert 0 <= trial["forwarded"] <= trial["offered"] - trial["missed"]
    assert any(trial["forwarded"] > 0 for trial in trials)
    soak = told["soak"]
    if soak is None:  # nothing was forwarded without loss on a busy machine
        assert told["is_lower_bound"]
        return
    assert soak["load_hz"] == pytest.approx(0.9 * told["frame_rate_hz"])
    assert soak["changes"] == 2
    assert 0 < soak["forwarded"] <= soak["offered"] - soak["missed"]


def test_a_result_is_a_document_with_the_rate_or_loss() -> None:
    told = json.loads(json.dumps(Throughput(64, 0.0, 1e6).document()))
    assert told["wire_rate_bps"] == 672e6
    assert search(forwards(0.0), 64, seconds=10).forwarded_hz == 0.0
    # At 1.25 million offered a fifth is lost, and a million comes through.
    lossy = search(forwards(1e6), 64, seconds=10, loss_ratio=0.2)
    assert 0.97e6 <= lossy.forwarded_hz <= 1.001e6
    highest = max(trial.load_hz for trial in lossy.trials if trial.forwarded >= 0.8 * trial.offered)
    assert 0.97 * 1.25e6 <= highest <= 1.25e6
