"""Test periods: times in which failures do not count."""

from __future__ import annotations

from pathlib import Path

from daqloom.faults import FaultsError
from daqloom.faults.logs.clock import iso_s
from daqloom.faults.statistics.failure import Period
from daqloom.scenario.files import read_text

MOST = 100_000
LARGEST_BYTES = 8 << 20


def period(text: str) -> Period:
    """Return the period `BEGIN/END`, two ISO 8601 or Unix times (s). Raises FaultsError."""
    begin, _, end = text.partition("/")
    begin_s, end_s = iso_s(begin), iso_s(end)
    if begin_s is None or end_s is None or end_s <= begin_s:
        raise FaultsError(
            f'"{text[:100]}" is not a period; write it as begin/end, such as '
            "2024-03-04T08:00/2024-03-04T18:00"
        )
    return Period(begin_s, end_s)


def read_periods(path: Path) -> list[Period]:
    """Return the periods of a file, one per line; `#` starts a comment. Raises FaultsError."""
    try:
        text = read_text(path, LARGEST_BYTES)
    except ValueError as error:
        raise FaultsError(str(error)) from None
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    periods = [line.replace(",", "/").replace(";", "/") for line in lines if line]
    if len(periods) > MOST:
        raise FaultsError(f"{path} has more than {MOST:,} periods")
    return [period(line) for line in periods]
