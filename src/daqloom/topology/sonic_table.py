"""What `show lldp table` prints on a SONiC switch.

    Capability codes: (R) Router, (B) Bridge, (O) Other
    LocalPort    RemoteDevice    RemotePortID       Capability    RemotePortDescr
    -----------  --------------  -----------------  ------------  -----------------
    Ethernet0    spine0          etp7               BR            Ethernet24
    Ethernet48   ru07            0c:42:a1:88:0a:1c  O             ens1f0
    --------------------------------------------------
    Total entries displayed:  2

Columns begin where their dashes do; a line that has nothing in the first continues the one before.
`eth0` is the switch's port for management.
"""

import re
from itertools import pairwise
from pathlib import Path

from daqloom.topology import TopologyError
from daqloom.topology.dump_lines import lines_of
from daqloom.topology.neighbours import LARGEST_TABLE_BYTES, Neighbour, Table, text_of
from daqloom.words import counted

MANAGEMENT = "eth0"

_HEADER = ["LocalPort", "RemoteDevice", "RemotePortID", "Capability", "RemotePortDescr"]
_RULE = re.compile(r"\s*-+(?: +-+)*\s*")
_TOTAL = re.compile(r"\s*Total entries displayed:\s*([0-9]{1,9})\s*")


def read_sonic_table(path: Path, device: str) -> Table:
    """The table of a switch; raises TopologyError. What is before it, as a prompt, is no matter."""
    columns: list[int] = []
    header = False
    neighbours: list[Neighbour] = []
    for number, line in lines_of(path, LARGEST_TABLE_BYTES):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        if columns and (total := _TOTAL.fullmatch(line)):
            if int(total[1]) != len(neighbours):
                raise TopologyError(
                    f"{where}: {total[1]} displayed, and the table has "
                    f"{counted(len(neighbours), 'entry', 'entries')}; it may be truncated"
                )
            return Table(device, str(path), neighbours, is_switch=True, management=MANAGEMENT)
        if line.split() == _HEADER:
            header = True
        elif _RULE.fullmatch(line):
            if header and not columns:
                columns = [dashes.start() for dashes in re.finditer("-+", line)]
                if len(columns) != len(_HEADER):
                    raise TopologyError(f"{where}: {len(columns)} columns; expected {len(_HEADER)}")
        elif columns and (neighbour := _neighbour(line, columns, where)):
            neighbours.append(neighbour)
    if not columns:
        raise TopologyError(f"{path} is not output of `show lldp table`: it has no LocalPort")
    raise TopologyError(f"{path} ends without `Total entries displayed`; it may be truncated")


def _neighbour(line: str, columns: list[int], where: str) -> Neighbour | None:
    if line[: columns[0]].strip() or any(line[at - 1 : at].strip() for at in columns[1:]):
        raise TopologyError(f'{where}: "{line[:60]}" is not in columns below their dashes')
    cells = [text_of(line[begin:end], where) for begin, end in pairwise([*columns, len(line) + 1])]
    port, name, port_id, capability, description = cells
    if not port:
        return None
    device = name or port_id or description
    if not device:
        raise TopologyError(f"{where}: {port} has a neighbour without name and port")
    forwards = bool({"B", "R"} & set(capability)) if capability else None
    return Neighbour(port, device, (port_id, description), "", forwards, where)
