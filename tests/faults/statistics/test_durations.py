"""Durations of failures: derived shares, and bands of known distributions."""

import numpy as np
import pytest
from scipy.stats import binomtest

from daqloom.faults.statistics.durations import distribution
from daqloom.faults.statistics.failure import Failure


def test_shares_of_durations_are_those_of_kaplan_and_meier() -> None:
    """Three end after 1, 2 and 4 s; one has lasted 3 s when the log ends: of four, 3/4 and 2/4 are
    left after 1 and 2 s, and of the one that is left then none after 4 s."""
    failures = [Failure(0, 1, "a"), Failure(0, 2, "a"), Failure(0, 4, "a"), Failure(1, None, "b")]
    found = distribution(failures, 4)
    assert found.duration_s.tolist() == [1, 2, 4]
    assert found.share == pytest.approx([1 / 4, 2 / 4, 1])
    known = {time_s: found.outlasting(time_s) or (9, 0, 0) for time_s in (0, 0.5, 1, 2, 3, 4, 9)}
    assert known[0.5][0] == 1
    assert known[3][0] == pytest.approx(0.5)
    assert all(low <= share <= high for share, low, high in known.values())


def test_where_all_have_ended_the_band_is_the_binomial_one_and_beyond_a_log_unknown() -> None:
    found = distribution([Failure(0, at, "a") for at in (1, 2, 3, 4, 5)], 9)
    exact = binomtest(0, 5).proportion_ci(0.95, "exact")
    assert found.outlasting(5) == pytest.approx((0, exact.low, exact.high))
    assert found.outlasting(0.1) == pytest.approx((1, 1 - exact.high, 1))
    assert distribution([], 0).outlasting(1) is None
    just_begun = distribution([Failure(5, None, "a")], 7)
    assert just_begun.outlasting(2) == pytest.approx((1, 0.025, 1))
    assert just_begun.outlasting(3) is None
    one_ended = distribution([Failure(0, 1, "a"), Failure(0, None, "b")], 7)
    assert one_ended.outlasting(7) is not None
    assert one_ended.outlasting(8) is None


def test_bands_have_their_confidence() -> None:
    """The band at the median holds 1/2 in 95 % (±3 σ) of 200 logs of 60 exponential durations."""
    random = np.random.default_rng(1)
    held = 0
    for _ in range(200):
        ended = random.exponential(1 / np.log(2), 60)
        found = distribution([Failure(0, at, "a") for at in ended], 99).outlasting(1)
        assert found
        _, low, high = found
        held += low <= 0.5 <= high
    assert 0.95 - 3 * np.sqrt(0.95 * 0.05 / 200) <= held / 200
