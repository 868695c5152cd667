"""A fabric as a list of nodes and cables in JSON or TOML, to store, to edit or to write by hand.

    {"schema": 1, "name": "…",
     "hosts": [{"name": "H00-00", "ports": 1, "guid": "0x100001", "lid": 1}, …],
     "switches": […],
     "cables": [{"from": ["H00-00", 1], "to": ["leaf00", 1], "rate_bps": 200000000000}, …]}

`to_json` writes this form. A list by hand may be shorter: a node may be its name alone, an end a
host's name alone, a port a name such as "Ethernet48", and a rate `rate = "100 Gb/s"`; `schema` and
`name` may be left out. A cable may be listed from both ends.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from daqloom.base.line_counts import USED
from daqloom.scenario.files import read_text
from daqloom.scenario.link_rates import PORT_RATE
from daqloom.scenario.toml import TomlError, parse_toml
from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import (
    LONGEST_NAME,
    MOST_CABLES,
    MOST_NODES,
    End,
    Fabric,
    Node,
    check,
    is_name,
)
from daqloom.topology.formats.named_ports import ONLY_PORT, NamedCable, Plug, fabric_of_ports

SCHEMA = 1
LARGEST_LIST_BYTES = 32 << 20


def to_json(fabric: Fabric) -> str:
    """Return one JSON object, one line per node or cable; raises TopologyError if impossible."""
    names = [node.name for node in check(fabric).nodes]
    lists = {
        "hosts": [_node(node) for node in fabric.hosts],
        "switches": [_node(node) for node in fabric.switches],
        "cables": [
            {
                "from": [names[cable.a.node], _port(fabric, cable.a)],
                "to": [names[cable.b.node], _port(fabric, cable.b)],
                "rate_bps": cable.rate_bps,
            }
            for cable in fabric.cables
        ],
    }
    parts = [f'"schema": {SCHEMA}', f'"name": {_text(fabric.name)}']
    for key, items in lists.items():
        lines = ",\n".join(_text(item) for item in items)
        parts.append(f'"{key}": [\n{lines}\n]')
    return "{" + ",\n".join(parts) + "}\n"


def from_json(text: str, source: str = "JSON", rate_bps: int = 0) -> Fabric:
    """Return the fabric of a text in the form of `to_json`, or by hand; raises TopologyError that
    names `source` and the place. `rate_bps`: for cables without a rate of their own."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TopologyError(f"{source} is not valid JSON: {error}") from None
    return _fabric(document, source, rate_bps)


def read_list(path: Path, rate_bps: int = 0) -> Fabric:
    """Return a fabric from a file (TOML if it ends in `.toml`, else JSON); raises TopologyError."""
    try:
        text = read_text(path, LARGEST_LIST_BYTES)
        if path.suffix != ".toml":
            return from_json(text, str(path), rate_bps)
        return _fabric(parse_toml(text), str(path), rate_bps)
    except TomlError as error:
        raise TopologyError(f"{path} {error}") from None
    except TopologyError:
        raise
    except ValueError as error:
        raise TopologyError(str(error)) from None


def _fabric(document: Any, source: str, rate_bps: int) -> Fabric:
    reader = _Reader(source)
    top = reader.object(document, "the file", {"hosts", "switches", "cables"})
    if top.get("schema", SCHEMA) != SCHEMA:
        raise TopologyError(f"{source}: schema {str(top['schema'])[:20]}; expected {SCHEMA}")
    name = reader.text(top.get("name", Path(source).stem), "name")
    hosts = reader.nodes(top["hosts"], "hosts", ports=1)
    switches = reader.nodes(top["switches"], "switches", ports=0)
    known = {node.name: place >= len(hosts) for place, node in enumerate([*hosts, *switches])}
    cables = reader.cables(top["cables"], known, rate_bps)
    try:
        fabric = fabric_of_ports(name, switches, cables, hosts)
    except TopologyError as error:
        raise TopologyError(f"{source}: {error}") from None
    entries = sum(len(top[key]) for key in ("hosts", "switches", "cables"))
    return replace(fabric, lines={Path(source).name: {USED: entries}})


def _text(item: object) -> str:
    return json.dumps(item, ensure_ascii=False)


def _port(fabric: Fabric, end: End) -> int | str:
    return fabric.port_name(end) if fabric.nodes[end.node].port_names else end.port


def _node(node: Node) -> dict[str, object]:
    return {"name": node.name, "ports": node.ports, "guid": f"0x{node.guid:x}", "lid": node.lid}


class _Reader:
    """Checks and converts the parts of a document; every error names the place in the file."""

    def __init__(self, source: str) -> None:
        self.source = source

    def fail(self, where: str, expected: str) -> TopologyError:
        return TopologyError(f"{self.source}: {where}: expected {expected}")

    def object(self, value: Any, where: str, needed: set[str]) -> dict[str, Any]:
        if not isinstance(value, dict) or not needed <= value.keys():
            raise self.fail(where, f"an object with {', '.join(sorted(needed))}")
        return value

    def list(self, value: Any, where: str, most: int) -> list[Any]:
        if not isinstance(value, list) or len(value) > most:
            raise self.fail(where, f"a list of at most {most}")
        return value

    def text(self, value: Any, where: str) -> str:
        if not isinstance(value, str) or not value:
            raise self.fail(where, "a name")
        return value

    def whole(self, value: Any, where: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.fail(where, "a whole number")
        return value

    def nodes(self, value: Any, where: str, ports: int) -> Sequence[Node]:
        nodes = enumerate(self.list(value, where, MOST_NODES))
        return [self.node(node, f"{where}[{place}]", ports) for place, node in nodes]

    def node(self, value: Any, where: str, ports: int) -> Node:
        if isinstance(value, str):
            value = {"name": value}
        document = self.object(value, where, {"name"})
        guid = document.get("guid", "0x0")
        try:
            number = int(guid, 16) if len(guid) <= 18 else -1
        except (TypeError, ValueError):
            raise self.fail(f"{where}.guid", 'a GUID such as "0x100001"') from None
        if "ports" in document:
            ports = self.whole(document["ports"], f"{where}.ports")
            if not ports:
                raise self.fail(f"{where}.ports", "1 or more")
        name = self.text(document["name"], f"{where}.name")
        return Node(name, ports, number, self.whole(document.get("lid", 0), f"{where}.lid"))

    def cables(self, value: Any, known: dict[str, bool], rate_bps: int) -> Sequence[NamedCable]:
        """Return each cable once; `known`: for each node, whether it is a switch."""
        by_ends: dict[tuple[Plug, Plug], tuple[str, NamedCable]] = {}
        for place, each in enumerate(self.list(value, "cables", MOST_CABLES)):
            where = f"cables[{place}]"
            cable = self.cable(each, where, known, rate_bps)
            other, first = by_ends.get((cable.b, cable.a), ("", cable))
            if first.rate_bps != cable.rate_bps:
                raise TopologyError(
                    f"{self.source}: {other} and {where} are the two ends of one cable, at "
                    f"{first.rate_bps} and {cable.rate_bps} b/s; give the rate at which it runs"
                )
            if not other:
                by_ends[cable.a, cable.b] = where, cable
        return [cable for _, cable in by_ends.values()]

    def cable(self, value: Any, where: str, known: dict[str, bool], rate_bps: int) -> NamedCable:
        document = self.object(value, where, {"from", "to"})
        if "rate_bps" in document:
            rate_bps = self.whole(document["rate_bps"], f"{where}.rate_bps")
        elif "rate" in document:
            try:
                rate_bps = round(PORT_RATE.parse(document["rate"]))
            except ValueError as error:
                raise TopologyError(f"{self.source}: {where}.rate {error}") from None
        elif not rate_bps:
            expected = 'a rate, such as rate = "100 Gb/s", or network.links.rate in the scenario'
            raise self.fail(where, expected)
        a, b = (self.end(document[key], f"{where}.{key}", known) for key in ("from", "to"))
        return NamedCable(a, b, rate_bps)

    def end(self, value: Any, where: str, known: dict[str, bool]) -> Plug:
        if isinstance(value, str) and not known.get(value):
            value = [value, ONLY_PORT]
        if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], str):
            raise self.fail(where, 'an end such as ["leaf00", 21] or ["leaf00", "Ethernet48"]')
        node, port = value
        if node not in known:
            raise self.fail(where, f'a node of the file, there is no "{node[:40]}"')
        if isinstance(port, str) and not is_name(port):
            raise self.fail(where, f"a port's name of 1 to {LONGEST_NAME} printable characters")
        return Plug(node, port if isinstance(port, str) else self.whole(port, where))
