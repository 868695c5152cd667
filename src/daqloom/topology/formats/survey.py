"""What a dump of a subnet tells, line by line, put together to a fabric.

Dumps tell every cable twice, once from each end: that is how a cut or edited file shows. A survey
collects devices and ends of cables with their lines, then `fabric` checks that both ends agree.
Switches are put in the order of their names (digits by value), hosts in the order of the switches
and ports that they are on: `leaf00` port 1, port 2, …
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

from daqloom.base.words import counted, natural_key, printable
from daqloom.scenario.link_rates import LANE_BPS, NEWER_THAN_KNOWN
from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import (
    MOST_CABLES,
    MOST_NODES,
    MOST_PORTS,
    Cable,
    End,
    Fabric,
    Node,
    checked,
)

LONGEST_DESCRIPTION = 128
"""InfiniBand's are 64 bytes; a site's map of names may give longer ones."""

Kind = Literal["switch", "adapter", "router"]

# Switches hold an adapter of their own for reductions in the network: it runs no program.
INTERNAL_ADAPTER = "Aggregation Node"


class Plug(NamedTuple):
    """One end of a cable as dumps name it: the GUID of a switch or adapter, and its port."""

    guid: int
    port: int


@dataclass(frozen=True)
class Device:
    """A switch, an adapter with all its ports, or a router."""

    kind: Kind
    guid: int
    name: str
    ports: int
    lid: int
    """A switch's; those of an adapter belong to its ports."""
    line: int


class PortNames(NamedTuple):
    """How the subnet addresses the port of an adapter; 0 where that is not told."""

    guid: int
    lid: int


class Told(NamedTuple):
    """One end's word on a cable. A rate of 0: faster than what the tool has names for."""

    line: int
    there: Plug
    rate_bps: int


@dataclass
class Survey:
    """Devices and cables as a file tells them; every error names file and line."""

    path: Path
    lines: Mapping[str, int]
    """Lines of the file by fate."""
    devices: dict[int, Device] = field(default_factory=dict)
    adapter_ports: dict[Plug, PortNames] = field(default_factory=dict)
    told: dict[Plug, Told] = field(default_factory=dict)
    idle: dict[Plug, int] = field(default_factory=dict)
    """Ports whose link is not active, and their line."""
    warnings: list[str] = field(default_factory=list)

    def fail(self, line: int, sentence: str) -> NoReturn:
        """Raises the TopologyError of a line."""
        raise TopologyError(f"{self.path}, line {line}: {sentence}")

    def add(self, device: Device) -> None:
        """A device that the file tells of for the first time."""
        what = f'{device.kind} "{device.name}"'
        if other := self.devices.get(device.guid):
            self.fail(
                device.line,
                f"{what} has GUID 0x{device.guid:016x}, which line {other.line} gives to "
                f'{other.kind} "{other.name}"; GUIDs are unique',
            )
        if not 1 <= device.ports <= MOST_PORTS:
            told = f"{what} has {device.ports} ports; expected 1 to {MOST_PORTS}"
            self.fail(device.line, told)
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
        """GUID and LID of an adapter's port."""
        known = self.adapter_ports.setdefault(plug, names)
        if known != names:
            self.fail(
                line,
                f"{self.name(plug)} has port GUID 0x{names.guid:x} and LID {names.lid}; "
                f"the file gave it 0x{known.guid:x} and {known.lid} before",
            )
        self._check_lid(names.lid, line)

    def tell(self, here: Plug, told: Told) -> None:
        """What a line about the port `here` says of its cable; `here` is a known device's."""
        device = self.devices[here.guid]
        if not 1 <= here.port <= device.ports:
            self.fail(told.line, f"{self.name(here)}: it has ports 1 to {device.ports}")
        if here == told.there:
            self.fail(told.line, f"{self.name(here)} is wired to itself")
        if here in self.told:
            self.fail(
                told.line, f"{self.name(here)} appears again; line {self.told[here].line} told it"
            )
        if len(self.told) == 2 * MOST_CABLES:
            self.fail(told.line, f"more than {MOST_CABLES} cables, more than any subnet")
        self.told[here] = told

    def name(self, plug: Plug) -> str:
        """A port for people: `switch "leaf00" port 21`."""
        device = self.devices.get(plug.guid)
        if device is None:
            return f"the device with GUID 0x{plug.guid:016x} port {plug.port}"
        return f'{device.kind} "{device.name}" port {plug.port}'

    def fabric(self) -> Fabric:
        """What was told, as a fabric by the name of the file's folder. Raises TopologyError where
        the ends contradict each other."""
        self._check_both_ends()
        self._check_lids()
        self._leave_out()
        if not self.told or not any(d.kind == "switch" for d in self.devices.values()):
            raise TopologyError(f"{self.path} has no switch with a cable; it may be truncated")
        folder = self.path.absolute().parent.name or self.path.stem
        return self._assemble(printable(folder)[:LONGEST_DESCRIPTION])

    def _check_lid(self, lid: int, line: int) -> None:
        if not 0 <= lid <= MOST_NODES:
            self.fail(line, f"LID {lid} is not a unicast address; expected 1 to {MOST_NODES}")

    def _check_both_ends(self) -> None:
        for here, told in self.told.items():
            back = self.told.get(told.there)
            if back is not None and back.there == here:
                continue
            way = f"{self.name(here)} leads to {self.name(told.there)}"
            if told.there.guid not in self.devices:
                way += ", which the file does not describe; it may be truncated"
            elif back is None:
                way += ", which has no cable; the file may be truncated"
            else:
                way += f", but line {back.line} says that this leads to {self.name(back.there)}"
            self.fail(told.line, way)

    def _check_lids(self) -> None:
        lines: dict[int, tuple[str, int]] = {}

        def claim(lid: int, owner: str, line: int) -> None:
            other, first = lines.setdefault(lid, (owner, line))
            if lid and other != owner:
                self.fail(line, f"{owner} has LID {lid}, which line {first} gives to {other}")

        for device in self.devices.values():
            claim(device.lid, f'{device.kind} "{device.name}" (0x{device.guid:x})', device.line)
        for plug, names in self.adapter_ports.items():
            line = self.told[plug].line if plug in self.told else self.devices[plug.guid].line
            claim(names.lid, f"{self.name(plug)} (0x{plug.guid:x})", line)

    def _leave_out(self) -> None:
        """Drops routers, the switches' internal adapters and cables that carry nothing."""
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
        self.told = {
            here: told
            for here, told in self.told.items()
            if not foreign & {here.guid, told.there.guid}
        }
        down = {p for p, told in self.told.items() if p in self.idle or told.there in self.idle}
        if down:
            first_plug = min(down, key=lambda plug: self.told[plug].line)
            cables = counted(len(down) // 2, "cable")
            self.warnings.append(
                f"{self.path}, line {self.told[first_plug].line}: {cables} whose link is not "
                f"active left out, first that of {self.name(first_plug)}"
            )
            self.told = {here: told for here, told in self.told.items() if here not in down}

    def _assemble(self, name: str) -> Fabric:
        switches = sorted(
            (d for d in self.devices.values() if d.kind == "switch"),
            key=lambda d: (natural_key(d.name), d.guid),
        )
        rank = {device.guid: place for place, device in enumerate(switches)}
        adapters = [plug for plug in self.told if plug.guid not in rank]

        def place(plug: Plug) -> tuple[int, int, Plug]:
            there = self.told[plug].there
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
        ends |= {
            plug: End(len(hosts) + rank[plug.guid], plug.port)
            for plug in self.told
            if plug.guid in rank
        }
        cables, lines = tuple(self._cables(ends)), {self.path.name: self.lines}
        return checked(Fabric(name, tuple(hosts), tuple(nodes), cables, lines))

    def _unique_names(self, adapters: list[Plug], switches: list[Device]) -> list[str]:
        """Hosts, then switches; several ports of an adapter by `/P1`, equal names by their GUID."""
        ports = Counter(plug.guid for plug in adapters)
        names = [
            self.devices[plug.guid].name + (f"/P{plug.port}" if ports[plug.guid] > 1 else "")
            for plug in adapters
        ] + [device.name for device in switches]
        guids = [plug.guid for plug in adapters] + [device.guid for device in switches]
        often = Counter(names)
        shared = sorted(name for name, times in often.items() if times > 1 or not name)
        if shared:
            self.warnings.append(
                f"{self.path}: {counted(len(shared), 'name is', 'names are')} not unique, first "
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
        """Each cable once, from its lower end; the slower word counts where the ends differ."""
        cables, assumed, differing = [], [], []
        for here, told in self.told.items():
            if ends[here] > ends[told.there]:
                continue
            rates = {told.rate_bps, self.told[told.there].rate_bps} - {0}
            if not rates:
                assumed.append(told.line)
            if len(rates) > 1:
                differing.append(told.line)
            rate = min(rates, default=int(4 * LANE_BPS[NEWER_THAN_KNOWN]))
            cables.append(Cable(ends[here], ends[told.there], rate))
        if assumed:
            self.warnings.append(
                f"{self.path}, line {min(assumed)}: the speed of {counted(len(assumed), 'cable')} "
                f"has no name there; assumed to be 4x{NEWER_THAN_KNOWN}"
            )
        if differing:
            self.warnings.append(
                f"{self.path}, line {min(differing)}: the ends of "
                f"{counted(len(differing), 'cable')} have different speeds; the slower one is used"
            )
        return sorted(cables, key=lambda cable: (cable.a, cable.b))
