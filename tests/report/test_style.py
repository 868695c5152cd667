"""Formats of numbers in figures."""

import pytest

from daqloom.report import style


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.706e-3, "1.71 ms"), (0.2031, "203 ms"), (4.2, "4.20 s"), (99.96e-6, "100 µs")],
)
def test_durations_have_three_digits(value: float, text: str) -> None:
    assert style.seconds(value) == text
