"""Reader of `iblinkinfo` output: a block for each device, or with `-l` both ends on one line.

    Switch: 0x0002c903000000b0 leaf0:
         3    1[  ] ==( 4X  25.78125 Gbps Active/  LinkUp)==>   1    1[  ] "node01 mlx5_0" ( )

    0x0002c903000000b0 "leaf0"   3    1[  ] ==( 4X … LinkUp)==>  0x…  1    1[  ] "node01" ( )

Each line lists LID and number of a port, then LID and number of the port at the other end.
"""

import re
from collections.abc import Iterator

from daqloom.base.line_counts import CountedLines
from daqloom.topology.formats.link_rows import KINDS, LinkEnd, LinkRow
from daqloom.topology.formats.survey import Kind

SUBJECT = "links of iblinkinfo"
FIRST = re.compile(r".*==\(.*\)==>|(CA|Switch|RT|Router): (0x\S+ )?.*:\s*$")
"""Beginning of a line in the output of iblinkinfo."""
_LANE_GBPS = {
    "2.5": "SDR",
    "5.0": "DDR",
    "10.0": "QDR",
    "FDR10": "FDR10",
    "10.3125": "FDR10",
    "14.0625": "FDR",
    "25.78125": "EDR",
    "26.5625": "EDR",
    "53.125": "HDR",
    "106.25": "NDR",
    "212.5": "XDR",
}
"""Generation by lane signalling rate, as iblinkinfo prints it; some versions omit decimals."""
_HEAD = re.compile(r"(CA|Switch|RT|Router): (?:(0x[0-9a-f]{1,16}) )?(.{0,200}):\s*", re.IGNORECASE)
_LINK = re.compile(
    r'\s*(?:(?P<guid>0x[0-9a-fA-F]{1,16})\s+(?:"\s*(?P<name>.{0,200}?)\s*"\s+)?)?'
    r"(?P<lid>\d{1,5})\s+(?P<port>\d{1,3})\[.{0,4}\]\s+==\(\s*(?P<state>[^()]*?)\s*\)==>\s*"
    r"(?:(?P<far_guid>0x[0-9a-fA-F]{1,16})\s+)?"
    r'(?:(?P<far_lid>\d{1,5})\s+(?P<far_port>\d{1,3}))?\s*\[.{0,4}\]\s+"(?P<far_name>.{0,200})"'
    r"\s*\((?P<note>.*)\)\s*"
)
_STATE = re.compile(r"(\d{1,2})X\s+(\S+)(?: Gbps)?\s+(\S+)/\s*(\S+)")
_COULD_BE = re.compile(r"Could be (\S+(?: Gbps)?)")


def iblinkinfo_rows(lines: CountedLines) -> Iterator[LinkRow]:
    """Yield a row for each port."""
    kind: Kind | None = None
    guid, name = 0, ""
    for line in lines:
        if head := _HEAD.fullmatch(line):
            kind = KINDS.get(head[1].upper(), "router")
            guid, name = int(head[2] or "0", 16), head[3].strip()
            lines.use()
        elif (link := _LINK.fullmatch(line)) and (link["name"] or kind):
            own_guid = int(link["guid"] or "0", 16) or guid
            one_line = link["name"] is not None
            here = LinkEnd(
                int(link["lid"]),
                int(link["port"]),
                link["name"] if one_line else name,
                own_guid,
                None if one_line else kind,
            )
            there = None
            if link["far_lid"]:
                far_guid = int(link["far_guid"] or "0", 16)
                far = int(link["far_lid"]), int(link["far_port"]), link["far_name"].strip()
                there = LinkEnd(*far, far_guid)
            state = _STATE.match(link["state"])
            if there and not state:
                lines.count_malformed(line, "==( 4X 25.78125 Gbps Active/ LinkUp)==>")
                continue
            lines.use()
            width, speed, logical = (state[1], state[2], state[3]) if state else ("", "", "")
            could = _COULD_BE.search(link["note"])
            is_active, limit = logical.lower() == "active", could[1] if could else ""
            yield LinkRow(lines.number, here, there, width, _lane(speed), is_active, limit)
        else:
            lines.outside(line, '3 1[ ] ==( 4X 25.78125 Gbps Active/ LinkUp)==> 1 1[ ] "name" ( )')


def _lane(gbps: str) -> str:
    """Return the generation of a lane's signalling rate (Gb/s); decimals may be cut (`25.78`)."""
    close = (name for known, name in _LANE_GBPS.items() if len(gbps) > 3 and known.startswith(gbps))
    return _LANE_GBPS.get(gbps) or next(close, gbps)
