"""Test periods, read from a file."""

from pathlib import Path

import pytest

from daqloom.faults import FaultsError
from daqloom.faults.statistics.failure import Period
from daqloom.faults.statistics.periods import period, read_periods


def test_periods_are_read(tmp_path: Path) -> None:
    file = tmp_path / "tests.txt"
    file.write_text("# tests\n2024-03-04T08:00/2024-03-04T18:00\n1000, 2000  # short\n\n")
    assert read_periods(file)[1] == Period(1000, 2000)
    for wrong in ("", "1000", "2000/1000", "a/b"):
        with pytest.raises(FaultsError, match=r"is not a period; write it as begin/end"):
            period(wrong)
    with pytest.raises(FaultsError, match=r"missing cannot be read: no such file"):
        read_periods(tmp_path / "missing")
