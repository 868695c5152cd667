"""Parsing of times in log lines."""

from __future__ import annotations

import re
from datetime import UTC, datetime

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DAY_S = 86_400.0
LATEST_S = 1e11
"""Limit on times in seconds since 1970: the year 5138."""
STEP_S = 1.0
"""Least time by which a line must precede the line before to count as a clock step (s)."""
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(\.\d{1,9})?")


class Calendar:
    """Years of a log without years: from `year` on, each January after a December is a new year."""

    def __init__(self, year: int) -> None:
        self._year = year
        self._month = 0
        self._latest_s = float("-inf")

    def at_s(self, month: str, day: int, time: str, year: int | None = None) -> float | None:
        """Return the time in seconds since 1970, with the log's clock taken as UTC; None if the
        time does not exist. `year`: the year in the line, if it has one."""
        found = _TIME.fullmatch(time)
        if month not in MONTHS or not found:
            return None
        number = MONTHS.index(month) + 1
        if year is None:
            year = self._year + (self._month == 12 and number == 1)
        hour, minute, second = (int(found[place]) for place in (1, 2, 3))
        try:
            at = datetime(year, number, day, hour, minute, second, tzinfo=UTC)
        except ValueError:
            return None
        self._year, self._month = year, number
        return at.timestamp() + float(found[4] or 0)

    def steps_back(self, at_s: float) -> bool:
        """Return whether a line is older than the line before: the clock was set back."""
        back = at_s < self._latest_s - STEP_S
        self._latest_s = at_s
        return back


def iso_s(text: str) -> float | None:
    """Return an ISO 8601 time (UTC if it has no zone), or a number, as seconds since 1970; None for
    other text, and for times before 1970."""
    text = text.strip()
    try:
        at_s = float(text)
    except ValueError:
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            return None
        at_s = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    return at_s if 0 <= at_s < LATEST_S else None


def day_name(day: int) -> str:
    """Return the date of a day since 1970."""
    return datetime.fromtimestamp(day * DAY_S, UTC).date().isoformat()
