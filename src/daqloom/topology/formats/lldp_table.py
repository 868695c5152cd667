"""Reader of LLDP neighbour tables as switches print them: SONiC, EOS, NX-OS, Junos.

    LocalPort    RemoteDevice    RemotePortID       Capability    RemotePortDescr
    -----------  --------------  -----------------  ------------  -----------------
    Ethernet0    spine0          etp7               BR            Ethernet24
    Ethernet48   ru07            0c:42:a1:88:0a:1c  O             ens1f0
    --------------------------------------------------
    Total entries displayed:  2

Columns begin at their dashes, or at their titles in a table without dashes. A line with an empty
first column continues the line before; NX-OS writes a long name on a line of its own. Text before
the table, such as a prompt, is ignored.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from daqloom.base.line_counts import IGNORED, USED
from daqloom.base.words import plural
from daqloom.topology import TopologyError
from daqloom.topology.dump_lines import counted_lines
from daqloom.topology.formats.neighbours import LARGEST_TABLE_BYTES, Neighbour, Table, text_of

_Titles = Mapping[str, str]
"""Meaning of each column by its title, in the order of columns; empty if not used."""


def _dialect(columns: str) -> _Titles:
    """Return the titles and meanings of a text `title = meaning, …`."""
    return dict(column.split(" = ") for column in columns.split(", "))


_SONIC = _dialect(
    "LocalPort = local, RemoteDevice = device, RemotePortID = port, Capability = capability, "
    "RemotePortDescr = description"
)
_EOS = _dialect("Port = local, Neighbor Device ID = device, Neighbor Port ID = port, TTL = ")
_NX_OS = _dialect(
    "Device ID = device, Local Intf = local, Hold-time = , Capability = capability, Port ID = port"
)
_JUNOS = _dialect(
    "Local Interface = local, Parent Interface = , Chassis Id = chassis, Port info = port, "
    "System Name = device"
)
_OLD_JUNOS = {title: meaning for title, meaning in _JUNOS.items() if meaning}
_DIALECTS = (_SONIC, _EOS, _NX_OS, _JUNOS, _OLD_JUNOS)
KNOWN = "LLDP tables of SONiC, EOS, NX-OS and Junos, and the output of lldpcli"
_RULE = re.compile(r"\s*-+(?: +-+)*\s*")
_TOTAL = re.compile(r"\s*Total entries displayed:\s*([0-9]{1,9})\s*")
_PROMPT = re.compile(r"\S{1,64}[#>$%](?: .*)?")


def read_lldp_table(path: Path, device: str) -> Table:
    """Return the neighbour table of a switch; raises TopologyError."""
    titles: _Titles | None = None
    columns: list[int] = []
    has_rule = False
    neighbours: list[Neighbour] = []
    is_over = False
    first = wrapped = ""
    names_alone = 0
    lines = counted_lines(path, "neighbours", KNOWN, LARGEST_TABLE_BYTES, in_columns=True)
    for line in lines:
        where = f"{path}, line {lines.number}"
        first = first or line.strip()
        if titles is None:
            titles = _titles(line)
            columns = [line.index(title) for title in titles or ()]
        elif not line.strip() or is_over:
            continue
        elif total := _TOTAL.fullmatch(line):
            if int(total[1]) != len(neighbours):
                raise TopologyError(
                    f"{where}: {total[1]} displayed, and the table has "
                    f"{plural(len(neighbours), 'entry', 'entries')}; it may be truncated"
                )
            is_over = True
        elif _RULE.fullmatch(line):
            dashes = [each.start() for each in re.finditer("-+", line)]
            if neighbours:
                continue
            if len(dashes) != len(columns):
                raise TopologyError(f"{where}: {len(dashes)} columns; expected {len(columns)}")
            columns, has_rule = dashes, True
        elif neighbours and _PROMPT.fullmatch(line):
            is_over = True
        elif titles is _NX_OS and not wrapped and len(line.split()) == 1:
            wrapped = text_of(line, where)
            names_alone += 1
        elif cells := _cells(line, columns, where, has_rule):
            row = dict(zip(titles.values(), cells, strict=True))
            if wrapped and row["device"]:
                raise TopologyError(f'{where}: expected the rest of the row of "{wrapped[:60]}"')
            row["device"] = row["device"] or wrapped
            wrapped = ""
            if neighbour := _neighbour(row, where):
                neighbours.append(neighbour)
    if titles is None:
        what = f'its first line is "{first[:60]}"' if first else "it is empty"
        raise TopologyError(f"{path} has no table of neighbours: {what}; supported are {KNOWN}")
    if wrapped or (titles is _SONIC and not is_over):
        end = f'after "{wrapped[:60]}"' if wrapped else "without `Total entries displayed`"
        raise TopologyError(f"{path} ends {end}; it may be truncated")
    used = len(neighbours) + names_alone
    counts = {USED: used, IGNORED: lines.number - used}
    return Table(device, str(path), neighbours, is_switch=True, lines=counts)


def _titles(line: str) -> _Titles | None:
    """Return the column titles and meanings if the line consists of a known set of titles."""
    words = line.split()
    return next((each for each in _DIALECTS if " ".join(each).split() == words), None)


def _cells(line: str, columns: Sequence[int], where: str, has_rule: bool) -> list[str]:
    """Return the cells of a row. In a table without dashes, a cell wider than its column shifts the
    cells behind it; such a row must have exactly one word for each column."""
    starts = sorted(columns)
    if all(not line[at - 1 : at].strip() for at in starts[1:]) and not line[: starts[0]].strip():
        ends = pairwise([*starts, len(line) + 1])
        return [text_of(line[begin:end], where) for begin, end in ends]
    if not has_rule and len(words := line.split()) == len(columns):
        return [text_of(word, where) for word in words]
    below = "dashes" if has_rule else "titles"
    raise TopologyError(f'{where}: "{line[:60]}" is not in columns below their {below}')


def _neighbour(cells: Mapping[str, str], where: str) -> Neighbour | None:
    port = full_name(cells["local"])
    if not port:
        return None
    capability = cells.get("capability", "")
    forwards = bool({"B", "R"} & set(capability)) if capability else None
    ids = full_name(cells["port"]), cells.get("description", "")
    return Neighbour(port, cells["device"], ids, cells.get("chassis", ""), forwards, where)


def full_name(port: str) -> str:
    """Return a port's name in full, for abbreviations of EOS and NX-OS such as `Et1`, `Eth1/1`."""
    return re.sub(r"^(?:Et|Eth)(?=\d)", "Ethernet", re.sub(r"^Ma(?=\d)", "Management", port))
