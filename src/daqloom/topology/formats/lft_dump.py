"""Reader of forwarding tables from OpenSM (`opensm-lfts.dump`) and `dump_lfts.sh` (ibroute).

    Unicast lids [0-78] of switch Lid 2 guid 0x0000000000200000 ('leaf00'):
    0x0001 001 # Channel Adapter portguid 0x0000000000100001: 'H00-00'
    …
    78 lids dumped

Each switch has a section with a line for each LID: the output port and, after `#` or `:`, the owner
of the LID. The `.fdbs` of OpenSM and ibdiagnet have no hosts' names and no line after a section:

    osm_ucast_mgr_dump_ucast_routes: Switch 0x0000000000200000
    LID    : Port : Hops : Optimal
    0x0001 : 001  : 00   : yes
    0x0002 : UNREACHABLE
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from daqloom.base.line_counts import CountedLines
from daqloom.base.words import plural
from daqloom.topology import TopologyError
from daqloom.topology.dump_lines import counted_lines
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.formats.survey import LONGEST_DESCRIPTION
from daqloom.topology.routing.routes import Defect, no_routes

_SWITCH = re.compile(r"Unicast lids \[.*\] of switch .*?guid (?:0x)?([0-9a-fA-F]{1,16}) \((.*)\):?")
_ENTRY = re.compile(r"(0x[0-9a-fA-F]{1,4})\s+([0-9]{1,3})\b(.*)")
_GUID = re.compile(r"portguid (?:0x)?([0-9a-fA-F]{1,16})\b")
_END = re.compile(r"[0-9]+ (?:valid )?lids dumped.*")
_ROUTES = re.compile(r"\w+: Switch (0x[0-9a-fA-F]{1,16})\s*")
_ROUTE = re.compile(r"(0x[0-9a-fA-F]{1,4})\s*:\s*([0-9]{1,3})\s*:.*")
_NO_ROUTE = re.compile(r"0x[0-9a-fA-F]{1,4}\s*:\s*(?:UNREACHABLE|-+).*")
_MARKS = re.compile(
    r"\s*(#.*)?|\s*LID\s*:\s*Port\s*:.*|\s*Lid\s+Out\s+Destination\s*|\s*Port\s+Info\s*"
)


class _Entry(NamedTuple):
    line: int
    guid: int
    port: int


class _Table(NamedTuple):
    line: int
    guid: int
    name: str
    entries: dict[int, _Entry]
    """Entries of the forwarding table by LID."""


def read_lft_dump(
    path: Path, fabric: Fabric, read: dict[str, Mapping[str, int]] | None = None
) -> tuple[NDArray[np.int16], list[str]]:
    """Return output ports (switches, hosts), 0 without route, and warnings; raises TopologyError.
    An entry belongs to the host with its port GUID, else to the host with its LID. For a host with
    several LIDs (LMC), the base LID counts. `read` receives the counts of the file's lines."""
    places = {node.guid: index for index, node in enumerate(fabric.switches) if node.guid}
    ports = no_routes(fabric)
    warnings: list[str] = []
    first_line: dict[int, int] = {}
    strangers = 0
    lines = counted_lines(path, "forwarding tables", "those of OpenSM and dump_lfts.sh, and .fdbs")
    if read is not None:
        read[path.name] = lines.counts
    for table in _tables(path, lines):
        index = places.get(table.guid)
        if index is None:
            if not strangers:
                stranger = f'{path}, line {table.line}: the table of "{table.name}"'
            strangers += 1
            continue
        if index in first_line:
            first = first_line[index]
            _fail(path, table.line, f'switch "{table.name}" has a table already in line {first}')
        first_line[index] = table.line
        ports[index] = _row(path, fabric, index, table)
    if not first_line:
        raise TopologyError(
            f"{path} holds no table of a switch of {fabric.name}; expected a dump of its tables "
            f'such as opensm-lfts.dump, with lines "Unicast lids … of switch …"'
        )
    for index, switch in enumerate(fabric.switches):
        if index not in first_line:
            refusal = f'{path} holds no table of switch "{switch.name}" (GUID 0x{switch.guid:016x})'
            raise TopologyError(f"{refusal}; it may be cut short or come from another fabric")
    if strangers:
        warnings.append(
            f"{stranger} passed over; {plural(strangers, 'is of a switch', 'are of switches')} "
            f"that {fabric.name} lacks"
        )
    warnings += _without_route(path, fabric, ports, first_line)
    return ports, warnings


def _tables(path: Path, lines: CountedLines) -> Iterator[_Table]:
    table: _Table | None = None
    has_end = True
    for line in lines:
        number = lines.number
        if routes := _ROUTES.fullmatch(line.strip()):
            if table is not None and not has_end:
                yield table
            guid = int(routes[1], 16)
            table, has_end = _Table(number, guid, f"0x{guid:x}", {}), False
        elif header := _SWITCH.fullmatch(line.strip()):
            has_end = True
            if table is not None:
                _fail(path, number, f'the table of switch "{table.name}" before it has no end')
            name = header[2].strip("'")[:LONGEST_DESCRIPTION]
            table = _Table(number, int(header[1], 16), name, {})
        elif _END.fullmatch(line.strip()):
            if table is None:
                _fail(path, number, "a table ends without a beginning")
            yield table
            table = None
        elif entry := _ROUTE.fullmatch(line) or _ENTRY.fullmatch(line):
            if table is None:
                _fail(path, number, "an entry before any line `Unicast lids … of switch …`")
            lid = int(entry[1], 16)
            if lid in table.entries:
                first = table.entries[lid].line
                _fail(path, number, f'switch "{table.name}" has LID {lid} already in line {first}')
            owner = _GUID.search(line)
            table.entries[lid] = _Entry(number, int(owner[1], 16) if owner else 0, int(entry[2]))
        elif _MARKS.fullmatch(line) or _NO_ROUTE.fullmatch(line):
            lines.ignore()
            continue
        else:
            of_switch = f'switch "{table.name}": ' if table else ""
            _fail(
                path,
                number,
                f'{of_switch}cannot read "{line[:60]}"; expected an entry such as `0x0001 001 # …`',
            )
        lines.use()
    if table is not None and not has_end:
        yield table
    elif table is not None:
        sentence = f'the table of switch "{table.name}" has no end; the file may be cut short'
        _fail(path, table.line, sentence)


def _row(path: Path, fabric: Fabric, place: int, table: _Table) -> NDArray[np.int16]:
    """Return the output ports of one switch, by host."""
    switch = fabric.switches[place]
    for lid, entry in table.entries.items():
        if entry.port > switch.ports:
            _fail(
                path,
                entry.line,
                f'switch "{switch.name}" sends LID {lid} by port {entry.port}; '
                f"it has ports 1 to {switch.ports}",
            )
    return np.array([entry.port if entry else 0 for entry in _of_hosts(fabric, table)], np.int16)


def _of_hosts(fabric: Fabric, table: _Table) -> list[_Entry | None]:
    """Return the table entries of one switch, by host."""
    by_guid: dict[int, dict[int, _Entry]] = {}
    for lid, entry in table.entries.items():
        if entry.guid:
            by_guid.setdefault(entry.guid, {})[lid] = entry
    entries: list[_Entry | None] = []
    for node in fabric.hosts:
        own = by_guid.get(node.guid, {}) if node.guid else {}
        found = own.get(node.lid) or (own[min(own)] if own else None)
        if found is None and node.lid:
            found = table.entries.get(node.lid)
            if found is not None and found.guid and node.guid:
                found = None  # the LID is that of another node in this dump
        entries.append(found)
    return entries


def with_lines(path: Path, fabric: Fabric, defects: tuple[Defect, ...]) -> tuple[Defect, ...]:
    """Return the defects of a dump's tables with the line at fault: the entry for the first
    destination (for a loop: in its first switch), or the start of the switch's table."""
    lines: dict[tuple[int, int], int] = {}
    for table in _tables(path, counted_lines(path, "forwarding tables", "")):
        broken = [defect for defect in defects if defect.switch >= 0]
        broken = [defect for defect in broken if fabric.switches[defect.switch].guid == table.guid]
        entries = _of_hosts(fabric, table) if broken else []
        for defect in broken:
            entry = entries[defect.destinations[0]]
            lines[defect.switch, defect.port] = entry.line if entry else table.line
    return tuple(
        replace(defect, sentence=f"{path.name}, line {lines[at]}: {defect.sentence}")
        if (at := (defect.switch, defect.port)) in lines
        else defect
        for defect in defects
    )


def _without_route(
    path: Path, fabric: Fabric, ports: NDArray[np.int16], lines: dict[int, int]
) -> list[str]:
    """Return a sentence about the hosts to which some switch has no route."""
    missing = np.argwhere(ports == 0)
    if not len(missing):
        return []
    switch, host = missing[0]
    node = fabric.hosts[host]
    return [
        f'{path}, line {lines[int(switch)]}: switch "{fabric.switches[switch].name}" has no route '
        f"to {node.name} (LID {node.lid}); {plural(len(missing), 'route is', 'routes are')} "
        "missing in all"
    ]


def _fail(path: Path, line: int, sentence: str) -> NoReturn:
    raise TopologyError(f"{path}, line {line}: {sentence}")
