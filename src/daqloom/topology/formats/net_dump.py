"""Reader of ibdiagnet's `.net_dump`, which has a block of lines for each switch:

"MF0;leaf0:MQM9700/U1", Mellanox, 0x00000000000000b0, LID 3
#  : IB# : Sta : PhysSta : MTU : LWA : LSA : FEC mode : Retran : Neighbor Guid : N# : NLID : …
1  : 1   : ACT : LINK UP : 5   : 4x  : 25  : NO-FEC : NO-RTR : 0x… : 1 : 12 : "node01 mlx5_0"
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from daqloom.base.line_counts import CountedLines
from daqloom.topology.formats.link_rows import LinkEnd, LinkRow
from daqloom.topology.formats.subnet_list import SPEEDS

SUBJECT = "ports of ibdiagnet's net_dump"
FIRST = re.compile(r'".*", *[^,]*, *0x[0-9a-fA-F]+, *LID')
"""Beginning of a switch."""
_SWITCH = re.compile(
    r'"?(?P<name>.{0,200}?)"?,\s*[^,]{0,80},\s*(?P<guid>0x[0-9a-fA-F]{1,16}),\s*LID:?\s*(?P<lid>\d{1,5})\s*'
)
_COLUMNS = re.compile(r"\s*#\s*:\s*IB#\s*:.*")
_DUMPED = 13
"""Fields of a row."""


def net_dump_rows(lines: CountedLines) -> Iterator[LinkRow]:
    """Yield a row for each port."""
    switch: LinkEnd | None = None
    for line in lines:
        if head := _SWITCH.fullmatch(line):
            name = head["name"].strip()
            switch = LinkEnd(int(head["lid"]), 0, name, int(head["guid"], 16), "switch")
            lines.use()
        elif _COLUMNS.fullmatch(line) or line.startswith(("#", "-")):
            lines.ignore()
        elif switch and len(cells := [each.strip() for each in line.split(" : ", _DUMPED - 1)]) > 3:
            row = _row(lines.number, switch, cells)
            if row is None:
                lines.count_malformed(line, 'N : N : ACT : LINK UP : … : 0xGUID : N : LID : "name"')
            else:
                lines.use()
                yield row
        else:
            lines.outside(line, '"switch", vendor, 0xGUID, LID N, then a row for each port')


def _row(number: int, switch: LinkEnd, cells: list[str]) -> LinkRow | None:
    try:
        here = replace(switch, port=int(cells[1]))
        if cells[2] in ("DOWN", "DWN", "N/A"):
            return LinkRow(number, here, None)
        if len(cells) < _DUMPED:
            return None
        there = LinkEnd(int(cells[11]), int(cells[10]), cells[12].strip('" '), int(cells[9], 16))
    except ValueError:
        return None
    width = cells[5].removesuffix("x")
    return LinkRow(number, here, there, width, SPEEDS.get(cells[6], cells[6]), cells[2] == "ACT")
