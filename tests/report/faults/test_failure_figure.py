"""The figure of failures."""

from collections import Counter

import pytest

from daqloom.faults.statistics.failure import Failure, FailureHistory, Period
from daqloom.faults.statistics.summary import variants
from daqloom.report.faults import failure_figure


@pytest.mark.parametrize("most", [1, 3, 40])
def test_counts_beside_the_colours_are_whole_numbers(most: int) -> None:
    failures = tuple(Failure(100.0 * n, 100.0 * n + 1, "a") for n in range(most))
    kinds = variants(FailureHistory(failures, Period(0, 86_400), Counter()), [], 0)
    [bar] = failure_figure.figure(kinds, ["a"]).bars
    assert bar.label == "failures"
    assert bar.ticks
    assert all(tick == int(tick) for tick in bar.ticks)
