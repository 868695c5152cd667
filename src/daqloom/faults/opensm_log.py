"""OpenSM's log: `opensm -D 0x0f` names the ports of links that go down and come up.

With the default flags (0x03) it names hosts that disappear and come back; of a link between
switches it says only that some link of a switch has changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from daqloom.faults.change import Change, Port, Told
from daqloom.faults.clock import Calendar

LINE = re.compile(
    r"(?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) (?P<time>\d\d:\d\d:\d\d) (?P<us>\d{6}) "
    r"\[[0-9A-F]+\] 0x[0-9a-f]{2} -> (?P<text>.*)"
)
_END = re.compile(r"\s*node (0x[0-9a-f]{1,16}), port number (\d{1,3})")
_DOWN = re.compile(r"\w+: Unlinking local node (0x[0-9a-f]{1,16}), port (\d{1,3})")
_GONE = re.compile(r"\w+: Removed port with GUID:0x[0-9a-f]{1,16} LID range \[.*\] of node: ?(.+)")
_NEW = re.compile(
    r"\w+: Discovered new port with GUID:0x[0-9a-f]{1,16} LID range \[.*\] of node: ?(.+)"
)
_UP = "Creating new link between:"
SWEPT = "SUBNET UP"
CHANGED = '"Link state change"'
NAMELESS = "link changes without a port"


def is_it(line: str) -> bool:
    """Return whether a line is of such a log."""
    return LINE.match(line) is not None


def time_of(line: re.Match[str], calendar: Calendar) -> float | None:
    """Return the time of a line (s since 1970); None for one that does not exist."""
    at_s = calendar.at_s(line["month"], int(line["day"]), line["time"])
    return None if at_s is None else at_s + int(line["us"]) / 1e6


def read(lines: Iterable[str], told: Told, year: int) -> None:
    """Add what the log says; the first sweep, which finds the whole fabric, is no change."""
    calendar = Calendar(year)
    rest = iter(lines)
    swept = False
    for line in rest:
        found = LINE.match(line)
        if not found:
            told.lines["other"] += 1
            continue
        at_s = time_of(found, calendar)
        if at_s is None:
            told.lines["malformed"] += 1
            continue
        told.lines["clock step"] += calendar.steps_back(at_s)
        told.seen(at_s)
        text = found["text"]
        swept = swept or text == SWEPT
        changes = list(_changes(text, at_s, rest, told))
        told.changes += changes if swept else []
        told.lines["used" if changes else "other"] += 1
        if swept and CHANGED in text:
            told.lines[NAMELESS] += 1


def _changes(text: str, at_s: float, rest: Iterator[str], told: Told) -> Iterator[Change]:
    if down := _DOWN.match(text):
        yield Change(at_s, Port(down[1], down[2]), is_up=False)
    elif gone := _GONE.match(text):
        yield Change(at_s, Port(gone[1].strip(), ""), is_up=False)
    elif new := _NEW.match(text):
        yield Change(at_s, Port(new[1].strip(), ""), is_up=True)
    elif text.endswith(_UP):
        ends = [_END.match(next(rest, "")) for _ in range(2)]
        if ends[0] and ends[1]:
            one, other = (Port(end[1], end[2]) for end in ends if end)
            told.cables |= {one: other, other: one}
            yield Change(at_s, one, is_up=True)
        else:
            told.lines["malformed"] += 1
