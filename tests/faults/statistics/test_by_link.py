"""Failures by link: dispersion, and the worst links."""

import pytest

from daqloom.faults.statistics.by_link import LinkTotal, by_link, dispersion, most_of
from daqloom.faults.statistics.failure import Failure


def totals(*counts: int) -> list[LinkTotal]:
    return [LinkTotal(f"link {n}", count, 0, {}) for n, count in enumerate(counts) if count]


def test_links_that_differ_have_a_variance_above_the_mean_and_the_worst_come_first() -> None:
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
    of_b = Failure(2, 4, "b", "x"), Failure(5, None, "b")
    worst = by_link([Failure(0, 1, "a"), *of_b, Failure(1, 9, "c")], 10)
    assert [(it.link, it.failures, it.down_s) for it in worst] == [
        ("b", 2, 7), ("c", 1, 8), ("a", 1, 1),
    ]  # fmt: skip
    assert worst[0].causes == {"x": 1, "": 1}
    assert [most_of(worst, share) for share in (0.5, 0.51, 1)] == [1, 2, 3]
