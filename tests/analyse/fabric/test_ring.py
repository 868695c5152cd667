"""Nodes on a ring: what is known of them by hand, and closed forms against the ring played."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from daqloom.analyse.fabric.push import Push
from daqloom.analyse.fabric.ring import EQUAL_SHARES, MOST_TRANSFERS, Ring, ring_of
from daqloom.scenario.schema.distribution import Distribution
from daqloom.study.methods import methods
from support.small_fabrics import LATE, harmonic, metrics, small

T = 576e-6


def exponential(mean_s: float) -> Distribution:
    return Distribution.model_validate({"kind": "exponential", "mean": f"{mean_s:.9f} s"})


def ring(nodes: int, delay_s: float) -> Ring:
    """Equal nodes."""
    return Ring(np.full(nodes, T), 0.0, exponential(delay_s), Distribution())


# ---- shares --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("nodes", "delay_s"), [(2, 20e-6), (40, 20e-6), (321, 50e-6)])
def test_in_step_the_longest_of_all_delays_counts(nodes: int, delay_s: float) -> None:
    expected = T / (T + delay_s * harmonic(nodes))
    assert ring(nodes, delay_s).in_step_share() == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("nodes", [2, 10, 321])
def test_out_of_step_short_delays_leave_half_the_rate(nodes: int) -> None:
    # A node finds (N - 1)/N others at a builder, so it takes (2 N - 1)/N times as long.
    assert ring(nodes, 1e-9).out_of_step_share() == pytest.approx(nodes / (2 * nodes - 1), abs=1e-5)


def test_out_of_step_the_product_form_agrees_with_the_played_ring() -> None:
    # Nodes of three sizes; delays are long, so that it settles soon.
    work_s = np.repeat([0.84 * T, 0.99 * T, 1.17 * T], 7)
    uneven = Ring(work_s, 0.05 * T, exponential(300e-6), exponential(100e-6))
    played = np.mean(uneven._play(EQUAL_SHARES, 30.0)[1:])
    assert uneven.out_of_step_share() == pytest.approx(played, abs=0.004)


def test_builder_paced_nodes_wait_a_quarter_of_the_delay_and_more_writers_are_worse() -> None:
    # Derived where the ring is played: NodeRing.OfTwoServedInOrderEachWaitsAQuarterOfTheDelay.
    assert ring(2, 20e-6).paced_share(1) == pytest.approx(T / (T + 1.25 * 20e-6), abs=2e-4)
    found = [ring(108, 20e-6).paced_share(writers) for writers in (1, 2, EQUAL_SHARES)]
    # Two at a time as facts of the ring have it: engine/systems/ring/node_ring_test.cpp.
    assert found == pytest.approx([0.949, 0.54, 0.494], abs=0.015)


@pytest.mark.parametrize("delay_s", [1e-6, 20e-6, T, 10 * T])
def test_builder_paced_is_never_slower_than_in_step(delay_s: float) -> None:
    # No node waits for more than the slowest of the step before.
    work_s = np.repeat([0.84 * T, 0.99 * T, 1.17 * T], 7)
    uneven = Ring(work_s, 0.0, exponential(delay_s), Distribution())
    assert uneven.paced_share(1) >= uneven.in_step_share()
    assert ring(21, delay_s).paced_share(1) > ring(21, delay_s).in_step_share()


def test_a_measured_delay_acts_as_the_distribution_that_it_samples(tmp_path: Path) -> None:
    quantiles = (np.arange(1000) + 0.5) / 1000
    lines = [f"{-20 * math.log1p(-q):.6f} 1" for q in quantiles]
    (tmp_path / "late.txt").write_text("\n".join(lines) + "\n")
    jitter = Distribution(kind="histogram", file=str(tmp_path / "late.txt"))
    measured = replace(ring(40, 20e-6), jitter=jitter)
    for stretch in (1.0, 4.0):
        expected = ring(40, 20e-6).paced_share(1, stretch)
        assert measured.paced_share(1, stretch) == pytest.approx(expected, abs=0.003)
        expected = ring(40, 20e-6).out_of_step_share(stretch)
        assert measured.out_of_step_share(stretch) == pytest.approx(expected, abs=0.001)


def test_out_of_step_the_rate_falls_to_that_of_a_run_short_enough_to_be_played() -> None:
    late = ring(108, 20e-6)
    found = [late.share_at(time_s) or 0 for time_s in (2e-3, 50e-3, 2.0)]
    assert found[0] > found[1] > found[2]
    # At first nobody waits for the slowest, and few for each other.
    assert late.in_step_share() < found[0] < T / (T + 20e-6)
    assert found[2] == pytest.approx(late.out_of_step_share(), abs=0.03)
    assert ring(108, 20e-6).share_at(1.01 * MOST_TRANSFERS * T / 108) is None


# ---- where they cross ----------------------------------------------------------------------------


@pytest.mark.parametrize("delay_s", [1e-6, 20e-6])
def test_out_of_step_wins_from_a_delay_on_that_is_known(delay_s: float) -> None:
    # Many nodes: s = 1/(1 + H x) in step, x = j/T, and s/(1 - s) + s x = 1 out of step, where one
    # node per builder is there or waits: together 1 = x² (H² - H).
    nodes = 2000
    late = ring(nodes, delay_s)
    h = harmonic(nodes)
    expected = T / math.sqrt(h * (h - 1))
    assert late.wins_from_s(late.out_of_step_share) == pytest.approx(expected, rel=0.01)


def test_builder_paced_wins_at_any_delay_and_a_slower_schedule_at_none() -> None:
    late = ring(40, 20e-6)
    assert late.wins_from_s(lambda stretch: late.paced_share(1, stretch)) == 0
    assert late.wins_from_s(lambda stretch: 0.5 * late.in_step_share(stretch)) is None
    # A schedule with half of the rate wins where the longest delay is a transfer.
    half = late.wins_from_s(lambda stretch: 0.5)
    assert half == pytest.approx(T / harmonic(40), rel=0.005)


# ---- of a scenario -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "still",
    [
        {},
        {"building__jitter__mean": "5 us"},
        {**LATE, "building__change": "window", "building__window": "100 us"},
    ],
)
def test_without_random_jitter_or_by_the_clock_there_is_no_ring(still: dict[str, object]) -> None:
    found = methods.analyse(small(**still))
    assert found.metric("ring_share.in_step") is None
    assert "ring" not in found.analysis


def test_analysis_of_a_ring_names_the_best_share_and_the_crossings() -> None:
    found = methods.analyse(small(**LATE, building__barrier="ideal"))
    shares = metrics(found)
    # Four nodes whose transfers are those of 100 packets with a credit update each.
    transfer_s = (100 * (4096 + 26 + 8) + 20) * 8 / 200e9
    expected = transfer_s / (transfer_s + 2e-6 * harmonic(4))
    assert shares["ring_share.in_step"] == pytest.approx(expected, abs=1e-3)
    assert shares["ring_share.in_step"] < shares["ring_share.builder_paced"] < 1
    assert shares["ring_share.out_of_step"] < shares["ring_share.in_step"]
    entry = found.analysis["ring"]
    assert entry["best"] == "builder_paced"
    assert entry["best_share"] == shares["ring_share.builder_paced"]
    assert entry["builder_paced_from_s"] == 0
    assert entry["out_of_step_from_s"] > 2e-6
    (sentence,) = (text for text in found.warnings if not text.startswith("without effect"))
    assert "builder-paced wins" in sentence
    assert "builder-paced at any delay" in sentence
    assert "out of step from a mean delay of" in sentence
    one, other = (methods.analyse(small(**LATE)).metrics for _ in range(2))
    assert one == other
    assert ring_of(Push(small(**LATE, readout__units=1))) is None
