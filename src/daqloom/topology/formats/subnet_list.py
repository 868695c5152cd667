"""Reader of OpenSM's list of cables, `opensm-subnet.lst`.

A line describes a cabled port: first its own device, then the device at the other end. Numbers are
hexadecimal:

    { SW Ports:24 SystemGUID:… NodeGUID:… PortGUID:… VenID:… DevID:… Rev:… {leaf00} LID:0002 PN:13 }
    { SW Ports:24 SystemGUID:… NodeGUID:… PortGUID:… … {spine00} LID:0007 PN:01 }
    PHY=4x LOG=ACT SPD=25

all on one line. `CA` is an adapter, `Rt` a router; `-SM` follows the kind of a subnet manager's
host. A `.lst` of ibdiagnet begins with comments. A link with LOG other than ACT carries no data.
SPD is the signalling rate of a lane in Gb/s; OpenSM 3.3 prints `??` for rates above EDR.
"""

import re
from dataclasses import replace
from pathlib import Path

from daqloom.topology import TopologyError
from daqloom.topology.dump_lines import counted_lines
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.formats.survey import Device, Kind, Plug, PortNames, Survey

_KINDS: dict[str, Kind] = {"SW": "switch", "CA": "adapter", "Rt": "router"}
SPEEDS = {
    "2.5": "SDR",
    "5": "DDR",
    "10": "QDR",
    "FDR10": "FDR10",
    "14": "FDR",
    "25": "EDR",
    "50": "HDR",
    "100": "NDR",
    "200": "XDR",
}
_END = (
    r"\{ (SW|CA|Rt)(?:-SM)? Ports:([0-9A-Fa-f]{1,3}) SystemGUID:[0-9A-Fa-f]+ "
    r"NodeGUID:([0-9A-Fa-f]{1,16}) PortGUID:([0-9A-Fa-f]{1,16}) VenID:[0-9A-Fa-f]+ "
    r"DevID:[0-9A-Fa-f]+ Rev:[0-9A-Fa-f]+ (?:\{(.*?)\} )?\s*LID:([0-9A-Fa-f]{1,4}) "
    r"PN:([0-9A-Fa-f]{1,3}) \}"
)
_LINE = re.compile(
    rf"\s*{_END} {_END} PHY=([0-9?]{{1,2}})x? LOG=([A-Z]{{3}}) SPD=([A-Z0-9.]+|\?+)\s*"
)

FIRST = re.compile(r"\s*\{ ?(?:SW|CA|Rt)\b")
"""Beginning of a line in a list of cables."""


def read_subnet_list(path: Path) -> tuple[Fabric, list[str]]:
    """Return the fabric, named after the file's folder, and warnings; raises TopologyError."""
    lines = counted_lines(path, "cables", "the lines of OpenSM's and ibdiagnet's .lst")
    survey = Survey(path, lines)
    for line in lines:
        number = lines.number
        if not line.strip() or line.lstrip().startswith("#"):
            lines.ignore()
            continue
        lines.use()
        found = _LINE.fullmatch(line)
        if not found:
            survey.fail(
                number,
                f'cannot read "{line[:60]}"; expected `{{ SW … }} {{ CA … }} PHY=… LOG=… SPD=…`',
            )
        *ends, width, state, speed = found.groups()
        here, there = (_end(survey, number, ends[at : at + 7]) for at in (0, 7))
        survey.add_link(number, here, there, width, SPEEDS.get(speed, speed))
        if state != "ACT":
            survey.idle[here] = number
    if not survey.devices:
        raise TopologyError(f"{path} is empty; expected a list of cables from OpenSM")
    return survey.fabric(), survey.warnings


def _end(survey: Survey, number: int, texts: list[str]) -> Plug:
    """Return the port described by one half of a line; add its device if it is new."""
    kind = _KINDS[texts[0]]
    ports, guid, port_guid, lid, port = (int(texts[i], 16) for i in (1, 2, 3, 5, 6))
    name = (texts[4] or "").strip()
    device = Device(kind, guid, name, ports, lid if kind == "switch" else 0, number)
    known = survey.devices.get(guid)
    if known is None or replace(known, line=number) != device:
        survey.add(device)
    plug = Plug(guid, port)
    if not 1 <= port <= ports:
        survey.fail(number, f"{survey.name(plug)}: it has ports 1 to {ports}")
    if kind == "adapter":
        survey.name_port(plug, PortNames(port_guid, lid), number)
    return plug
