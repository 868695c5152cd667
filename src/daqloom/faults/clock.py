"""Times of log lines."""

from __future__ import annotations

import re
from datetime import UTC, datetime

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DAY_S = 86_400.0
LATEST_S = 1e11
"""Of all times: in the year 5138."""
STEP_S = 1.0
"""A line that is older than one before it by more than this tells a step of the clock."""
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(\.\d{1,9})?")


class Calendar:
    """Of a log whose lines have no year: they begin in `year`, and January follows December."""

    def __init__(self, year: int) -> None:
        self._year = year
        self._month = 0
        self._latest_s = float("-inf")

    def at_s(self, month: str, day: int, time: str, year: int | None = None) -> float | None:
        """Return the time in seconds since 1970, as if the log's clock showed UTC; None for one
        that does not exist. `year`: that of the line, if it has one."""
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
        """Return whether the clock has been set back since the latest line."""
        back = at_s < self._latest_s - STEP_S
        self._latest_s = at_s
        return back


def iso_s(text: str) -> float | None:
    """Return an ISO 8601 time, or seconds since 1970, in seconds since 1970; without a zone it is
    taken as UTC. None: it is neither, or before 1970."""
    text = text.strip()
    try:
        number = float(text)
    except ValueError:
        pass
    else:
        return number if 0 <= number < LATEST_S else None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    at_s = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    return at_s if 0 <= at_s < LATEST_S else None


def day_name(day: int) -> str:
    """Return the date of a day since 1970."""
    return datetime.fromtimestamp(day * DAY_S, UTC).date().isoformat()
