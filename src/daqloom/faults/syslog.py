"""Link changes in syslog: of SONiC switches, and of the Linux kernel on hosts and switches."""

from __future__ import annotations

import re
from collections.abc import Iterable

from daqloom.faults.change import Change, Port, Told
from daqloom.faults.clock import Calendar, iso_s

_NAME = r"[A-Za-z][\w.-]{0,63}"
_OLD = re.compile(
    r"(?:<\d{1,3}>)?(?:(?P<year>\d{4}) )?(?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) "
    r"(?P<time>\d\d:\d\d:\d\d(?:\.\d{1,9})?) (?P<host>\S{1,255}) (?P<text>.*)"
)
_NEW = re.compile(
    r"(?:<\d{1,3}>1? ?)?(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,16}) (?P<host>\S{1,255}) "
    r"(?P<text>.*)"
)
_STATES = (
    # SONiC: swss#orchagent: :- updatePortOperStatus: Port Ethernet48 oper state set from up to down
    re.compile(rf"Port (?P<port>{_NAME}) oper state set from \w+ to (?P<state>up|down)\b"),
    # bonding: link status definitely down for interface ens1f0
    re.compile(rf"link status definitely (?P<state>up|down) for interface (?P<port>{_NAME})"),
    # mlx5_core 0000:3b:00.0 ens3f0: Link down; igb: eno1 NIC Link is Up 1000 Mbps
    re.compile(rf"\b(?P<port>{_NAME}):? (?:NIC )?[Ll]ink (?:is )?(?P<state>[Uu]p|[Dd]own)\b"),
    # br0: port 2(swp7) entered disabled state is no link change; IPv6 tells links that come up
    re.compile(rf"ADDRCONF\(NETDEV_CHANGE\): (?P<port>{_NAME}): link becomes (?P<state>ready)"),
)


def is_it(line: str) -> bool:
    """Return whether a line is of such a log."""
    return _OLD.match(line) is not None or _NEW.match(line) is not None


def read(lines: Iterable[str], told: Told, year: int) -> None:
    """Add what the log says; clocks of several hosts need not agree."""
    calendars: dict[str, Calendar] = {}
    for line in lines:
        found = _OLD.match(line) or _NEW.match(line)
        if not found:
            told.lines["malformed" if line.strip() else "other"] += 1
            continue
        part = found.groupdict()
        calendar = calendars.setdefault(part["host"], Calendar(int(part.get("year") or year)))
        if "month" in part:
            at_s = calendar.at_s(part["month"], int(part["day"]), part["time"])
        else:
            at_s = iso_s(part["time"])
        if at_s is None:
            told.lines["malformed"] += 1
            continue
        told.lines["clock step"] += calendar.steps_back(at_s)
        told.seen(at_s)
        state = next((hit for each in _STATES if (hit := each.search(part["text"]))), None)
        if state:
            is_up = state["state"].lower() != "down"
            told.changes.append(Change(at_s, Port(part["host"], state["port"]), is_up))
        told.lines["used" if state else "other"] += 1
