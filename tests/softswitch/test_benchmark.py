"""The search of the rate that the switch forwards without loss."""

import json
import subprocess
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
        )

    return run


@pytest.mark.parametrize("most_hz", [1.3e6, 42e6])
def test_the_highest_load_without_loss_is_found(most_hz: float) -> None:
    found = search(forwards(most_hz), 64, seconds=10)
    assert 0.97 * most_hz <= found.forwarded_hz <= most_hz
    assert found.wire_bps == pytest.approx(8 * 84 * found.forwarded_hz)
    assert not any(trial.rejected for trial in found.trials)
    assert found.document()["frame_rate_hz"] == found.forwarded_hz


def test_with_some_loss_what_is_forwarded_counts() -> None:
    # At 1.25 million offered a fifth is lost, and a million comes through.
    lossy = search(forwards(1e6), 64, seconds=10, loss_ratio=0.2)
    assert 0.97e6 <= lossy.forwarded_hz <= 1.001e6
    highest = max(trial.load_hz for trial in lossy.trials if trial.forwarded >= 0.8 * trial.offered)
    assert 0.97 * 1.25e6 <= highest <= 1.25e6


def test_a_trial_that_sends_too_little_is_repeated_and_counts_as_loss() -> None:
    found = search(forwards(42e6, can_send_hz=5e6), 64, seconds=10)
    assert 0.97 * 5e6 <= found.forwarded_hz <= 5.01e6
    rejected = [trial for trial in found.trials if trial.rejected]
    assert rejected
    assert all(trial.load_hz > 5e6 for trial in rejected)


def test_nothing_is_said_of_a_switch_that_loses_at_any_load() -> None:
    assert search(forwards(0.0), 64, seconds=10).forwarded_hz == 0.0


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
    assert soak["load_hz"] == pytest.approx(0.9 * told["frame_rate_hz"])
    assert soak["changes"] == 2
    assert 0 < soak["forwarded"] <= soak["offered"] - soak["missed"]


def test_a_result_is_a_document() -> None:
    told = json.loads(json.dumps(Throughput(64, 0.0, 1e6).document()))
    assert told["wire_rate_bps"] == 672e6
