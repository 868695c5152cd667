"""The figure of failures."""

import re
from collections import Counter

import pytest

from daqloom.faults.failure import Failure, Found, Period
from daqloom.faults.summary import variants
from daqloom.report.faults import failure_figure


@pytest.mark.parametrize("most", [1, 3, 40])
def test_counts_beside_the_colours_are_whole_numbers(most: int) -> None:
    failures = tuple(Failure(100.0 * n, 100.0 * n + 1, "a") for n in range(most))
    kinds = variants(Found(failures, Period(0, 86_400), Counter()), [], 0)
    drawn = failure_figure.draw(kinds, ["a"])
    drawn.canvas.draw()
    [bar] = [axes for axes in drawn.axes if axes.get_ylabel() == "failures"]
    told = [text.get_text() for text in bar.get_yticklabels(which="both")]
    assert [text for text in told if text]
    assert all(re.fullmatch("[0-9]*", text) for text in told)
