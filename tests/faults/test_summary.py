"""Statistics of link failures, against answers derived here and logs whose truth is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from daqloom.faults import FaultsError
from daqloom.faults.by_link import LinkTotal, by_link, dispersion, most_of
from daqloom.faults.change import Change, Outage, Port, Told
from daqloom.faults.durations import distribution
from daqloom.faults.failure import (
    Failure,
    Period,
    failures_of,
    joined,
    merged,
    outside,
    time_without,
)
from daqloom.faults.generate import TEST, Truth, generate, link_rates, write_periods, write_table
from daqloom.faults.intervals import intervals
from daqloom.faults.links import Links
from daqloom.faults.periods import period, read_periods
from daqloom.faults.read import read_logs
from daqloom.faults.summary import ALL, MERGED, OUTSIDE, variants
from daqloom.scenario.dumps import shipped_fabrics
from daqloom.topology.clos import folded_clos
from daqloom.topology.load import load_cabling

LINKS = [f"link {n}" for n in range(200)]


def told(*changes: tuple[float, str, str]) -> Told:
    found = Told()
    for at_s, node, state in changes:
        found.changes.append(Change(at_s, Port(node, "1"), state == "up"))
        found.seen(at_s)
    return found


def test_a_failure_lasts_from_down_to_up() -> None:
    found = failures_of(told((1, "a", "down"), (2, "b", "down"), (4, "a", "up")), Links())
    assert found.failures == (Failure(1, 4, "a port 1"), Failure(2, None, "b port 1"))
    assert found.observed == Period(1, 4)


def test_both_ends_of_a_cable_tell_one_failure() -> None:
    fabric = folded_clos("tree", leaves=2, spines=1, hosts_per_leaf=2, rate_bps=10**11)
    log = Told()
    for at_s, port, is_up in (
        (1, Port("leaf00", "3"), False),
        (1.1, Port("spine00", "1"), False),
        (5, Port("spine00", "1"), True),
        (5.2, Port("LEAF00", "3"), True),
        (6, Port("leaf9", "1"), False),
    ):
        log.changes.append(Change(at_s, port, is_up))
    found = failures_of(log, Links(fabric))
    assert [(f.begin_s, f.end_s) for f in found.failures] == [(1, 5)]
    assert found.failures[0].link == "leaf00 port 3 - spine00 port 1"
    assert found.unpaired == {"down twice": 1, "up twice": 1, "unknown port": 1}


def test_a_cable_is_known_by_its_ends_and_by_its_name() -> None:
    fabric = folded_clos("tree", leaves=2, spines=1, hosts_per_leaf=2, rate_bps=10**11)
    links = Links(fabric)
    assert len(links.names) == len(fabric.cables)
    for name in links.names:
        assert links.of(Port(name, "")) == name
        assert links.of(Port(" - ".join(reversed(name.split(" - "))), "")) == name
    host = fabric.hosts[0].name
    assert links.of(Port(host, "")) == links.of(Port(host, "1"))


def test_failures_told_as_a_whole_count_as_they_are() -> None:
    log = Told(outages=[Outage(5, 7, Port("a", ""), "dirty"), Outage(1, None, Port("b", ""))])
    assert failures_of(log, Links()).failures == (
        Failure(1, None, "b"),
        Failure(5, 7, "a", "dirty"),
    )


def test_of_a_flapping_link_failures_within_the_gap_are_one() -> None:
    apart = [Failure(0, 1, "a", "x"), Failure(3, 4, "a"), Failure(4.5, 9, "b"), Failure(7, 8, "a")]
    assert merged(apart, 2) == (
        Failure(0, 4, "a", "x", 2), Failure(4.5, 9, "b"), Failure(7, 8, "a"),
    )  # fmt: skip
    assert merged(apart, 3)[0] == Failure(0, 8, "a", "x", 3)
    assert merged([Failure(0, None, "a"), Failure(5, 6, "a")], 0) == (Failure(0, None, "a", "", 2),)


def test_failures_in_test_periods_are_left_out_and_so_is_their_time() -> None:
    tests = [Period(10, 20), Period(15, 30), Period(50, 60)]
    begins = (5, 10, 19, 29.9, 30, 55, 60)
    assert [f.begin_s for f in outside([Failure(at, at + 1, "a") for at in begins], tests)] == [
        5, 30, 60,
    ]  # fmt: skip
    assert joined(tests) == [Period(10, 30), Period(50, 60)]
    assert [time_without(at, joined(tests)) for at in (5, 10, 20, 30, 55, 70)] == [
        5,
        10,
        10,
        10,
        30,
        40,
    ]


def test_shares_of_durations_are_those_of_kaplan_and_meier() -> None:
    """Three end after 1, 2 and 4 s; one has lasted 3 s when the log ends: of four, 3/4 and 2/4 are
    left after 1 and 2 s, and of the one that is left then none after 4 s."""
    failures = [Failure(0, 1, "a"), Failure(0, 2, "a"), Failure(0, 4, "a"), Failure(1, None, "b")]
    found = distribution(failures, 4)
    assert found.duration_s.tolist() == [1, 2, 4]
    assert found.share == pytest.approx([1 / 4, 2 / 4, 1])
    assert found.outlasting(0.5)[0] == 1
    assert found.outlasting(3)[0] == pytest.approx(0.5)
    assert all(low <= share <= high for share, low, high in map(found.outlasting, (0, 1, 2, 4, 9)))


def test_where_all_have_ended_the_band_is_the_binomial_one() -> None:
    found = distribution([Failure(0, at, "a") for at in (1, 2, 3, 4, 5)], 9)
    exact = binomtest(0, 5).proportion_ci(0.95, "exact")
    assert found.outlasting(5) == pytest.approx((0, exact.low, exact.high))
    assert found.outlasting(0.1) == pytest.approx((1, 1 - exact.high, 1))


def test_bands_hold_the_truth_as_often_as_they_say() -> None:
    """Of 200 logs of 60 exponential durations, the band at the median holds 1/2 in 95 % (±3 σ)."""
    random = np.random.default_rng(1)
    held = 0
    for _ in range(200):
        ended = random.exponential(1 / np.log(2), 60)
        _, low, high = distribution([Failure(0, at, "a") for at in ended], 99).outlasting(1)
        held += low <= 0.5 <= high
    assert 0.95 - 3 * np.sqrt(0.95 * 0.05 / 200) <= held / 200


@pytest.mark.parametrize("shape", [0.5, 1.0, 1.8])
def test_intervals_are_fitted(shape: float) -> None:
    """Within four standard errors of the truth: shape ± 0.78 shape / √n (Bain 1978)."""
    random = np.random.default_rng(2)
    found = intervals(np.cumsum(100 * random.weibull(shape, 3000)))
    exponential, weibull = found.fits
    assert weibull.shape == pytest.approx(shape, abs=4 * 0.78 * shape / np.sqrt(3000))
    assert weibull.scale_s == pytest.approx(100, rel=4 * 1.05 / shape / np.sqrt(3000))
    assert weibull.p_value > 0.01
    assert exponential.scale_s == pytest.approx(found.interval_s.mean())
    assert (exponential.p_value > 0.01) == (found.burst_p_value > 0.01) == (shape == 1)


def test_a_fit_of_the_right_kind_is_refused_as_often_as_it_says() -> None:
    """Of 200 exponential logs, one in ten has a p-value below 0.1 (± 4 σ)."""
    random = np.random.default_rng(3)
    low = sum(
        intervals(np.cumsum(random.exponential(size=50)), seed).fits[0].p_value <= 0.1
        for seed in range(200)
    )
    assert abs(low / 200 - 0.1) <= 4 * np.sqrt(0.1 * 0.9 / 200)


def test_few_or_simultaneous_failures_have_no_fit() -> None:
    assert intervals(np.array([])).fits == ()
    assert intervals(np.array([1.0, 2.0, 3.0])).fits == ()
    assert intervals(np.zeros(100)).fits == ()


def totals(*counts: int) -> list[LinkTotal]:
    return [LinkTotal(f"link {n}", count, 0, {}) for n, count in enumerate(counts) if count]


def test_links_that_differ_have_a_variance_above_the_mean() -> None:
    """Counts 4, 0, 0, 0: the mean is 1, the squares are 9 + 1 + 1 + 1 = 12, by 3 and 1: index 4."""
    found = dispersion(totals(4, 0, 0, 0), 4)
    assert found is not None
    assert found.index == 4
    assert found.p_value == pytest.approx(0.007383, rel=1e-3)  # χ² of 12 with 3 degrees of freedom
    alike = dispersion(totals(1, 1, 1, 1), 4)
    assert alike is not None
    assert (alike.index, alike.p_value) == (0, 1)
    assert dispersion(totals(3), 1) is None
    assert dispersion([], 9) is None


def test_the_worst_links_come_first() -> None:
    failures = [
        Failure(0, 1, "a"),
        Failure(2, 4, "b", "x"),
        Failure(5, None, "b"),
        Failure(1, 9, "c"),
    ]
    worst = by_link(failures, 10)
    assert [(it.link, it.failures, it.down_s) for it in worst] == [
        ("b", 2, 7), ("c", 1, 8), ("a", 1, 1),
    ]  # fmt: skip
    assert worst[0].causes == {"x": 1, "": 1}
    assert [most_of(worst, share) for share in (0.5, 0.51, 1)] == [1, 2, 3]


# ---- logs whose truth is known


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


def test_what_was_drawn_comes_out_of_the_log(month) -> None:
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
    assert last.durations.outlasting(truth.repair_median_s)[1:] == pytest.approx(
        (0.5, 0.5), abs=0.1
    )
    spread_s = truth.repair_median_s * np.exp(truth.repair_spread)
    _, low, high = last.durations.outlasting(spread_s)
    assert low - 0.02 <= 0.1587 <= high + 0.02
    # Incidents come at a constant rate, failures of flapping links do not.
    assert last.intervals.fits[0].p_value > 0.01
    assert kinds[OUTSIDE].intervals.fits[0].p_value < 0.01
    # Links differ, with the variance of a gamma-distributed rate: 1 + mean / shape.
    mean = len(last.failures) / len(links.names)
    assert last.dispersion.index == pytest.approx(1 + mean / truth.link_shape, rel=0.35)
    assert last.dispersion.p_value < 1e-6


def test_links_that_fail_alike_are_told_so() -> None:
    truth = Truth(failures=2000, in_tests=0, flapping=0, link_shape=1e6, repair_median_s=1)
    found = generate(LINKS, truth, 5)
    differ = dispersion(by_link(found, truth.end_s), len(LINKS))
    assert differ is not None
    assert differ.p_value > 0.01
    assert np.ptp(link_rates(200, truth, np.random.default_rng(1))) < 0.01 / 200


def test_the_same_seed_gives_the_same_log() -> None:
    truth = Truth(failures=50, in_tests=20)
    assert generate(LINKS, truth, 7) == generate(LINKS, truth, 7)
    assert generate(LINKS, truth, 7) != generate(LINKS, truth, 8)
    for earlier, later in zip(*(generate(LINKS, truth, 7)[k:] for k in (0, 1)), strict=False):
        assert earlier.begin_s <= later.begin_s


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(FaultsError, match="at least one link"):
        generate([], Truth(), 1)


def test_periods_are_read(tmp_path: Path) -> None:
    file = tmp_path / "tests.txt"
    file.write_text("# tests\n2024-03-04T08:00/2024-03-04T18:00\n1000, 2000  # short\n\n")
    assert read_periods(file)[1] == Period(1000, 2000)
    for wrong in ("", "1000", "2000/1000", "a/b"):
        with pytest.raises(FaultsError, match=r"is not a period; write it as begin/end"):
            period(wrong)
    with pytest.raises(FaultsError, match=r"cannot read .*: no such file"):
        read_periods(tmp_path / "missing")
