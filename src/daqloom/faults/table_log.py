"""A plain table: a row for each change (time, port, state) or each failure (time, port, duration).

The columns have names: `time` or `begin` (ISO 8601, or seconds since 1970); `port` or `link`, with
or without `node`; `state` (up, down), or `duration` (with a unit, or in seconds) or `end`; `cause`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping

from daqloom.faults import FaultsError
from daqloom.faults.change import Change, Outage, Port, Told
from daqloom.faults.clock import Calendar, iso_s
from daqloom.words import TIMES_S

BEGINS = ("time", "begin", "start", "timestamp")
PLACES = ("port", "link", "cable", "interface")
UPS, DOWNS = ("up", "active", "1", "true"), ("down", "inactive", "0", "false")
LONGEST_S = 1e10
"""Of a failure: some 300 years."""
UNITS_S = {"us": 1e-6, "ms": 1e-3, **TIMES_S}
_DURATION = re.compile(rf"(\d{{1,15}}(?:\.\d{{0,15}})?) ?({'|'.join(UNITS_S)})")
_CLOCK = re.compile(r"(\d{1,6}):([0-5]\d):([0-5]\d(?:\.\d{1,9})?)")


def is_it(line: str) -> bool:
    """Return whether a line names the columns of such a table."""
    names = _names(line)
    return any(name in names for name in BEGINS) and any(name in names for name in PLACES)


def _names(line: str) -> list[str]:
    return [name.strip().lower() for name in line.lstrip("\ufeff").split(_mark(line))]


def _mark(line: str) -> str:
    return max(",;\t", key=line.count)


def read(lines: Iterable[str], told: Told, year: int) -> None:
    """Add what the table says. Raises FaultsError where columns are missing."""
    rest = iter(lines)
    head = next(rest, "")
    names = _names(head)
    if not {"state", "duration", "end"} & set(names):
        raise FaultsError(
            f"a table with the columns {', '.join(names)[:200]} tells no failures; expected a "
            "column state (up, down), duration or end"
        )
    calendar, mark = Calendar(year), _mark(head)
    for line in rest:
        found = _row(dict(zip(names, _cells(line, mark), strict=False)))
        if found is None:
            told.lines["malformed"] += 1
            continue
        begin_s = found.at_s if isinstance(found, Change) else found.begin_s
        told.lines["clock step"] += calendar.steps_back(begin_s)
        told.seen(begin_s)
        told.lines["used"] += 1
        if isinstance(found, Change):
            told.changes.append(found)
        else:
            told.outages.append(found)


def _cells(line: str, mark: str) -> list[str]:
    """Return those of one line: a quote that is not closed holds no more than that."""
    try:
        return next(csv.reader([line], delimiter=mark), [])
    except csv.Error:
        return []


def _row(cells: Mapping[str, str]) -> Change | Outage | None:
    begin_s = next((iso_s(cells[name]) for name in BEGINS if cells.get(name)), None)
    place = next((cells[name].strip() for name in PLACES if cells.get(name)), "")
    node = cells.get("node", cells.get("switch", "")).strip()
    cause = cells.get("cause", "").strip()
    if begin_s is None or not (place or node):
        return None
    port = Port(node, place) if node else _port(place)
    state = cells.get("state", "").strip().lower()
    if state in UPS + DOWNS:
        return Change(begin_s, port, state in UPS, cause)
    lasts_s = _lasts_s(cells.get("duration", ""))
    end_s = begin_s + lasts_s if lasts_s is not None else iso_s(cells.get("end", ""))
    if end_s is None and (cells.get("duration") or cells.get("end") or "end" not in cells):
        return None
    return None if end_s is not None and end_s < begin_s else Outage(begin_s, end_s, port, cause)


def _port(name: str) -> Port:
    """Return the port of a name such as `leaf0 port 3`, `leaf0/3`, `leaf0:Ethernet48`."""
    for mark in (" - ", " port ", "/", ":"):
        node, found, port = name.partition(mark)
        if found:
            return Port(name, "") if mark == " - " else Port(node.strip(), port.strip())
    return Port(name, "")


def _lasts_s(text: str) -> float | None:
    """Return the duration in a cell, which may be a bare number of seconds."""
    found = seconds(text)
    return seconds(f"{text.strip()} s") if found is None else found


def seconds(text: str) -> float | None:
    """Return a duration: a number with its unit, or hours:minutes:seconds."""
    if hours := _CLOCK.fullmatch(text.strip()):
        lasts_s = 3600 * float(hours[1]) + 60 * float(hours[2]) + float(hours[3])
    elif found := _DURATION.fullmatch(text.strip()):
        lasts_s = float(found[1]) * UNITS_S[found[2]]
    else:
        return None
    return lasts_s if lasts_s <= LONGEST_S else None
