"""Names of links, and lookup of the link to which a port of a log belongs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from daqloom.base.words import natural_key
from daqloom.faults.logs.change import Port

if TYPE_CHECKING:
    from daqloom.topology.fabric.fabric import Cable, End, Fabric

_GUID = re.compile(r"0x[0-9a-f]{1,16}", re.IGNORECASE)


class Links:
    """Links named by their ends, `leaf0 port 21 - spine0 port 1`. In a known network, a port is
    found by its node and its number, name or GUID. Without a network, a port whose other end no log
    names counts as a separate link."""

    def __init__(
        self,
        fabric: Fabric | None = None,
        cables: Mapping[Port, Port] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        """`cables`, `names`: as in `LogContent`."""
        self.names: tuple[str, ...] = ()
        """Links of the network, sorted by switch and port; empty if no network is given."""
        self.cables: dict[str, Cable] = {}
        """Cables of the network by link."""
        self._of: dict[Port, str] = {}
        self._known: dict[str, str] = {}
        self._cables = {} if cables is None else cables
        self._names = {} if names is None else names
        if fabric:
            self._add(fabric)

    def name(self, port: Port) -> str | None:
        """Return the link name of a port; None if the port is not in the network."""
        ends = sorted({port, self._cables.get(port, port)}, key=lambda end: end != port)
        if self._of:
            return next(filter(None, map(self._in_network, ends)), None)
        names = [(self._names.get(end.node, end.node), end) for end in sorted(ends)]
        return " - ".join(
            f"{name} port {end.port}" if end.port else end.node for name, end in names
        )

    def _in_network(self, port: Port) -> str | None:
        key = Port(_plain(port.node), _plain(port.port))
        return self._of.get(key) or self._known.get(_plain(port.node) if not port.port else "")

    def _add(self, fabric: Fabric) -> None:
        named: list[tuple[tuple[object, ...], str]] = []
        for cable in fabric.cables:
            # The switch comes first; of two switches, the one whose name sorts first.
            ends = sorted((cable.a, cable.b), key=lambda end: _rank(fabric, end))
            names = [fabric.end_name(end) for end in ends]
            link = " - ".join(names)
            first = fabric.nodes[ends[0].node]
            named.append(((natural_key(first.name), ends[0].port), link))
            self.cables[link] = cable
            self._known |= {_plain(" - ".join(way)): link for way in (names, names[::-1])}
            for end in ends:
                self._add_end(fabric, end, link)
        self.names = tuple(link for _, link in sorted(named))

    def _add_end(self, fabric: Fabric, end: End, link: str) -> None:
        node = fabric.nodes[end.node]
        ports = {str(end.port), _plain(fabric.port_name(end))}
        if end.node < len(fabric.hosts):
            ports.add("")
        guid, lid = f"0x{node.guid:x}" if node.guid else "", f"lid {node.lid}" if node.lid else ""
        for name in (_plain(node.name), guid, lid):
            self._of |= {Port(name, port): link for port in ports if name}
        self._known[_plain(fabric.end_name(end))] = link


def _rank(fabric: Fabric, end: End) -> tuple[bool, object, int]:
    return end.node < len(fabric.hosts), natural_key(fabric.nodes[end.node].name), end.port


def _plain(name: str) -> str:
    """Return the name in lower case; a GUID loses its leading zeros."""
    name = name.strip().lower()
    return f"0x{int(name, 16):x}" if _GUID.fullmatch(name) else name
