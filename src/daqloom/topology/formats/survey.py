"""A fabric assembled from a dump of a subnet, line by line.

Dumps list every cable once from each end, so a missing end reveals a cut or edited file. A survey
collects devices and ends of cables with their lines; `fabric` then checks that both ends agree.
Switches are sorted by name (digits by value), hosts by their switch and port: `leaf00` port 1, port
2, …
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

from daqloom.base.line_counts import MALFORMED, CountedLines
from daqloom.base.words import natural_key, plural, printable
from daqloom.scenario.link_rates import LANE_BPS, NEWER_THAN_KNOWN, data_rate
from daqloom.topology import TopologyError
from daqloom.topology.dump_lines import check_understood
from daqloom.topology.fabric.fabric import (
    MOST_CABLES,
    MOST_NODES,
    MOST_PORTS,
    Cable,
    End,
    Fabric,
    Node,
    check,
)

LONGEST_DESCRIPTION = 128
"""Limit on a description; InfiniBand's have 64 bytes, but a site's map of names may have more."""

Kind = Literal["switch", "adapter", "router"]

# Switches contain an adapter for reductions in the network; it runs no program.
INTERNAL_ADAPTER = "Aggregation Node"


class Plug(NamedTuple):
    """One end of a cable in a dump: the GUID of a switch or adapter, and its port."""

    guid: int
    port: int


@dataclass(frozen=True)
class Device:
    """Device in a dump: a switch, an adapter with all its ports, or a router."""

    kind: Kind
    guid: int
    name: str
    ports: int
    lid: int
    """LID of a switch; the LIDs of an adapter belong to its ports."""
    line: int


class PortNames(NamedTuple):
    """GUID and LID of an adapter's port in the subnet; 0 if the dump does not have them."""

    guid: int
    lid: int


class Report(NamedTuple):
    """The report of a cable by one end. Rate 0: faster than the dump's format can name."""

    line: int
    there: Plug
    rate_bps: int


@dataclass
class Survey:
    """Devices and cables that a file lists. Each error names the file and the line."""

    path: Path
    lines: CountedLines
    devices: dict[int, Device] = field(default_factory=dict)
    adapter_ports: dict[Plug, PortNames] = field(default_factory=dict)
    reports: dict[Plug, Report] = field(default_factory=dict)
    idle: dict[Plug, int] = field(default_factory=dict)
    """Ports whose link is not active, with the line of each."""
    warnings: list[str] = field(default_factory=list)

    def fail(self, line: int, sentence: str) -> NoReturn:
        """Raise a TopologyError that names file and line."""
        raise TopologyError(f"{self.path}, line {line}: {sentence}")

    def add(self, device: Device) -> None:
        """Add a device; raise TopologyError if the file has listed it before."""
        what = f'{device.kind} "{device.name}"'
        if other := self.devices.get(device.guid):
            self.fail(
                device.line,
                f"{what} has GUID 0x{device.guid:016x}, which line {other.line} gives to "
                f'{other.kind} "{other.name}"; GUIDs are unique',
            )
        if not 1 <= device.ports <= MOST_PORTS:
            self.fail(device.line, f"{what} has {device.ports} ports; expected 1 to {MOST_PORTS}")
        if (length := len(device.name)) > LONGEST_DESCRIPTION:
            self.fail(
                device.line,
                f'{device.kind} "{device.name[:20]}…" has a name of {length} characters; '
                f"expected at most {LONGEST_DESCRIPTION}",
            )
        if device.guid == 0:
            self.fail(device.line, f"{what} has GUID 0")
        if len(self.devices) == MOST_NODES:
            self.fail(device.line, f"more than the {MOST_NODES} nodes of a subnet")
        self._check_lid(device.lid, device.line)
        self.devices[device.guid] = device

    def name_port(self, plug: Plug, names: PortNames, line: int) -> None:
        """Set GUID and LID of an adapter's port; raises TopologyError if a line before differs."""
        known = self.adapter_ports.setdefault(plug, names)
        if known != names:
            self.fail(
                line,
                f"{self.name(plug)} has port GUID 0x{names.guid:x} and LID {names.lid}; "
                f"the file gave it 0x{known.guid:x} and {known.lid} before",
            )
        self._check_lid(names.lid, line)

    def add_link(self, line: int, here: Plug, there: Plug, width: str, speed: str) -> None:
        """Add the link of a port as a line reports it; `?` in width or speed: unknown rate."""
        rate_bps = data_rate(width, speed)
        if rate_bps is None and "?" not in width + speed:
            self.fail(line, f"{self.name(here)}: {width}x{speed} is no known speed of a link")
        self.add_report(here, Report(line, there, rate_bps or 0))

    def add_report(self, plug: Plug, report: Report) -> None:
        """Add what a line reports about the cable at port `plug` of a known device."""
        device = self.devices[plug.guid]
        if not 1 <= plug.port <= device.ports:
            self.fail(report.line, f"{self.name(plug)}: it has ports 1 to {device.ports}")
        if plug == report.there:
            self.fail(report.line, f"{self.name(plug)} is wired to itself")
        if plug in self.reports:
            first = self.reports[plug].line
            self.fail(report.line, f"{self.name(plug)} is in line {first} already")
        if len(self.reports) == 2 * MOST_CABLES:
            self.fail(report.line, f"more than {MOST_CABLES} cables, more than any subnet")
        self.reports[plug] = report

    def check_lines(self) -> None:
        """Warn of malformed lines; raise TopologyError if most of the lines were not understood."""
        check_understood(self.lines)
        if number := self.lines.counts[MALFORMED]:
            self.warnings.append(
                f"{self.path}: {plural(number, 'line')} malformed and left out, first "
                f"{self.lines.first_malformed}"
            )

    def name(self, plug: Plug) -> str:
        """Return a port as text for messages: `switch "leaf00" port 21`."""
        device = self.devices.get(plug.guid)
        if device is None:
            return f"the device with GUID 0x{plug.guid:016x} port {plug.port}"
        return f'{device.kind} "{device.name}" port {plug.port}'

    def fabric(self) -> Fabric:
        """Return the fabric, with the name of the file's folder. Raises TopologyError."""
        self._check_both_ends()
        self._check_lids()
        self._leave_out()
        if not self.reports or not any(d.kind == "switch" for d in self.devices.values()):
            raise TopologyError(f"{self.path} has no switch with a cable; it may be truncated")
        folder = self.path.absolute().parent.name or self.path.stem
        return self._assemble(printable(folder)[:LONGEST_DESCRIPTION])

    def _check_lid(self, lid: int, line: int) -> None:
        if not 0 <= lid <= MOST_NODES:
            self.fail(line, f"LID {lid} is not a unicast address; expected 1 to {MOST_NODES}")

    def _check_both_ends(self) -> None:
        for here, report in self.reports.items():
            back = self.reports.get(report.there)
            if back is not None and back.there == here:
                continue
            way = f"{self.name(here)} leads to {self.name(report.there)}, which "
            if report.there.guid not in self.devices:
                way += "the file does not describe; it may be truncated"
            elif back is None:
                way += "has no cable; the file may be truncated"
            else:
                way += f"by line {back.line} leads to {self.name(back.there)}"
            self.fail(report.line, way)

    def _check_lids(self) -> None:
        lines: dict[int, tuple[str, int]] = {}

        def claim(lid: int, owner: str, line: int) -> None:
            other, first = lines.setdefault(lid, (owner, line))
            if lid and other != owner:
                self.fail(line, f"{owner} has LID {lid}, which line {first} gives to {other}")

        for device in self.devices.values():
            claim(device.lid, f'{device.kind} "{device.name}" (0x{device.guid:x})', device.line)
        for plug, names in self.adapter_ports.items():
            line = (self.reports.get(plug) or self.devices[plug.guid]).line
            claim(names.lid, f"{self.name(plug)} (0x{plug.guid:x})", line)

    def _leave_out(self) -> None:
        """Leave out routers, internal adapters of switches, and cables whose link is not active."""
        devices = sorted(self.devices.values(), key=lambda device: device.line)
        adapters = [d for d in devices if d.kind == "adapter" and INTERNAL_ADAPTER in d.name]
        routers = [d for d in devices if d.kind == "router"]
        for kind, left in ("router", routers), ("internal adapter of a switch", adapters):
            if left:
                self.warnings.append(
                    f"{self.path}, line {left[0].line}: {len(left)} × {kind} left out, "
                    f'first "{left[0].name}"'
                )
        foreign = {device.guid for device in routers + adapters}
        self.devices = {guid: d for guid, d in self.devices.items() if guid not in foreign}
        ends = {here: {here.guid, report.there.guid} for here, report in self.reports.items()}
        self.reports = {h: each for h, each in self.reports.items() if not foreign & ends[h]}
        reports = self.reports.items()
        down = {p for p, report in reports if p in self.idle or report.there in self.idle}
        if down:
            first_plug = min(down, key=lambda plug: self.reports[plug].line)
            cables = plural(len(down) // 2, "cable")
            self.warnings.append(
                f"{self.path}, line {self.reports[first_plug].line}: {cables} whose link is not "
                f"active left out, first that of {self.name(first_plug)}"
            )
            self.reports = {here: report for here, report in reports if here not in down}

    def _assemble(self, name: str) -> Fabric:
        switches = [device for device in self.devices.values() if device.kind == "switch"]
        switches.sort(key=lambda device: (natural_key(device.name), device.guid))
        rank = {device.guid: place for place, device in enumerate(switches)}
        adapters = [plug for plug in self.reports if plug.guid not in rank]

        def place(plug: Plug) -> tuple[int, int, Plug]:
            there = self.reports[plug].there
            return rank.get(there.guid, len(rank)), there.port, plug

        adapters.sort(key=place)
        names = self._unique_names(adapters, switches)
        hosts = [
            Node(name, 1, *self.adapter_ports.get(plug, PortNames(0, 0)))
            for name, plug in zip(names, adapters, strict=False)
        ]
        nodes = [
            Node(name, device.ports, device.guid, device.lid)
            for name, device in zip(names[len(adapters) :], switches, strict=True)
        ]
        ends = {plug: End(host, 1) for host, plug in enumerate(adapters)}
        of_switches = (plug for plug in self.reports if plug.guid in rank)
        ends |= {plug: End(len(hosts) + rank[plug.guid], plug.port) for plug in of_switches}
        cables, lines = tuple(self._cables(ends)), {self.path.name: self.lines.counts}
        return check(Fabric(name, tuple(hosts), tuple(nodes), cables, lines))

    def _unique_names(self, adapters: list[Plug], switches: list[Device]) -> list[str]:
        """Return names of hosts, then of switches, made unique by `/P1` (port) or GUID."""
        ports = Counter(plug.guid for plug in adapters)
        part = {plug: f"/P{plug.port}" if ports[plug.guid] > 1 else "" for plug in adapters}
        names = [self.devices[plug.guid].name + part[plug] for plug in adapters]
        names += [device.name for device in switches]
        guids = [plug.guid for plug in adapters] + [device.guid for device in switches]
        often = Counter(names)
        shared = sorted(name for name, times in often.items() if times > 1 or not name)
        if shared:
            self.warnings.append(
                f"{self.path}: {plural(len(shared), 'name is', 'names are')} not unique, first "
                f'"{shared[0]}"; their GUID is added'
            )
        unique = [
            f"{name}@{guid:x}" if often[name] > 1 or not name else name
            for name, guid in zip(names, guids, strict=True)
        ]
        if len(set(unique)) < len(unique):
            name = next(name for name, times in Counter(unique).items() if times > 1)
            raise TopologyError(f'{self.path}: two devices are called "{name}"')
        return unique

    def _cables(self, ends: dict[Plug, End]) -> list[Cable]:
        """Return each cable once, from its lower end, with the lower of the rates at its ends."""
        cables, assumed, differing = [], [], []
        for here, report in self.reports.items():
            if ends[here] > ends[report.there]:
                continue
            rates = {report.rate_bps, self.reports[report.there].rate_bps} - {0}
            if not rates:
                assumed.append(report.line)
            if len(rates) > 1:
                differing.append(report.line)
            rate = min(rates, default=int(4 * LANE_BPS[NEWER_THAN_KNOWN]))
            cables.append(Cable(ends[here], ends[report.there], rate))
        if assumed:
            self.warnings.append(
                f"{self.path}, line {min(assumed)}: the speed of {plural(len(assumed), 'cable')} "
                f"has no name there; assumed to be 4x{NEWER_THAN_KNOWN}"
            )
        if differing:
            self.warnings.append(
                f"{self.path}, line {min(differing)}: the ends of "
                f"{plural(len(differing), 'cable')} have different speeds; the slower one is used"
            )
        return sorted(cables, key=lambda cable: (cable.a, cable.b))
