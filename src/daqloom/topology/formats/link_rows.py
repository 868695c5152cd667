"""Fabrics from lists of links: a row for each port describes the port at its other end.

Devices are identified by LID, because in all these lists a row contains the LIDs of both ends. A
device without rows, such as a host in `iblinkinfo --switches-only`, is known from its neighbours.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from daqloom.base.line_counts import CountedLines
from daqloom.base.words import plural
from daqloom.topology.dump_lines import counted_lines
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.formats.survey import Device, Kind, Plug, PortNames, Survey

KINDS: dict[str, Kind] = {"SW": "switch", "CA": "adapter", "RT": "router", "SWITCH": "switch"}
_WITHOUT_GUID = 1 << 62
"""Base of the identity, plus the LID, of a device whose GUID no line contains."""


@dataclass(frozen=True)
class LinkEnd:
    """One end of a link."""

    lid: int
    port: int
    name: str
    guid: int = 0
    kind: Kind | None = None


@dataclass(frozen=True)
class LinkRow:
    """A port, and what is at the other end of its cable."""

    line: int
    here: LinkEnd
    there: LinkEnd | None
    """Other end; none for a port without a link."""
    width: str = ""
    speed: str = ""
    is_active: bool = True
    could_be: str = ""
    """Width or speed that both ends support, if the link runs below it."""


def read_link_rows(
    path: Path, rows_of: Callable[[CountedLines], Iterator[LinkRow]], subject: str, known: str
) -> tuple[Fabric, list[str]]:
    """Return the fabric, named after the file's folder, and warnings; raises TopologyError.
    `rows_of` reads the lines of the file's format. An error message contains `subject`, the lines
    that were expected, and `known`, the known kinds of files."""
    lines = counted_lines(path, subject, known)
    rows = list(rows_of(lines))
    survey = Survey(path, lines)
    survey.check_lines()
    _fill(survey, rows)
    return survey.fabric(), survey.warnings


def _fill(survey: Survey, rows: list[LinkRow]) -> None:
    """Add devices, then both ends of each link; a link listed from one end gets a second report."""
    ends = [(row.line, end) for row in rows for end in (row.here, row.there) if end]
    guids = {end.lid: end.guid for _, end in ends if end.guid}
    kinds = {end.lid: end.kind for _, end in ends if end.kind}
    own, ports = defaultdict(set), defaultdict[int, int](lambda: 1)
    for row in rows:
        own[row.here.lid].add(row.here.port)
    for _, end in ends:
        ports[end.lid] = max(ports[end.lid], end.port)
    for line, end in ends:
        guid = guids.get(end.lid, _WITHOUT_GUID + end.lid)
        if guid in survey.devices:
            continue
        # A list with both ends on a line has no kinds: only a switch lists several ports.
        kind = kinds.get(end.lid) or ("switch" if len(own[end.lid]) > 1 else "adapter")
        lid = end.lid if kind == "switch" else 0
        survey.add(Device(kind, guid, end.name, ports[end.lid], lid, line))

    def plug(end: LinkEnd) -> Plug:
        found = Plug(guids.get(end.lid, _WITHOUT_GUID + end.lid), end.port)
        if survey.devices[found.guid].kind != "switch":
            survey.name_port(found, PortNames(guids.get(end.lid, 0), end.lid), 0)
        return found

    slower = []
    for row in rows:
        if row.there is None:
            continue
        here, there = plug(row.here), plug(row.there)
        survey.add_link(row.line, here, there, row.width, row.speed)
        if not row.is_active:
            survey.idle[here] = row.line
        if row.could_be:
            slower.append(f"line {row.line}: {survey.name(here)} could be {row.could_be}")
    reports = survey.reports.items()
    silent = [(here, report) for here, report in reports if report.there not in survey.reports]
    for here, report in silent:
        survey.add_report(report.there, report._replace(there=here))
    if slower:
        survey.warnings.append(
            f"{survey.path}: {plural(len(slower), 'end')} of links below what they support, first "
            f"{slower[0]}"
        )
    if silent:
        survey.warnings.append(
            f"{survey.path}, line {silent[0][1].line}: {plural(len(silent), 'cable')} listed from "
            "one end only; used as listed"
        )
    if unlinked := sum(row.there is None for row in rows):
        survey.warnings.append(f"{survey.path}: {plural(unlinked, 'port')} without a link")
