"""Error counters of InfiniBand ports, as `ibqueryerrors` and `perfquery` print them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from daqloom.faults.change import Port, PortCounters, Told

SYMBOL, DOWNED, RECOVERY = "SymbolErrorCounter", "LinkDownedCounter", "LinkErrorRecoveryCounter"
_NODE = re.compile(r'Errors for (0x[0-9a-f]{1,16}) "(.{0,200})"')
_PORT = re.compile(r"\s+GUID (0x[0-9a-f]{1,16}) port (\d{1,3}):(.*)")
_COUNTER = re.compile(r"\[(\w{1,40}) == (\d{1,20})")
_LID = re.compile(r"# Port (?:extended )?counters: Lid (\d{1,5}) port (\d{1,3})\b")
_FIELD = re.compile(r"(\w{1,40}):\.*(\d{1,20})\s*")


def is_it(line: str) -> bool:
    """Return whether a line is of such a dump."""
    return any(each.match(line) for each in (_NODE, _PORT, _LID)) or "ibqueryerrors" in line


def read(lines: Iterable[str], told: Told, _year: int) -> None:
    """Add the counters of all ports that the dump names."""
    found: dict[Port, dict[str, int]] = defaultdict(dict)
    port: Port | None = None
    for line in lines:
        if hit := _PORT.match(line):
            port = None
            counted = {name: int(value) for name, value in _COUNTER.findall(hit[3])}
            found[Port(hit[1], hit[2])] |= counted
            told.lines["used" if counted else "malformed"] += 1
        elif hit := _LID.match(line):
            port = Port(f"lid {hit[1]}", hit[2])
            told.lines["used"] += 1
        elif port and (hit := _FIELD.fullmatch(line)):
            found[port][hit[1]] = int(hit[2])
            told.lines["used"] += 1
        else:
            told.lines["other"] += 1
    told.counters += [
        PortCounters(port, each.get(SYMBOL, 0), each.get(DOWNED, 0), each.get(RECOVERY, 0))
        for port, each in found.items()
        if {SYMBOL, DOWNED, RECOVERY} & each.keys()
    ]
