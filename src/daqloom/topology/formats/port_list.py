"""Reader of the list of ports that `ibnetdiscover -p` prints.

    SW   3  7 0x00000000000000b1 4x EDR - CA  12  1 0x00000000000000a1 ( 'leaf0' - 'node01 HCA-1' )
    SW   3 11 0x00000000000000b1 4x ???                                  'leaf0'

A line has kind, LID, port and GUID of both ends, or of one end if the port has no link.
"""

import re
from collections.abc import Iterator

from daqloom.base.line_counts import CountedLines
from daqloom.topology.formats.link_rows import KINDS, LinkEnd, LinkRow

SUBJECT = "links of ibnetdiscover -p"
_END = r"(CA|SW|RT)\s+(\d{1,5})\s+(\d{1,3})\s+(0x[0-9a-fA-F]{1,16})"
FIRST = re.compile(_END)
"""Beginning of a line."""
_BOTH = re.compile(
    rf"{_END}\s+(\d{{1,2}})x\s+(\S+)\s+-\s+{_END}\s+\(\s*'(.{{0,200}}?)'\s+-\s+'(.{{0,200}}?)'\s*\)\s*"
)
_ALONE = re.compile(rf"{_END}\s+(\S{{1,3}})x\s+(\S+)\s+'(.{{0,200}}?)'\s*")


def port_list_rows(lines: CountedLines) -> Iterator[LinkRow]:
    """Yield a row for each port."""
    for line in lines:
        if both := _BOTH.fullmatch(line):
            lines.use()
            near, far = both.groups()[:4], both.groups()[6:10]
            here, there = (
                LinkEnd(int(lid), int(port), name.strip(), int(guid, 16), KINDS[kind])
                for (kind, lid, port, guid), name in ((near, both[11]), (far, both[12]))
            )
            yield LinkRow(lines.number, here, there, both[5], both[6])
        elif alone := _ALONE.fullmatch(line):
            lines.use()
            kind, lid, port, guid = alone.groups()[:4]
            here = LinkEnd(int(lid), int(port), alone[7].strip(), int(guid, 16), KINDS[kind])
            yield LinkRow(lines.number, here, None)
        else:
            lines.outside(line, "SW 3 7 0x… 4x EDR - CA 12 1 0x… ( 'leaf0' - 'node01' )")
