"""Reader of `ibnetdiscover` output (infiniband-diags), with or without its chassis marks.

    Switch  36 "S-0000000000200003"   # "leaf03" base port 0 lid 6 lmc 0
    [1]     "H-0000000000100060"[1](100061)    # "H03-00" lid 55 4xSDR
    [19]    "S-0000000000200004"[28]           # "spine00" lid 7 4xSDR

    Ca      1 "H-0000000000100004"    # "H00-03"
    [1](100005)     "S-0000000000200000"[4]    # lid 8 lmc 0 "leaf00" lid 2 4xSDR

Each device has a section with a line for each cabled port: the port, the device and port at the
other end, and in the comment the LIDs and the link's width and speed. Other lines are skipped.
"""

import re
from pathlib import Path
from typing import NoReturn

from daqloom.topology import TopologyError
from daqloom.topology.dump_lines import counted_lines
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.formats.survey import Device, Kind, Plug, PortNames, Survey

KINDS = "the lines of ibnetdiscover"
_KINDS: dict[str, Kind] = {"Switch": "switch", "Ca": "adapter", "Rt": "router"}
_LETTERS: dict[str, Kind] = {"S": "switch", "H": "adapter", "R": "router"}

_DEVICE = re.compile(
    r'(?P<kind>Switch|Ca|Rt)\s+(?P<ports>[0-9]{1,5})\s+"(?P<letter>[SHR])-(?P<guid>[0-9a-f]{1,16})"'
    r'\s*#\s*"(?P<name>.*)"(?P<rest>[^"]*)'
)
_SWITCH_LID = re.compile(r"\s*(?:base|enhanced) port 0 lid (?P<lid>[0-9]{1,5}) lmc [0-9]\s*")
_PORT = re.compile(
    r"\[(?P<port>[0-9]{1,5})\](?:\[ext [0-9]+\])?(?:\((?P<own>[0-9a-f]{1,16})\))?\s*"
    r'"(?P<letter>[SHR])-(?P<guid>[0-9a-f]{1,16})"\[(?P<there>[0-9]{1,5})\](?:\[ext [0-9]+\])?'
    r"\s*(?:\((?P<far>[0-9a-f]{1,16})\))?\s*"
    r'#\s*(?:lid (?P<lid>[0-9]{1,5}) lmc [0-9] )?"(?P<name>.*)" lid (?P<far_lid>[0-9]{1,5})'
    r"(?: (?P<width>[0-9?]{1,2})x?(?P<speed>[A-Z][A-Z0-9]*|\?+)(?:\s.*)?)?"
)
_MARKS = re.compile(
    r"\s*(#.*)?|(vendid|devid|sysimgguid|(switch|ca|rt)guid)=.*|(Chassis|Hostname).*"
)


FIRST = re.compile(r'(?:Switch|Ca|Rt)\s+[0-9]+\s+"[SHR]-|(?:vendid|sysimgguid)=')
"""Beginning of a line that only a dump of ibnetdiscover contains."""


def read_ibnetdiscover(path: Path) -> tuple[Fabric, list[str]]:
    """Return the fabric, named after the file's folder, and warnings; raises TopologyError."""
    lines = counted_lines(path, "cables", KINDS)
    survey = Survey(path, lines)
    device: Device | None = None
    without_rate: list[tuple[int, Device, str]] = []
    has_rates = False
    for line in lines:
        number = lines.number
        if line.startswith("["):
            lines.use()
            if device is None:
                survey.fail(number, "a port before any Switch, Ca or Rt")
            if _port(survey, device, number, line):
                has_rates = True
            else:
                without_rate.append((number, device, line))
        elif line.startswith(tuple(_KINDS)):
            lines.use()
            device = _device(survey, number, line)
        elif _MARKS.fullmatch(line):
            lines.ignore()
        else:
            lines.outside(line, "a device, a port or a comment")
    if not survey.devices:
        raise TopologyError(f"{path} is not output of ibnetdiscover: it has no Switch and no Ca")
    if has_rates and without_rate:
        _fail_port(survey, *without_rate[0])
    survey.check_lines()
    return survey.fabric(), survey.warnings


def _device(survey: Survey, number: int, line: str) -> Device:
    match = _DEVICE.fullmatch(line)
    if not match or _LETTERS[match["letter"]] != _KINDS[match["kind"]]:
        survey.fail(
            number, f'cannot read "{line[:60]}"; expected a line such as Switch 36 "S-…" # "name" …'
        )
    lid = 0
    if match["kind"] == "Switch":
        if not (ending := _SWITCH_LID.fullmatch(match["rest"])):
            name = match["name"]
            survey.fail(number, f'switch "{name}": expected `base port 0 lid … lmc …` at the end')
        lid = int(ending["lid"])
    kind, guid = _KINDS[match["kind"]], int(match["guid"], 16)
    device = Device(kind, guid, match["name"].strip(), int(match["ports"]), lid, number)
    survey.add(device)
    return device


def _fail_port(survey: Survey, number: int, device: Device, line: str) -> NoReturn:
    survey.fail(
        number,
        f'{device.kind} "{device.name}": cannot read "{line[:60]}"; '
        'expected a port such as [19] "S-…"[28] # "name" lid 7 4xEDR',
    )


def _port(survey: Survey, device: Device, number: int, line: str) -> bool:
    """Read the line of a port; return whether it has a rate, as all or no lines of a file have."""
    match = _PORT.fullmatch(line)
    if not match:
        _fail_port(survey, number, device, line)
    here = Plug(device.guid, int(match["port"]))
    there = Plug(int(match["guid"], 16), int(match["there"]))
    # Versions before 2010 print no width and speed.
    survey.add_link(number, here, there, match["width"] or "?", match["speed"] or "?")
    if device.kind != "switch":
        is_old = match["width"] is None
        if match["lid"] is None or (match["own"] is None and not is_old):
            survey.fail(number, f"{survey.name(here)}: expected its GUID and `# lid … lmc …`")
        own = PortNames(int(match["own"] or "0", 16), int(match["lid"]))
        survey.name_port(here, own, number)
    if _LETTERS[match["letter"]] == "adapter" and match["far"] is not None:
        survey.name_port(there, PortNames(int(match["far"], 16), int(match["far_lid"])), number)
    return match["width"] is not None
