"""Reader of InfiniBand port error counters, as `ibqueryerrors` and `perfquery` print them."""

from __future__ import annotations

import re
from collections import defaultdict

from daqloom.base.line_counts import CountedLines
from daqloom.faults.logs.change import LogContent, Port, PortCounters

_NODE = re.compile(r'Errors for (?:(0x[0-9a-f]{1,16}) )?"(.{0,200})"')
_PORT = re.compile(r"\s+GUID (0x[0-9a-f]{1,16}) port (\d{1,3}|ALL):(.*)")
_COUNTER = re.compile(r"\[(\w{1,40}) == (\d{1,20})")
_LID = re.compile(r"# Port (?:extended )?counters: Lid (\d{1,5}) port (\d{1,3})\b")
_FIELD = re.compile(r"(\w{1,40}):\.*(\d{1,20})\s*")
_OTHER_FIELD = re.compile(r"\w{1,40}:\.*0x[0-9a-fA-F]{1,16}\s*")
_SUMMARY = re.compile(r"##|#|ibqueryerrors|.*\bports? checked\b|.*\bbad nodes found\b")
_NO_ERRORS = ("PortSelect", "CounterSelect", "PortXmit", "PortRcvData", "PortRcvPkts")
"""Beginnings of names of perfquery's fields that count no errors, unless listed in `_ERRORS`."""
_ERRORS = ("PortXmitDiscards", "PortXmitConstraintErrors", "PortXmitWait")
SUBJECT = "counters of ports"


def is_it(line: str) -> bool:
    """Return whether a line belongs to output of ibqueryerrors or perfquery."""
    begins = any(each.match(line) for each in (_NODE, _PORT, _LID))
    return begins or "ibqueryerrors" in line or "bad nodes found" in line


def read(lines: CountedLines, log: LogContent, _year: int = 0, _dates: str = "") -> None:
    """Add the error counters of all ports in the dump to `log`."""
    counters: dict[Port, dict[str, int]] = defaultdict(dict)
    port: Port | None = None
    name = ""
    for line in lines:
        if hit := _PORT.match(line):
            port = None
            if name:
                log.names.setdefault(hit[1], name)
            counted = {name: int(value) for name, value in _COUNTER.findall(hit[3])}
            if not counted:
                lines.count_malformed(line, "[COUNTER == number]")
            elif hit[2] == "ALL":  # the sum over the ports
                lines.ignore()
            else:
                counters[Port(hit[1], hit[2])] |= counted
                lines.use()
        elif hit := _NODE.match(line):
            name = hit[2].strip()
            lines.use()
        elif hit := _LID.match(line):
            port = Port(f"lid {hit[1]}", hit[2])
            lines.use()
        elif port and (hit := _FIELD.fullmatch(line)):
            if hit[1] in _ERRORS or not hit[1].startswith(_NO_ERRORS):
                counters[port][hit[1]] = int(hit[2])
            lines.use()
        elif _SUMMARY.match(line) or (port and _OTHER_FIELD.fullmatch(line)):
            lines.ignore()
        else:
            lines.outside(line, "GUID 0x… port N: [COUNTER == number]")
    log.counters += [PortCounters(port, each) for port, each in counters.items()]
