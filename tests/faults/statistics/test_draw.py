"""Faults of a simulation, drawn from a log."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from daqloom.deployment.fabric_system import fabric_system
from daqloom.deployment.scenarios import load
from daqloom.faults import FaultsError
from daqloom.faults.statistics.draw import SHORTEST_S, draw, law
from daqloom.faults.statistics.failure import Failure, Period
from daqloom.faults.statistics.summary import Variant
from support.command import commands

DAY_S = 86_400.0


def month(number: int = 3000, mean_s: float = 864.0, shape: float = 1.0) -> Variant:
    """Failures of links a and b, three of a for one of b, of 10 s and 100 s by turns; the times
    between them are Weibull with the mean."""
    random = np.random.default_rng(7)
    drawn = random.weibull(shape, number)
    begins = np.cumsum(drawn / drawn.mean() * mean_s)
    failures = tuple(
        Failure(float(at), float(at) + (10.0 if i % 2 else 100.0), "b" if i % 4 == 3 else "a")
        for i, at in enumerate(begins)
    )
    return Variant("", failures, Period(0.0, float(begins[-1])), 2)


def test_numbers_and_durations_are_those_of_the_log() -> None:
    """A second stands for 10^6 s, in which 1157 fail: 10^6 / 864. In 0.1 s that is 115.7 on
    average, over 50 seeds within four standard deviations of a Poisson law."""
    log = month()
    drawn = [draw(log, span_s=0.1, compress=1e6, seed=seed) for seed in range(50)]
    total = sum(map(len, drawn))
    # Some come while their link is down: 55 s of 864 s on average, three quarters of them for a.
    busy = 55 / 864 * (0.75**2 + 0.25**2)
    expected = 50 * 0.1 * 1e6 / 864 * (1 - busy)
    assert total == pytest.approx(expected, abs=4 * expected**0.5 + 0.02 * expected)
    links = Counter(each.link for of_seed in drawn for each in of_seed)
    assert links["a"] / total == pytest.approx(0.75, abs=4 * (0.75 * 0.25 / total) ** 0.5 + 0.01)
    lasts = Counter(round(each.lasts_s * 1e6) for of_seed in drawn for each in of_seed)
    assert set(lasts) == {10, 100}
    assert lasts[10] / total == pytest.approx(0.5, abs=4 * 0.5 / total**0.5)


def test_bursts_are_drawn_as_bursts_and_too_many_or_few_failures_are_refused() -> None:
    bursts = month(shape=0.5)
    assert law(month()).name == "exponential"
    assert law(bursts).name == "Weibull"
    assert law(bursts).shape == pytest.approx(0.5, rel=0.1)
    with pytest.raises(FaultsError, match="more than 256 failures"):
        draw(month(), span_s=10.0, compress=1e6)
    with pytest.raises(FaultsError, match="too few for a distribution"):
        draw(month(3), span_s=1.0, compress=1.0)


def test_a_link_that_is_down_does_not_fail_again_and_seeds_repeat() -> None:
    log = month(mean_s=30.0)
    drawn = draw(log, span_s=0.005, compress=1e6, seed=3)
    assert drawn == draw(log, span_s=0.005, compress=1e6, seed=3)
    assert drawn != draw(log, span_s=0.005, compress=1e6, seed=4)
    for link in "ab":
        own = [each for each in drawn if each.link == link]
        assert all(a.at_s + a.lasts_s <= b.at_s for a, b in pairwise(own))
    assert all(each.lasts_s >= SHORTEST_S for each in draw(log, span_s=1e-7, compress=1e11))


run = commands("faults").run


def test_the_scenario_that_is_written_has_the_failures(tmp_path: Path) -> None:
    log, out = tmp_path / "month.csv", tmp_path / "failing.toml"
    run("generate", "lhcb-10-percent", "-o", str(log))
    tests = str(tmp_path / "month.tests.txt")
    arguments = ["--log", str(log), "--tests", tests, "--compress", "1e6", "--span", "200 ms"]
    printed = run("draw", "lhcb-10-percent", *arguments, "-o", str(out), "--quiet")
    scenario = load(str(out))
    injected = scenario.faults.injected
    assert f"{len(injected)} failures" in printed
    assert len(injected) > 20
    system = fabric_system(scenario)
    found = system.fault_plan.outages
    assert {each.name for each in found} == set(injected)
    assert all(0 < each.begin_s < 0.2 and each.end_s > each.begin_s for each in found)
    again = tmp_path / "again.toml"
    run("draw", "lhcb-10-percent", *arguments, "-o", str(again), "--quiet")
    assert load(str(again)).faults == scenario.faults


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--compress", "0"], "--compress 0: expected a number"),
        (["--compress", "1e7", "--span", "soon"], "--span soon is not a time"),
    ],
)
def test_mistakes_are_refused_in_one_sentence(
    arguments: list[str], sentence: str, tmp_path: Path
) -> None:
    log = tmp_path / "month.csv"
    run("generate", "lhcb-10-percent", "-o", str(log))
    out = str(tmp_path / "failing.toml")
    printed = run("draw", "lhcb-10-percent", "--log", str(log), "-o", out, *arguments, code=2)
    assert sentence in " ".join(printed.split())
