"""Statistics of a log whose truth is known: the default month on the `lhcb` fabric."""

from collections import Counter

import numpy as np
import pytest

from daqloom.faults.logs.read import read_logs
from daqloom.faults.statistics import intervals
from daqloom.faults.statistics.failure import Failure, FailureHistory, Period, failures_of
from daqloom.faults.statistics.generate import TEST, Truth, generate, write_periods, write_table
from daqloom.faults.statistics.links import Links
from daqloom.faults.statistics.periods import read_periods
from daqloom.faults.statistics.summary import ALL, MERGED, OUTSIDE, distinct, variants
from daqloom.scenario.dumps import shipped_fabrics
from daqloom.topology.formats.load import load_cabling


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory):
    """The default month on the `lhcb` fabric, written and read again."""
    folder = tmp_path_factory.mktemp("month")
    truth = Truth()
    links = Links(load_cabling(shipped_fabrics()["lhcb"])[0])
    drawn = generate(links.names, truth, 1)
    write_table(folder / "month.csv", drawn)
    write_periods(folder / "tests.txt", truth.periods)
    found = failures_of(read_logs([folder / "month.csv"]), links)
    tests = read_periods(folder / "tests.txt")
    return truth, links, drawn, found, variants(found, tests, 60, len(links.names))


def test_the_month_has_the_counts_of_lhcbs_poster(month) -> None:
    _, _, drawn, found, kinds = month
    assert not found.unpaired
    assert len(found.failures) == len(drawn) == len(kinds[ALL].failures) == 1933
    assert len(kinds[OUTSIDE].failures) == 1384
    assert kinds[ALL].causes[TEST] == 549
    assert sum(kinds[ALL].by_day.values()) == 1933


def test_drawn_failures_are_recovered_from_the_log(month) -> None:
    truth, links, drawn, _, kinds = month
    last = kinds[MERGED]
    # Each link's own count and downtime, to a millisecond for each failure.
    count, down_s = {}, {}
    for failure in drawn:
        count[failure.link] = count.get(failure.link, 0) + 1
        down_s[failure.link] = down_s.get(failure.link, 0) + failure.end_s - failure.begin_s
    for total in kinds[ALL].totals:
        assert total.failures == count[total.link]
        assert total.down_s == pytest.approx(down_s[total.link], abs=2e-3 * total.failures)
    # Repairs are log-normal: half outlast the median, a sixth what is a spread above it.
    half = last.durations.outlasting(truth.repair_median_s) or ()
    assert half[1:] == pytest.approx((0.5, 0.5), abs=0.1)
    spread_s = truth.repair_median_s * np.exp(truth.repair_spread)
    _, low, high = last.durations.outlasting(spread_s) or (1, 1, 0)
    assert low - 0.02 <= 0.1587 <= high + 0.02
    # Incidents come at a constant rate, failures of flapping links do not.
    assert last.intervals.fits[0].p_value > 0.01
    assert kinds[OUTSIDE].intervals.fits[0].p_value < 0.01
    # Links differ, with the variance of a gamma-distributed rate: 1 + mean / shape.
    mean = len(last.failures) / len(links.names)
    assert last.dispersion.index == pytest.approx(1 + mean / truth.link_shape, rel=0.35)
    assert last.dispersion.p_value < 1e-6


def test_equal_variants_are_fitted_once_and_samples_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No two variants of 5000 failures, one of each link, differ without test periods."""
    sizes: list[int] = []
    fitted = intervals._shape_and_scale

    def counted(values: intervals.Array, is_weibull: bool) -> tuple[float, float]:
        sizes.append(len(values))
        return fitted(values, is_weibull)

    monkeypatch.setattr(intervals, "_shape_and_scale", counted)
    begin_s = np.cumsum(np.random.default_rng(7).exponential(size=5001))
    failures = tuple(Failure(at_s, None, f"link {place}") for place, at_s in enumerate(begin_s))
    found = FailureHistory(failures, Period(0.0, float(begin_s[-1])), Counter())
    for variant in variants(found, tests=[], gap_s=1.0).values():
        assert [fit.name for fit in variant.intervals.fits] == ["exponential", "Weibull"]
    assert sizes.count(5000) == 2
    assert max(size for size in sizes if size != 5000) == intervals.MOST_FOR_TEST
    assert len(sizes) == 2 * (intervals.SAMPLES + 2)


def test_variants_that_count_the_same_are_one_unless_their_time_differs() -> None:
    day = Period(0, 86_400)
    once = FailureHistory((Failure(10, 20, "a"), Failure(5000, 5100, "b")), day, Counter())
    assert list(distinct(variants(once, [], 60))) == ["all = outside tests = flapping merged"]
    flapping = FailureHistory((*once.failures, Failure(5110, 5200, "b")), day, Counter())
    assert list(distinct(variants(flapping, [], 60))) == ["all = outside tests", MERGED]
    kinds = distinct(variants(flapping, [Period(0, 100)], 60))
    assert list(kinds) == [ALL, OUTSIDE, MERGED]
    assert [len(kind.failures) for kind in kinds.values()] == [3, 2, 1]
    found = FailureHistory((Failure(10, 20, "a"),), Period(0, 86_400), Counter())
    assert list(distinct(variants(found, [Period(100, 200)], 60))) == [
        ALL,
        "outside tests = flapping merged",
    ]
