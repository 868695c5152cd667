"""Reader of tables with a row per change (time, port, state) or failure (time, port, duration).

Columns have the names in `COLUMNS`. Times are ISO 8601, numbers since 1970 (s, ms, us or ns, by
their magnitude), or dates that begin with the day or the month.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping

from daqloom.base.line_counts import CountedLines
from daqloom.base.words import TIMES_S, printable
from daqloom.faults import FaultsError
from daqloom.faults.logs.change import Change, LogContent, Outage, Port
from daqloom.faults.logs.clock import LATEST_S, MONTHS, Calendar, iso_s

COLUMNS = {
    "time": (
        "time", "begin", "start", "timestamp", "begin_time", "start_time", "time_start", "date",
        "datetime", "ts", "when",
    ),
    "port": ("port", "link", "cable", "interface", "ifname", "if_name"),
    "node": ("node", "switch", "host", "device", "hostname"),
    "state": ("state", "status", "event", "oper_status", "operstatus", "link_state", "change"),
    "duration": ("duration", "duration_s", "length", "downtime", "seconds"),
    "end": ("end", "end_time", "stop", "stop_time", "time_end", "until", "to"),
    "cause": ("cause", "reason", "comment"),
}  # fmt: skip
"""Accepted names of columns by meaning. Letter case is ignored; `-` or a blank may replace `_`."""
UPS = ("up", "active", "1", "true", "on", "online", "linkup", "operup", "ifup", "restored")
DOWNS = (
    "down", "inactive", "0", "2", "false", "off", "offline", "linkdown", "operdown", "ifdown",
    "lost",
)  # fmt: skip
"""Accepted states, without blanks, `-` and `_`; 1 and 2 are values of SNMP's ifOperStatus."""
LONGEST_S = 1e10
"""Limit on the duration of a failure (s): about 300 years."""
UNITS_S = {"us": 1e-6, "ms": 1e-3, **TIMES_S}
SUBJECT = "failures"
BARE_DURATION = "durations without a unit, taken as seconds"
DAY_FIRST, MONTH_FIRST = "day-first", "month-first"
_DURATION = re.compile(rf"(\d{{1,15}}(?:\.\d{{0,15}})?) ?({'|'.join(UNITS_S)})")
_CLOCK = re.compile(r"(\d{1,6}):([0-5]\d):([0-5]\d(?:\.\d{1,9})?)")
_ISO_DURATION = re.compile(
    r"P(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?"
)
_SLASHED = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})(?:[ T,]+(.*))?")
_YEAR_FIRST = re.compile(r"(\d{4})[/.](\d{1,2})[/.](\d{1,2})(?:[ T,]+(.*))?")
_MONTH_NAMED = re.compile(r"(\d{1,2})[ -]([A-Za-z]{3})[a-z]*[ -](\d{4})(?:[ T,]+(.*))?")
_NUMBER = re.compile(r"\d{1,19}(?:\.\d{0,9})?")
_STEPS = (LATEST_S, 1e14, 1e17)
"""Limits above which numbers since 1970 are in ms, us and ns."""
_TIME_OF_DAY = re.compile(r"(\d{1,2}):(\d\d(?::\d\d(?:\.\d{1,9})?)?)(?: ?([AP])M)?", re.IGNORECASE)
_ENDS = (
    re.compile(r"(.+) port (.+)"),
    re.compile(r"(\S+)\s+((?:[A-Za-z-]*\d*(?:/\d+)+|(?:eth|et-|xe-|swp|en)\S*\d|\d+)\S*)", re.I),
    re.compile(r"([^:/]+)[:/](.+)"),
)
"""Forms of a name that contains node and port."""
EXPECTED = "a time, a port, and a state, a duration or an end"


def _is_comment(line: str) -> bool:
    return line.lstrip("\ufeff \t")[:1] in ("", "#")


def is_it(first: Iterable[str]) -> bool:
    """Return whether the first line without comments names columns of a table of failures."""
    names = set(_meanings(next((each for each in first if not _is_comment(each)), "")))
    return "time" in names and bool({"port", "node"} & names)


def names_in_words() -> str:
    """Return the accepted names of columns and states as text for messages."""
    columns = "; ".join(f"{name} ({', '.join(names)})" for name, names in COLUMNS.items())
    return f"columns {columns}; states {', '.join(DOWNS)} and {', '.join(UPS)}"


def _meanings(line: str) -> list[str]:
    known = {name: meaning for meaning, names in COLUMNS.items() for name in names}
    cells = _cells(line.lstrip("\ufeff"), _mark(line))
    return [known.get(re.sub(r"[ -]+", "_", cell.strip().lower()), "") for cell in cells]


def _mark(line: str) -> str:
    return max(",;\t|", key=line.count)


def read(lines: CountedLines, log: LogContent, year: int, dates: str = "") -> None:
    """Add the failures of the table to `log`. `dates`: `DAY_FIRST`, `MONTH_FIRST`, or empty for the
    one order that fits all dates. Raises FaultsError if columns are missing or both orders fit."""
    head = next(line for line in lines if not _is_comment(line))
    lines.ignore(lines.number)
    names, mark = _meanings(head), _mark(head)
    if not {"state", "duration", "end"} & set(names):
        given = printable(", ".join(_cells(head, mark))[:200])
        raise FaultsError(
            f"the table with the columns {given} has no column of failures; expected a state, a "
            f"duration or an end: {names_in_words()}"
        )
    calendar, order = Calendar(year), dates
    undecided: list[tuple[int, str, Mapping[str, str]]] = []
    for line in lines:
        row = dict(zip(names, _cells(line, mark), strict=False))
        if not order:
            order, fits_both = _order(row)
            if fits_both:
                undecided.append((lines.number, line, row))
                continue
        for earlier in [*undecided, (lines.number, line, row)]:
            _add(*earlier, order or DAY_FIRST, lines, log, calendar)
        undecided = []
    if undecided:
        first = printable(undecided[0][2]["time"].strip()[:40])
        raise FaultsError(
            f"the table's dates, such as {first}, can be read in two ways; give --dates "
            f"{DAY_FIRST} or --dates {MONTH_FIRST}"
        )


def _order(row: Mapping[str, str]) -> tuple[str, bool]:
    """Return the order of day and month if a date of the row fits only one order, else "", and
    whether some date has different meanings in the two orders."""
    found = (_SLASHED.fullmatch(row.get(name, "").strip()) for name in ("time", "end"))
    dates = [(int(each[1]), int(each[3])) for each in found if each and each[2] != "."]
    for one, other in dates:
        if 12 < one <= 31 and 1 <= other <= 12:
            return DAY_FIRST, False
        if 12 < other <= 31 and 1 <= one <= 12:
            return MONTH_FIRST, False
    return "", any(one != other for one, other in dates)


def _add(
    number: int,
    line: str,
    row: Mapping[str, str],
    order: str,
    lines: CountedLines,
    log: LogContent,
    calendar: Calendar,
) -> None:
    if _is_comment(line):
        lines.ignore()
        return
    found = _row(row, order, log)
    if found is None:
        lines.count_malformed(line, EXPECTED, number)
        return
    lines.use()
    if isinstance(found, Change):
        log.cover(found.at_s, calendar)
        log.changes.append(found)
    else:
        log.cover(found.begin_s, calendar)
        log.outages.append(found)


def _cells(line: str, mark: str) -> list[str]:
    """Return the cells of a line; a quote that is still open ends with the line."""
    try:
        return next(csv.reader([line], delimiter=mark), [])
    except csv.Error:
        return []


def _row(cells: Mapping[str, str], order: str, log: LogContent) -> Change | Outage | None:
    begin_s = time_s(cells.get("time", ""), order)
    place, node, cause = (cells.get(name, "").strip() for name in ("port", "node", "cause"))
    if begin_s is None or not (place or node):
        return None
    port = Port(node, place) if node else _port(place)
    state = re.sub(r"[ _-]", "", cells.get("state", "").lower())
    if state in UPS + DOWNS:
        return Change(begin_s, port, state in UPS, cause)
    duration = cells.get("duration", "")
    lasts_s = seconds(duration)
    if lasts_s is None and (lasts_s := seconds(f"{duration.strip()} s")) is not None:
        log.lines[BARE_DURATION] += 1
    end_s = begin_s + lasts_s if lasts_s is not None else time_s(cells.get("end", ""), order)
    if end_s is None and (duration.strip() or cells.get("end", "").strip() or "end" not in cells):
        return None
    return None if end_s is not None and end_s < begin_s else Outage(begin_s, end_s, port, cause)


def time_s(text: str, order: str) -> float | None:
    """Return a time as seconds since 1970; a number is in s, ms, us or ns, by its magnitude."""
    text = text.strip()
    if _NUMBER.fullmatch(text):
        number = float(text)
        steps = sum(number >= limit for limit in _STEPS)
        return iso_s(repr(number / 1000**steps))
    if match := _SLASHED.fullmatch(text):
        one, other = int(match[1]), int(match[3])
        is_day_first = order == DAY_FIRST or match[2] == "."
        day, month = (one, other) if is_day_first else (other, one)
        return _date_s(int(match[4]), month, day, match[5])
    if match := _YEAR_FIRST.fullmatch(text):
        return _date_s(int(match[1]), int(match[2]), int(match[3]), match[4])
    if (match := _MONTH_NAMED.fullmatch(text)) and match[2].capitalize() in MONTHS:
        month = MONTHS.index(match[2].capitalize()) + 1
        return _date_s(int(match[3]), month, int(match[1]), match[4])
    return iso_s(text)


def _date_s(year: int, month: int, day: int, clock: str | None) -> float | None:
    found = _TIME_OF_DAY.fullmatch((clock or "00:00").strip())
    if not found:
        return None
    hour = int(found[1])
    if found[3]:
        hour = hour % 12 + (12 if found[3].upper() == "P" else 0)
    return iso_s(f"{year:04}-{month:02}-{day:02}T{hour:02}:{found[2]}")


def _port(name: str) -> Port:
    """Return the port in a name such as `leaf0 port 3`, `leaf0/3`, `leaf0 Ethernet1/1`."""
    forms = () if " - " in name else _ENDS
    found = next((hit for form in forms if (hit := form.fullmatch(name))), None)
    return Port(found[1].strip(), found[2].strip()) if found else Port(name, "")


def seconds(text: str) -> float | None:
    """Return a duration: a number with its unit, hours:minutes:seconds, or ISO 8601 (`PT5M`)."""
    text = text.strip()
    if hours := _CLOCK.fullmatch(text):
        lasts_s = 3600 * float(hours[1]) + 60 * float(hours[2]) + float(hours[3])
    elif found := _DURATION.fullmatch(text):
        lasts_s = float(found[1]) * UNITS_S[found[2]]
    elif (iso := _ISO_DURATION.fullmatch(text)) and any(iso.groups()):
        days, hours_, minutes, rest = (float(each or 0) for each in iso.groups())
        lasts_s = 86_400 * days + 3600 * hours_ + 60 * minutes + rest
    else:
        return None
    return lasts_s if lasts_s <= LONGEST_S else None
