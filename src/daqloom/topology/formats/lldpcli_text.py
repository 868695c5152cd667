"""Reader of `lldpcli show neighbors` (lldpd) as text, from a host or a Linux switch, and of SONiC's
`show lldp neighbors`, which prints the same.

    Interface:    Ethernet104, via: LLDP, RID: 6, Time: 0 day, 17:03:57
      Chassis:
        ChassisID:    mac 0c:42:a1:00:30:94
        SysName:      spine0
        Capability:   Bridge, on
      Port:
        PortID:       local etp1
        PortDescr:    Ethernet0
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from daqloom.topology import TopologyError
from daqloom.topology.dump_lines import counted_lines
from daqloom.topology.formats.neighbours import (
    FORWARDING,
    LARGEST_TABLE_BYTES,
    Neighbour,
    Table,
    text_of,
)

FIRST = re.compile(r"Interface:\s+(\S+), via: ([^,]+)(?:,.*)?")
"""First line of a neighbour."""
FIELDS = ("ChassisID", "SysName", "Capability", "PortID", "PortDescr")
_FIELD = re.compile(rf"\s+({'|'.join(FIELDS)}):\s*(.*?)\s*")


def read_lldpcli_text(path: Path, device: str) -> Table:
    """Return the neighbour table of a device; raises TopologyError. Unknown fields are ignored."""
    neighbours: list[Neighbour] = []
    fields: dict[str, list[str]] = defaultdict(list)
    head: re.Match[str] | None = None
    where = str(path)
    lines = counted_lines(path, "neighbours", "lldpcli show neighbors", LARGEST_TABLE_BYTES)
    for line in lines:
        if found := FIRST.fullmatch(line):
            neighbours += _neighbour(head, fields, where)
            head, fields, where = found, defaultdict(list), f"{path}, line {lines.number}"
            lines.use()
        elif head and (field := _FIELD.fullmatch(line)):
            fields[field[1]].append(field[2])
            lines.use()
        else:
            lines.ignore()
    neighbours += _neighbour(head, fields, where)
    return Table(device, str(path), neighbours, lines=lines.counts)


def _neighbour(
    head: re.Match[str] | None, fields: dict[str, list[str]], where: str
) -> Iterable[Neighbour]:
    if head is None or head[2] != "LLDP":  # lldpd may receive other protocols, too
        return ()
    if not fields["PortID"]:
        raise TopologyError(f"{where}: {head[1]} has a neighbour without PortID, as if truncated")
    # IDs have a type in front: `mac 0c:42:a1:00:30:94`, `local etp1`.
    texts = {name: text_of(next(iter(fields[name]), ""), where) for name in FIELDS}
    chassis, port = (texts[name].partition(" ")[2] for name in ("ChassisID", "PortID"))
    on = [each.partition(",")[0] for each in fields["Capability"] if each.endswith(", on")]
    forwards = any(kind in on for kind in FORWARDING) if fields["Capability"] else None
    ids = port, texts["PortDescr"]
    return (Neighbour(head[1], texts["SysName"], ids, chassis, forwards, where),)
