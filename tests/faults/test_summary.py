"""Statistics of a log whose truth is known: the default month on the `lhcb` fabric."""

from __future__ import annotations

import numpy as np
import pytest

from daqloom.faults.failure import (
    failures_of,
)
from daqloom.faults.generate import TEST, Truth, generate, write_periods, write_table
from daqloom.faults.links import Links
from daqloom.faults.periods import read_periods
from daqloom.faults.read import read_logs
from daqloom.faults.summary import ALL, MERGED, OUTSIDE, variants
from daqloom.scenario.dumps import shipped_fabrics
from daqloom.topology.load import load_cabling


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
