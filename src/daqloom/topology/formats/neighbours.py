"""Neighbour tables, one from each device, combined to a fabric.

A device sends its name and port to its neighbours by LLDP, and each neighbour lists what it
receives. Every cable thus appears twice, once from each end. A device without a table is known from
its neighbours' tables. A port has an ID and a description. One of both is its name on its own
device: SONiC sends an alias as ID and `Ethernet48` as description, Linux a MAC address and
`ens1f0`, Junos an index and `et-0/0/3`.

A device is identified by its chassis ID if neighbours list one, because two devices may share a
name (such as the default name of a switch), and one device may have two names.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from daqloom.base.words import natural_key, plural, printable
from daqloom.scenario.link_rates import PORT_RATE
from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import MOST_CABLES, Fabric, Node
from daqloom.topology.formats.named_ports import NamedCable, Plug, fabric_of_ports, in_order

LARGEST_TABLE_BYTES = 4 << 20
"""Limit on a table; 1023 ports with the longest texts of their neighbours take less."""
FORWARDING = ("Bridge", "Router")
"""Capabilities of a forwarding device, as lldpd names them."""
LONGEST_TEXT = 255
"""Limit on the bytes of a string in LLDP."""
ASSUMED_BPS = 100_000_000_000
"""Assumed rate of cables (b/s), because LLDP contains no rates."""

_MANAGEMENT = re.compile(r"mgmt\d*|mgmt-\d+|management\d+(?:/\d+)?|ma\d+|MgmtEth.*|oob\d*", re.I)
_OF_SWITCHES = re.compile(r"eth0|em[01]|fxp0|me0|vme|bme\d")
_SWITCH_PORT = re.compile(
    r"Ethernet\d|Eth\d+/|etp\d|swp\d|(?:et|xe|ge)-\d+/|(?:Gigabit|\w+Gig\w*|Te|Hu|Fo)(?:Ethernet)?\d"
)
_MAC = re.compile(
    r"(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}|(?:[0-9a-f]{4}[.-]){2}[0-9a-f]{4}|[0-9a-f]{6}-?[0-9a-f]{6}",
    re.IGNORECASE,
)
_NO_NAME = re.compile(rf"{_MAC.pattern}|[0-9]*", re.IGNORECASE)


@dataclass(frozen=True)
class Neighbour:
    """A neighbour at a port of a device."""

    port: str
    device: str
    """Name of the neighbour; empty if it sends no name."""
    ids: tuple[str, ...]
    """ID and description of the neighbour's port; each may be empty."""
    chassis: str
    """ID of the neighbour's chassis; empty if it is not listed."""
    forwards: bool | None
    """Whether the neighbour reports itself as bridge or router; None: no capabilities listed."""
    where: str
    """File and line."""


@dataclass(frozen=True)
class Table:
    """The neighbours of one device."""

    device: str
    where: str
    neighbours: Sequence[Neighbour]
    is_switch: bool = False
    """Whether the table has a format that only switches print."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """Counts of the file's lines, or for JSON of its neighbours, by use."""

    def is_management(self, port: str) -> bool:
        """Return whether a port of this device carries no data. `eth0` is a management port of a
        switch whose other ports have different names, and a data port of a host."""
        if is_management(port):
            return True
        return self.has_switch_ports and _OF_SWITCHES.fullmatch(port) is not None

    @property
    def has_switch_ports(self) -> bool:
        """Whether the format of the table or the names of ports identify the device as a switch."""
        ports = (each.port for each in self.neighbours)
        return self.is_switch or any(map(_SWITCH_PORT.match, ports))


def is_management(port: str) -> bool:
    """Return whether the name of a port, on any device, is that of a management port."""
    return _MANAGEMENT.fullmatch(port) is not None


def one_spelling(text: str) -> str:
    """Return a MAC address as pairs of lower-case digits between colons; other texts unchanged.
    `AA-BB-CC-00-00-01`, `aabb.cc00.0001` and `aabb-cc00-0001` are the same address."""
    if not _MAC.fullmatch(text):
        return text
    return ":".join(re.findall("..", re.sub("[:.-]", "", text.lower())))


def text_of(value: str, where: str) -> str:
    """Return a text from a neighbour, with control characters escaped; raises TopologyError."""
    if (length := len(value)) > LONGEST_TEXT:
        most = f"LLDP has {LONGEST_TEXT} at most"
        raise TopologyError(f"{where}: a text of {length} characters; {most}")
    return printable(" ".join(value.split()))


def fabric_of_tables(
    name: str, tables: Iterable[Table], rate_bps: int = 0
) -> tuple[Fabric, list[str]]:
    """Return the fabric and warnings; raises TopologyError if tables contradict each other. A
    device is a switch if its own table has ports named like a switch's; if it forwards (bridge,
    router) and has such ports or several cables; or if it lists no capabilities and has such ports
    or several neighbours. Others are hosts. `rate_bps`: for all cables."""
    match = _Match()
    lines = {}
    for table in tables:
        match.add(table)
        lines[PurePath(table.where).name] = table.lines
    match.identify()
    match.use()
    match.pair()
    switches, cables = match.roles()
    if not rate_bps:
        rate = PORT_RATE.format(ASSUMED_BPS)
        match.warnings.append(f"LLDP contains no rates: all cables are taken to run at {rate}")
    named = [NamedCable(a, b, rate_bps or ASSUMED_BPS) for a, b in cables]
    fabric = fabric_of_ports(name, [Node(switch, 0) for switch in in_order(switches)], named)
    return replace(fabric, lines=lines), match.warnings


class _Match:
    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        self.reports: dict[Plug, Neighbour] = {}
        """Neighbour of each port that has exactly one."""
        self.crowded: set[Plug] = set()
        """Ports with several neighbours."""
        self.peer: dict[Plug, Plug] = {}
        self.warnings: list[str] = []

    def add(self, table: Table) -> None:
        neighbours = [
            replace(
                each,
                device=one_spelling(each.device),
                ids=tuple(map(one_spelling, each.ids)),
                chassis=one_spelling(each.chassis),
            )
            for each in table.neighbours
        ]
        table = replace(table, neighbours=neighbours)
        device, where = table.device, table.where
        if (other := self.tables.setdefault(device, table)) is not table:
            both = f"{where} and {other.where}"
            raise TopologyError(f'{both} are both of device "{device}"; keep one')

    def warn(self, sentences: Sequence[str]) -> None:
        """Add a warning: the first of several similar sentences, and the number of the others."""
        if sentences:
            more = f" (and {len(sentences) - 1} more)" if len(sentences) > 1 else ""
            self.warnings.append(sentences[0] + more)

    def identify(self) -> None:
        """Give each neighbour the name of its device: the name of its table if it has one, and one
        name for one chassis. The chassis ID is added if several devices share a name."""
        short = defaultdict(list)
        for device in self.tables:
            short[device.partition(".")[0]].append(device)

        def device_of(name: str) -> str:
            """Return the device with a table whose short or full name matches; else `name`."""
            same = short.get(name.partition(".")[0], [])
            if name not in self.tables and len(same) == 1 and ("." in name) != ("." in same[0]):
                return same[0]
            return name

        names: dict[str, dict[str, None]] = defaultdict(dict)
        for table in self.tables.values():
            for neighbour in table.neighbours:
                if neighbour.chassis and neighbour.device:
                    names[neighbour.chassis][device_of(neighbour.device)] = None
        # A device with a table has the name of its file, others the first name in the tables. Two
        # names with a table each are two devices, even with the same chassis ID.
        by_chassis = {
            chassis: next((name for name in among if name in self.tables), next(iter(among)))
            for chassis, among in names.items()
            if sum(name in self.tables for name in among) < 2
        }
        often = Counter(by_chassis.values())
        shared = sorted(name for name, times in often.items() if times > 1)
        if shared:
            self.warnings.append(
                f"{plural(len(shared), 'name is', 'names are')} of several devices, first "
                f'"{shared[0]}"; their chassis ID is added'
            )
        for device, table in self.tables.items():
            neighbours = []
            for neighbour in table.neighbours:
                name = by_chassis.get(neighbour.chassis) or device_of(neighbour.device)
                if often[name] > 1 and not self._is_named_after(name, neighbour):
                    name = f"{name}@{neighbour.chassis}" if neighbour.chassis else name
                neighbours.append(replace(neighbour, device=name or neighbour.chassis))
            self.tables[device] = replace(table, neighbours=neighbours)

    def _is_named_after(self, name: str, neighbour: Neighbour) -> bool:
        """Return whether, among several devices with this name, a neighbour is the one with a
        table: a port in that table matches the neighbour's port."""
        table = self.tables.get(name)
        return table is not None and any(each.port in neighbour.ids for each in table.neighbours)

    def use(self) -> None:
        """Fill `reports` from the tables, without management ports, loops and hubs."""
        listed: dict[Plug, dict[tuple[str, tuple[str, ...]], Neighbour]] = {}
        managed, own, empty = [], [], []
        for table in self.tables.values():
            if not table.neighbours:
                empty.append(f'{table.where}: "{table.device}" has no neighbour; left out')
            for each in table.neighbours:
                plug = Plug(table.device, each.port)
                far = self.tables.get(each.device)
                is_managed = far.is_management if far else is_management
                if table.is_management(each.port):
                    managed.append(f"{each.where}: {plug} is for management; left out")
                elif any(map(is_managed, each.ids)):
                    managed.append(f"{each.where}: {plug} leads to a port for management; left out")
                elif far is table:
                    own.append(f"{each.where}: {plug} leads to its own device; left out")
                else:
                    listed.setdefault(plug, {})[each.device, each.ids] = each
        if len(listed) > 2 * MOST_CABLES:
            raise TopologyError(f"the tables list more than {MOST_CABLES} cables, the most allowed")
        crowds = []
        for plug, several in listed.items():
            first, *others = several.values()
            if others:
                self.crowded.add(plug)
                crowds.append(
                    f'{first.where}: {plug} has {len(several)} neighbours, "{first.device}" and '
                    f'"{others[0].device}": a hub, or a switch that floods LLDP, is between; left '
                    "out"
                )
            else:
                self.reports[plug] = first
        for sentences in managed, own, empty, crowds:
            self.warn(sentences)

    def pair(self) -> None:
        """Find the two ends of each cable from the neighbours of ports."""
        order = sorted(self.reports, key=lambda plug: (plug.node, natural_key(str(plug.port))))
        goal = {plug: self._goal(plug) for plug in order}
        # Both ends name each other, or one end does and the other names an unknown port.
        for plug in order:
            far = goal[plug]
            if far is not None and goal.get(far) == plug:
                self.peer[plug] = far
        free = {plug for plug in order if goal[plug] is None}
        for plug in order:
            far = goal[plug]
            if far not in free or plug in self.peer:
                continue
            # The firmware of a network card may send before its host does, with an address as name.
            device = self.reports[far].device
            if device == plug.node or _NO_NAME.fullmatch(device):
                self._join(plug, far)
                free.remove(far)
        # Cables between two devices without any named end are equal except for their ports.
        loose: dict[tuple[str, str], list[Plug]] = defaultdict(list)
        for plug in order:
            if plug in free:
                loose[plug.node, self.reports[plug].device].append(plug)
        for (here, there), plugs in loose.items():
            for plug, far in zip(plugs, loose.get((there, here), ()), strict=False):
                if here < there:
                    self._join(plug, far)
        self._use_single(order, goal)

    def _goal(self, plug: Plug) -> Plug | None:
        """Return the port to which a port leads, if the neighbour's table also has it."""
        neighbour = self.reports[plug]
        ends = (Plug(neighbour.device, port) for port in neighbour.ids)
        known = [end for end in ends if end in self.reports or end in self.crowded]
        back = (end for end in known if self._leads_to(end, plug))
        return next(back, None) or next(iter(known), None)

    def _leads_to(self, end: Plug, plug: Plug) -> bool:
        back = self.reports.get(end)
        return back is not None and back.device == plug.node and plug.port in back.ids

    def _join(self, plug: Plug, far: Plug) -> None:
        self.peer[plug] = far
        self.peer[far] = plug

    def _use_single(self, order: Sequence[Plug], goal: dict[Plug, Plug | None]) -> None:
        """Use cables that only one end lists; raises TopologyError if the other end contradicts."""
        silent, nameless = [], []
        for plug in order:
            if plug in self.peer or goal[plug] in self.crowded:
                continue
            neighbour = self.reports[plug]
            if not neighbour.device:
                lost = "leads to a neighbour without name and chassis ID; left out"
                nameless.append(f"{neighbour.where}: {plug} {lost}")
                continue
            if (far := goal[plug]) is not None:
                back = self.reports[far]
                raise TopologyError(
                    f"{neighbour.where}: {plug} leads to {far}, which by {back.where} leads to "
                    f"{Plug(back.device, _label(back.ids))}; collect both tables again"
                )
            far = Plug(neighbour.device, _label(neighbour.ids))
            if far in self.peer:
                raise TopologyError(
                    f"{neighbour.where}: {plug} leads to {far}, as does {self.peer[far]}; a port "
                    "has one cable: look for two devices of one name"
                )
            self._join(plug, far)
            if neighbour.device in self.tables:
                silent.append(
                    f"{neighbour.where}: {plug} leads to {far}, which "
                    f"{self.tables[neighbour.device].where} does not list; used as listed"
                )
        self.warn(nameless)
        self.warn(silent)

    def roles(self) -> tuple[set[str], list[tuple[Plug, Plug]]]:
        """Return the switches, and the cables with a switch at one end or both."""
        cables = [(a, b) for a, b in self.peer.items() if a < b]
        degree = Counter(plug.node for plug in self.peer)
        near: dict[str, set[str]] = defaultdict(set)
        for plug, far in self.peer.items():
            near[plug.node].add(far.node)
        reports = self.reports.values()
        forwards = {(each.device, each.forwards) for each in reports}
        is_port = _SWITCH_PORT.match
        with_switch_ports = {each.device for each in reports if any(map(is_port, each.ids))}

        def is_switch(device: str) -> bool:
            if (table := self.tables.get(device)) and table.has_switch_ports:
                return True
            if (device, True) in forwards:  # as hosts with a bridge for containers do
                return degree[device] > 1 or device in with_switch_ports
            many = len(near[device]) > 1 or device in with_switch_ports
            return many and (device, False) not in forwards

        switches = {device for device in degree if is_switch(device)}
        if not switches:
            refusal = "none of the devices is a switch: expected tables of switches"
            raise TopologyError(f"{refusal}, or of devices with several neighbours")
        self.warn(
            [
                f'"{device}" reports itself as a bridge or a router, and has one cable; taken for '
                "a host"
                for device in in_order(degree)
                if device not in switches and (device, True) in forwards
            ]
        )
        self.warn(
            [
                f'switch "{device}" has no table of its own; its '
                f"{plural(degree[device], 'cable')} as the others list them"
                for device in in_order(switches)
                if device not in self.tables
            ]
        )
        outside = [(a, b) for a, b in cables if not switches & {a.node, b.node}]
        self.warn([f"{a} is cabled to {b}, both hosts; left out" for a, b in sorted(outside)])
        return switches, [cable for cable in cables if switches & {cable[0].node, cable[1].node}]


def _label(ids: Iterable[str]) -> str:
    """Return the first of ID and description that is neither an address nor an index."""
    texts = [each for each in ids if each]
    return next((each for each in texts if not _NO_NAME.fullmatch(each)), (texts or ["port"])[0])
