"""Reader of a real switch's packet buffers from its own files: SONiC's `config_db.json`, Junos'
page `show class-of-service shared-buffer` and its configuration.

Both describe a shared memory with dynamic thresholds: a queue may hold alpha times the free part of
the pool and its reserved part. SONiC writes alpha as a power, `dynamic_th` n for 2^n; Junos as a
number from 0 to 10, `dynamic-threshold` n for 2^(n - 7). Only egress buffers are used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daqloom.base.line_counts import MALFORMED, CountedLines
from daqloom.base.words import did_you_mean, join_names, natural_key
from daqloom.topology import TopologyError
from daqloom.topology.dump_lines import check_understood, whole_text

LARGEST_BYTES = 16 << 20
KINDS = (
    "config_db.json of SONiC, Junos' `show class-of-service shared-buffer` and its configuration "
    "of class-of-service shared-buffer"
)
LOWEST_ALPHA = 2.0**-7
"""Alpha of Junos for `dynamic-threshold` 0; alpha doubles with each step."""
MOST_LEVEL = 10
"""The highest `dynamic-threshold` of Junos."""
POWERS = range(-8, 8)
"""Values of SONiC's `dynamic_th`."""
NO_THRESHOLD = 1e6
"""Alpha without effect, for a queue with a static threshold."""


@dataclass(frozen=True)
class BufferChoice:
    """Values that the files lack, and the choice of the queue whose buffers are used."""

    ports: int | None = None
    cell_bytes: int | None = None
    """0: no cells."""
    alpha: float | None = None
    queue: int = 0
    """Number of the queue, at each port, that carries the traffic (SONiC)."""
    profile: str = ""
    """Buffer profile of that queue (SONiC); by default its profile in BUFFER_QUEUE."""


@dataclass(frozen=True)
class Buffers:
    """Buffers of a switch, convertible to keys of a table `network.switch.NAME`."""

    origin: str
    """Origin of the numbers, in words."""
    shared_bytes: int
    reserved_bytes: int
    """Reserved bytes of all ports together."""
    ports: int
    alpha: float
    cell_bytes: int
    limit_bytes: int = 0
    """Largest occupancy of a port; 0: no such limit."""
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Counts of used, ignored and malformed lines or table rows, by file."""
    unit: str = "line"
    """Unit of `counts`."""

    def table(self) -> dict[str, Any]:
        """Return the keys and values of the table."""
        return {
            "model": "shared-memory",
            "buffer": f"{self.shared_bytes + self.reserved_bytes} B",
            "dedicated": f"{self.reserved_bytes} B",
            "alpha": self.alpha,
            "port_limit": f"{self.limit_bytes} B",
            "cell_size": f"{self.cell_bytes} B",
            "cell_metadata": "0 B",
            "ports": self.ports,
        }


def read_buffers(paths: Sequence[Path], choice: BufferChoice) -> Buffers:
    """Return the buffers that files of one switch describe. Raises TopologyError if a file was not
    understood, or if a number is missing both in the files and in `choice`."""
    texts = {path: whole_text(path, LARGEST_BYTES, f"known are {KINDS}") for path in paths}
    [first, *others] = texts
    if not texts[first].lstrip().startswith("{"):
        return _junos(texts, choice)
    if others:
        raise TopologyError(f"{others[0]}: {first} describes the whole switch; give it alone")
    return _sonic(first, texts[first], choice)


def _ports_and_cell(
    where: str, choice: BufferChoice, ports: int | None, missing: str = ""
) -> tuple[int, int]:
    """Return number of ports and size of a cell (B); raises TopologyError if either is missing."""
    ports, cell_bytes = choice.ports or ports, choice.cell_bytes
    lacks = [missing] if missing else []
    if not ports:
        lacks.append("the number of ports (--ports 33)")
    if cell_bytes is None:
        lacks.append('the size of a cell (--cell-size "254 B", or "0 B" to count bytes)')
    if lacks or not ports or cell_bytes is None:
        raise TopologyError(f"{where} lacks {join_names(lacks)}; give what is missing")
    return ports, cell_bytes


# ---- SONiC --------------------------------------------------------------------------------------

_TABLES = ("BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_QUEUE")
_OTHERS = re.compile(r"BUFFER_\w+|CABLE_LENGTH|DEFAULT_LOSSLESS_BUFFER_PARAMETER|LOSSLESS_\w+")
_REFERENCE = re.compile(r"\[BUFFER_(?:POOL|PROFILE)\|([^\]]+)\]")
_QUEUES = re.compile(r"(.+)\|([0-9]{1,2})(?:-([0-9]{1,2}))?")
_Rows = Mapping[str, Any]


def _sonic(path: Path, text: str, choice: BufferChoice) -> Buffers:
    """Return pool, reserved bytes and threshold of the egress queue that `choice` selects."""
    try:
        tables = json.loads(text)
    except (ValueError, RecursionError):
        raise TopologyError(f"{path} begins like JSON and is none; known are {KINDS}") from None
    missing = [name for name in _TABLES if not isinstance(tables.get(name), dict)]
    if missing:
        raise TopologyError(f"{path} has no table {missing[0]}; known are {KINDS}")
    rows = CountedLines(str(path), (), "buffers", KINDS)
    for name in filter(_OTHERS.fullmatch, tables):
        if name not in _TABLES and isinstance(tables[name], dict):
            rows.ignore(len(tables[name]))
    profile = choice.profile or _profile(path, tables["BUFFER_QUEUE"], choice.queue, rows)
    known = tables["BUFFER_PROFILE"]
    row = _row(path, "BUFFER_PROFILE", known, profile)
    pool = _name(row.get("pool"))
    egress = _row(path, "BUFFER_POOL", tables["BUFFER_POOL"], pool)
    if egress.get("type") == "ingress":
        refusal = f"{path}: profile {profile} takes from {pool}, which is for ingress"
        raise TopologyError(f"{refusal}; give the profile of a queue")
    rows.use(2)
    rows.ignore(len(known) + len(tables["BUFFER_POOL"]) - 2)
    check_understood(rows)
    where = f"{path}: BUFFER_PROFILE|{profile}"
    reserved = _whole(where, row, "size", "0")
    shared = _whole(f"{path}: BUFFER_POOL|{pool}", egress, "size")
    alpha, limit, threshold = NO_THRESHOLD, 0, "static"
    if "dynamic_th" in row:
        power = _whole(where, row, "dynamic_th")
        if power not in POWERS:
            raise TopologyError(f"{where} has dynamic_th = {power}; expected -8 to 7")
        alpha, threshold = 2.0**power, f"alpha = 2^{power}"
    elif "static_th" in row:
        limit = reserved + _whole(where, row, "static_th")
    else:
        raise TopologyError(f"{where} has neither dynamic_th nor static_th; expected one of them")
    ports, cell_bytes = _ports_and_cell(str(path), choice, _front_ports(tables.get("PORT")))
    origin = f"{path.name}: pool {pool}, profile {profile} of queue {choice.queue}, {threshold}"
    counts = {path.name: rows.counts}
    sizes = shared, ports * reserved
    return Buffers(origin, *sizes, ports, alpha, cell_bytes, limit, counts, "row")


def _profile(path: Path, queues: _Rows, queue: int, rows: CountedLines) -> str:
    """Return the buffer profile that a queue has on all ports."""
    profiles: dict[str, str] = {}
    numbers: set[int] = set()
    for key, row in queues.items():
        match = _QUEUES.fullmatch(key)
        profile = _name(row.get("profile")) if isinstance(row, dict) else ""
        if not match or not profile:
            rows.count_malformed(f"BUFFER_QUEUE|{key}", "PORT|QUEUES with a profile")
            continue
        first, last = int(match[2]), int(match[3] or match[2])
        numbers |= {*range(first, last + 1)}
        if first <= queue <= last:
            profiles.setdefault(profile, key)
            rows.use()
        else:
            rows.ignore()
    if not profiles:
        if numbers or rows.counts[MALFORMED]:
            check_understood(rows)
        known = ", ".join(map(str, sorted(numbers)[:16])) or "none"
        raise TopologyError(f"{path} has no profile for queue {queue}; --queue may be {known}")
    if len(profiles) > 1:
        one, other = list(profiles.items())[:2]
        raise TopologyError(
            f"{path}: queue {queue} has profile {one[0]} at {one[1]} and {other[0]} at {other[1]}; "
            "give one by --profile"
        )
    return next(iter(profiles))


def _row(path: Path, table: str, rows: _Rows, name: str) -> _Rows:
    row = rows.get(name)
    if not isinstance(row, dict):
        some = ", ".join(sorted(map(str, rows), key=natural_key)[:8]) or "none"
        hint = did_you_mean(name, map(str, rows), f"known are {some}")
        raise TopologyError(f"{path} has no row {name[:80]} in {table}; {hint}")
    return row


def _name(text: object) -> str:
    """Return the name in a reference: `egress_lossy_pool`, or `[BUFFER_POOL|egress_lossy_pool]`."""
    found = _REFERENCE.fullmatch(text) if isinstance(text, str) else None
    return found[1] if found else str(text or "")


def _whole(where: str, row: _Rows, key: str, default: str = "") -> int:
    text = str(row.get(key, default)).strip()
    if re.fullmatch("-?[0-9]{1,18}", text) and (key == "dynamic_th" or not text.startswith("-")):
        return int(text)
    if not text:
        raise TopologyError(f"{where} has no {key}; give the file of a switch with fixed buffers")
    raise TopologyError(f"{where} has {key} = {text[:40]}; expected a whole number")


def _front_ports(ports: object) -> int:
    """Return the number of front-panel ports; 0 if the file has no table of ports."""
    if not isinstance(ports, dict):
        return 0
    rows = [row for row in ports.values() if isinstance(row, dict)]
    return sum(row.get("role", "Ext") == "Ext" for row in rows)


# ---- Junos --------------------------------------------------------------------------------------

_SECTION = re.compile(r"(Ingress|Egress)\s*:?")
_AMOUNT = re.compile(r"([A-Z][A-Za-z ]+?)\s*:\s*([0-9]+(?:\.[0-9]+)?)\s*(Bytes|KB|MB|GB)")
_UNITS = {"Bytes": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_NO_LINE = re.compile(r"\{\w+:\d+\}|fpc\d+:?|-+|\S+@\S+[>#].*")
OWN = "buffer-dynamic-threshold"
_EGRESS = ("class-of-service", "shared-buffer", "egress")
_SHARED = _EGRESS[:2]


def _junos(texts: Mapping[Path, str], choice: BufferChoice) -> Buffers:
    """Return the lossy partition of the egress buffer, with the configuration's threshold."""
    amounts: dict[str, int] = {}
    lossy: dict[str, int] = {}
    counts = {}
    for path, text in texts.items():
        lines = CountedLines(str(path), text.splitlines(), "the egress buffer", KINDS)
        if re.search(r"^\s*Egress\s*:?\s*$", text, re.MULTILINE):
            amounts |= _page(path, lines)
        else:
            lossy |= _configuration(lines, has_buffers=_SHARED[1] in text)
        check_understood(lines)
        counts[path.name] = lines.counts
    where = " and ".join(path.name for path in texts)
    if not amounts:
        raise TopologyError(
            f"{where} gives percentages of the buffer and not its size; give the output of `show "
            "class-of-service shared-buffer` too"
        )
    if absent := [name for name in ("Dedicated Buffer", "Lossy") if name not in amounts]:
        raise TopologyError(f"{where} has no {absent[0]} of Egress; expected that line")
    level, how = lossy.get("dynamic-threshold"), "--alpha"
    alpha, missing = choice.alpha, ""
    if alpha is None and OWN in lossy:
        missing = f"one alpha, as a scheduler has a {OWN} of its own (--alpha 8)"
    elif alpha is None and level is not None:
        alpha, how = LOWEST_ALPHA * 2**level, f"dynamic-threshold {level}, alpha = 2^{level - 7}"
    elif alpha is None:
        missing = "alpha (--alpha 8, or the configuration with dynamic-threshold as another file)"
    ports, cell_bytes = _ports_and_cell(where, choice, None, missing)
    assert alpha is not None  # else _ports_and_cell has refused
    origin = f"{where}: lossy partition of the egress buffer, {how}"
    shared, reserved = amounts["Lossy"], amounts["Dedicated Buffer"]
    return Buffers(origin, shared, reserved, ports, alpha, cell_bytes, 0, counts)


def _page(path: Path, lines: CountedLines) -> dict[str, int]:
    """Return the amounts in the section Egress (B), by name."""
    sizes: dict[str, int] = {}
    section = ""
    for line in lines:
        text = line.strip()
        if heading := _SECTION.fullmatch(text):
            section = heading[1]
            lines.use()
        elif section == "Ingress" or not text or _NO_LINE.fullmatch(text):
            lines.ignore()
        elif section and (amount := _AMOUNT.fullmatch(text)):
            name, size = amount[1], round(float(amount[2]) * _UNITS[amount[3]])
            if sizes.setdefault(name, size) != size:
                raise TopologyError(
                    f"{path}, line {lines.number}: {name} is {size} B here and {sizes[name]} B "
                    "before; give the page of one switch"
                )
            lines.use()
        elif section:
            lines.count_malformed(line, "NAME : SIZE KB")
        else:
            lines.outside(line)
    return sizes


def _configuration(lines: CountedLines, *, has_buffers: bool) -> dict[str, int]:
    """Return the numbers of the egress buffer's lossy partition: percent and dynamic-threshold.
    `OWN` is added if a scheduler has a threshold."""
    sizes: dict[str, int] = {}
    for line, words in _statements(lines):
        is_shared = words[:2] == _SHARED
        if not has_buffers:
            lines.outside(line)
        elif _SHARED[1] in words and ("inactive:" in words or not is_shared):
            lines.count_malformed(line, "an active statement of class-of-service shared-buffer")
        elif words[:2] == ("class-of-service", "schedulers") and OWN in words:
            sizes[OWN] = 1
            lines.use()
        elif words[:5] != (*_EGRESS, "buffer-partition", "lossy"):
            lines.ignore()
        elif len(words) == 7 and words[5] in ("percent", "dynamic-threshold"):
            most = 100 if words[5] == "percent" else MOST_LEVEL
            if not (words[6].isascii() and words[6].isdecimal() and int(words[6][:9]) <= most):
                lines.count_malformed(line, f"{words[5]} 0 to {most}")
                continue
            sizes[words[5]] = int(words[6])
            lines.use()
        elif len(words) == 5:
            lines.ignore()
        else:
            lines.count_malformed(line, "percent or dynamic-threshold")
    return sizes


def _statements(lines: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each line and the words of its full statement, from `set` lines or braces."""
    path: list[tuple[str, ...]] = []
    for line in lines:
        text = re.sub(r"/\*.*?\*/|##?.*$", "", line).strip()
        words = tuple(text.rstrip("{;").split())
        if words[:1] == ("set",):
            yield line, words[1:]
        elif text.endswith("{"):
            path.append(words)
            yield line, tuple(word for each in path for word in each)
        elif text == "}":
            if path:
                path.pop()
            yield line, ()
        else:
            yield line, (*(word for each in path for word in each), *words)
