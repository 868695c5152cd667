"""Reader of OpenSM's log.

With its default flags (0x03), upstream OpenSM names hosts that disappear and return, but for links
between switches only one switch; `opensm -D 0x0f` names all ports. NVIDIA's OpenSM names every
switch port that changes its state, with the default flags.
"""

from __future__ import annotations

import re

from daqloom.base.line_counts import CountedLines
from daqloom.faults.logs.change import Change, LogContent, Port
from daqloom.faults.logs.clock import Calendar

LINE = re.compile(
    r"(?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) (?P<time>\d\d:\d\d:\d\d) (?P<us>\d{6}) "
    r"\[[0-9A-Fa-f]+\] 0x[0-9a-fA-F]{2} -> (?P<text>.*)"
)
_END = re.compile(r"\s*node (0x[0-9a-f]{1,16}), port (?:number )?(\d{1,3})", re.IGNORECASE)
_DOWN = re.compile(r"\w+: Unlinking local node (0x[0-9a-f]{1,16}), port (?:number )?(\d{1,3})")
_GONE = re.compile(r"\w+: Removed port with GUID:0x[0-9a-f]{1,16} LID range \[.*\] of node: ?(.+)")
_NEW = re.compile(
    r"\w+: Discovered new port with GUID:0x[0-9a-f]{1,16} LID range \[.*\] of node: ?(.+)"
)
_UP = "Creating new link between:"
# NVIDIA: osm_spst_rcv_process: Switch 0xb2 MF0;leaf1:MQM9700/U1 port 61 (sw7p1s1) changed state …
_STATE = re.compile(
    r"\w+: (?:Switch|Router|Node|H?CA|Host) (?:(0x[0-9a-f]{1,16}) )?(.{0,200}?) ?"
    r"port (?:number )?(\d{1,3})(?: ?\(.*\))? "
    r"changed state from (\w+) to (\w+)",
    re.IGNORECASE,
)
_UP_STATES = ("INIT", "ARMED", "ACTIVE")
_START = re.compile(r"OpenSM \d")
SWEPT = "SUBNET UP"
NOTICE = re.compile(r'log_notice: Reporting .*(?:num:128\b|["(]Link state change[")])')
_SUBJECT = re.compile(
    r"(?:Unlinking|Creating new link|Removed port|Discovered new port|changed state)|"
    r"\b(?:link|port) .{0,80}\b(?:is|went|goes|now|to) (?:up|down)\b",
    re.IGNORECASE,
)
NAMELESS = "link changes without a port"
SUBJECT = "ports that change their state"


def is_it(line: str) -> bool:
    """Return whether a line belongs to OpenSM's log."""
    return LINE.match(line) is not None


def time_of(line: re.Match[str], calendar: Calendar) -> float | None:
    """Return the time of a line (s since 1970); None for a date that does not exist."""
    at_s = calendar.at_s(line["month"], int(line["day"]), line["time"])
    return None if at_s is None else at_s + int(line["us"]) / 1e6


def read(lines: CountedLines, log: LogContent, year: int, _dates: str = "") -> None:
    """Add the changes of ports to `log`. The first sweep of a subnet manager discovers the whole
    fabric, so its reports are no changes; later parts of a rotated log have no first sweep."""
    calendar = Calendar(year)
    is_first_sweep = had_sweep = False
    for line in lines:
        found = LINE.match(line)
        if not found:
            lines.outside(line, "a time, a thread and `0x… ->`")
            continue
        at_s = time_of(found, calendar)
        if at_s is None:
            lines.count_malformed(line, "a date that exists")
            continue
        log.cover(at_s, calendar)
        text = found["text"]
        is_first_sweep = (is_first_sweep or bool(_START.match(text))) and text != SWEPT
        had_sweep = had_sweep or text == SWEPT
        if text.endswith(_UP):
            ends = next(lines, ""), next(lines, "")
            changes = _link(ends, at_s, log)
            if changes is None:
                bad = next(end for end in ends if not _END.match(end))
                lines.count_malformed(bad, "node 0x…, port number N, for each end of a new link")
                continue
            lines.use(2)
        else:
            changes = changes_of(text, at_s, log)
        if is_first_sweep:
            # After a restart, links found by the first sweep end failures that were still open.
            changes = [each for each in changes or () if each.is_up and had_sweep] or None
        if changes is not None:
            log.changes += changes
            lines.use()
        elif NOTICE.match(text):
            log.lines[NAMELESS] += not is_first_sweep
            lines.use()
        elif _SUBJECT.search(text) and not is_first_sweep:
            lines.count_malformed(line)
        else:
            lines.ignore()


def _link(ends: tuple[str, str], at_s: float, log: LogContent) -> list[Change] | None:
    """Return the change reported by two lines with the ends of a new link; None for other lines."""
    one, other = (Port(found[1], found[2]) if (found := _END.match(end)) else None for end in ends)
    if not (one and other):
        return None
    log.cables |= {one: other, other: one}
    return [Change(at_s, one, is_up=True)]


def changes_of(text: str, at_s: float, log: LogContent) -> list[Change] | None:
    """Return the changes that a line reports; None for other subjects or unknown formats."""
    if down := _DOWN.match(text):
        return [Change(at_s, Port(down[1], down[2]), is_up=False)]
    for form, is_up in ((_GONE, False), (_NEW, True)):
        if host := form.match(text):
            return [Change(at_s, Port(host[1].strip(), ""), is_up)]
    state = _STATE.match(text)
    return _state_changes(state, at_s, log) if state else None


def _state_changes(state: re.Match[str], at_s: float, log: LogContent) -> list[Change] | None:
    """Return the changes of a port; ACTIVE to INIT means a failure shorter than a sweep."""
    guid, name, number, before, after = state.groups()
    port = Port(guid or name, number)
    if guid and name:
        log.names.setdefault(guid, name)
    down, up = Change(at_s, port, is_up=False), Change(at_s, port, is_up=True)
    before, after = before.upper(), after.upper()
    if after == "DOWN":
        return [down]
    if after not in _UP_STATES:
        return None
    if before == "DOWN":
        return [up]
    return [down, up] if (before, after) == ("ACTIVE", "INIT") else []
