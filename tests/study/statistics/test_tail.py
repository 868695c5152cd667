"""Levels an hour away from a minute of a fluid queue, and those of a long run.

`benchmarks/return_levels.py` is the full trial: 200 samples of eight queues.
"""

import importlib.util
import math
import sys
from types import ModuleType

import numpy as np
import pytest

from daqloom.study.statistics.gev import Gev, draw, quantile
from daqloom.study.statistics.tail import HALF_WIDTH, Tail, kept
from support.repository import ROOT

SAMPLES = 8


@pytest.fixture(scope="module")
def trial() -> ModuleType:
    """The benchmark."""
    path = ROOT / "benchmarks" / "return_levels.py"
    spec = importlib.util.spec_from_file_location("return_levels_trial", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks itself up
    spec.loader.exec_module(module)
    return module


def test_queues_are_served_first_come_first_served(trial: ModuleType) -> None:
    # Work of 2 s each: the second waits for the first, the third finds the queue empty.
    done = trial._departures_s(np.array([0.0, 1.0, 7.0]), np.array([2.0, 2.0, 2.0]))
    assert done.tolist() == [2.0, 4.0, 9.0]


def test_one_output_agrees_with_the_formula_of_pollaczek_and_khinchine(
    trial: ModuleType,
) -> None:
    # M/D/1 at load r: an event finds r / 2 / (1 - r) service times of work, then adds its own.
    fluid = trial.Fluid(500, 5e6, 1, 40e9, uplink_bps=1e15)
    assert fluid.load == pytest.approx(0.5)
    bins = [fluid.maxima(200.0, seed) for seed in range(3)]
    # Bins of 5 ms with exactly one event check the scale: 1 ms of service is 5 MB.
    least = min(found[found > 0].min() for found in bins)
    assert least == pytest.approx(5e6, rel=1e-6)
    # P(work > x) of M/D/1 falls by exp(-theta) a service time, r (e^theta - 1) = theta: 1.2564.
    found = np.concatenate(bins)
    tail = [np.mean(found > 5e6 * depth) for depth in (4, 7)]
    assert math.log(tail[0] / tail[1]) / 3 == pytest.approx(1.2564, rel=0.08)


@pytest.mark.parametrize(
    ("system", "true"),
    [
        ("5 MB × 3 kHz", 73.1e6),  # of 30 hours
        ("2 MB × 8 kHz", 31.7e6),  # of 20 hours
    ],
)
def test_a_minute_gives_the_level_of_an_hour(trial: ModuleType, system: str, true: float) -> None:
    found = [trial.sample(trial.SYSTEMS[system], 1000 + seed) for seed in range(SAMPLES)]
    for way in found[0]:
        judged = trial.judge(np.array([each[way] for each in found]), true)
        assert judged["numbers"] == 1.0
        # Binomial: of 8 intervals that hold with 0.95, fewer than 6 do once in 170 trials.
        assert judged["covered"] >= 6 / 8
        # One value scatters by 6 %, the median of 8 by 2.5 %; of 200 samples by 0.5 %.
        assert abs(judged["median_error"]) < 0.06
        assert judged["half_width"] < 0.17


@pytest.mark.parametrize(("shape", "least"), [(-0.2, 0.8), (-0.1, 0.9), (0.1, 0.8), (0.2, 0.8)])
def test_maxima_of_a_known_distribution_hold_its_level(shape: float, least: float) -> None:
    """Also, though less often, where the shape is one that queues rarely have."""
    known = Gev(100.0, 5.0, shape)
    random = np.random.default_rng(1)
    level = quantile(1 / 1000, known)
    found = [Tail(draw(known, 100, random)).levels(1 / 1000) for _ in range(60)]
    assert np.mean([low <= level <= high for low, _, high in found]) >= least


def test_a_level_is_that_of_an_upper_end_or_of_few_values() -> None:
    # Shape -0.5: the end is at mu + 2 sigma = 110; 1e-6 of the maxima lie within 0.01 of it.
    known = Gev(100.0, 5.0, -0.5)
    low, value, high = Tail(draw(known, 1000, np.random.default_rng(2))).levels(1e-6)
    assert value == pytest.approx(110.0, rel=0.01)
    assert low < 110.0 < high < 113.0
    chance = np.random.default_rng(1)
    for _ in range(60):
        maxima = chance.poisson(chance.uniform(0.1, 9), chance.integers(12, 200)).astype(float)
        low, value, high = Tail(maxima).levels(10.0 ** -chance.uniform(1, 6))
        assert low <= value <= high < np.inf


@pytest.mark.parametrize("count", [400, 2000])
def test_a_limit_that_many_maxima_reach_is_the_level(count: int) -> None:
    maxima = np.concatenate([np.linspace(1, 9, count // 2), np.full(count, 10.0)])
    assert Tail(maxima).levels(1e-3) == (10, 10, 10)
    above = Tail(np.append(maxima, 10.5)).levels(1e-3)
    assert 10 <= above.low <= above.value <= above.high


def test_levels_scale_with_the_data_whose_greatest_maxima_are_fitted() -> None:
    x = draw(Gev(50.0, 5.0, 0.0), 100, np.random.default_rng(4))
    assert Tail(1e6 * x).levels(1e-3) == pytest.approx(
        tuple(1e6 * level for level in Tail(x).levels(1e-3)), rel=1e-4
    )
    assert [kept(count) for count in (20, 144, 14400)] == [20, 144, 1440]
    x = draw(Gev(50.0, 5.0, 0.0), 4000, np.random.default_rng(5))
    moved = np.where(x < np.median(x), 0.5 * x, x)  # the lower half counts as being below only
    assert Tail(moved).levels(1e-4) == Tail(x).levels(1e-4)


def test_more_maxima_narrow_the_interval_as_predicted() -> None:
    random = np.random.default_rng(6)
    known = Gev(10.0, 2.0, 0.0)
    tail = Tail(draw(known, 40, random))
    assert tail.levels(1 / 3600).half_width > HALF_WIDTH
    times = tail.times_needed(1 / 3600)
    halves = [Tail(draw(known, 40 * times, random)).levels(1 / 3600).half_width for _ in range(5)]
    assert HALF_WIDTH / 2.5 < np.median(halves) < 1.2 * HALF_WIDTH
