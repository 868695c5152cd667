"""A fabric as one JSON object, to keep or to edit, and back.

    {"schema": 1, "name": "…",
     "hosts": [{"name": "H00-00", "ports": 1, "guid": "0x100001", "lid": 1}, …],
     "switches": […],
     "cables": [{"from": ["H00-00", 1], "to": ["leaf00", 1], "rate_bps": 200000000000}, …]}

Ends are named by node and port; `guid` and `lid` may be left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from daqloom.scenario.files import read_text
from daqloom.topology.errors import TopologyError
from daqloom.topology.fabric import MOST_CABLES, MOST_NODES, Cable, End, Fabric, Node, checked

SCHEMA = 1
LARGEST_JSON_BYTES = 32 << 20


def to_json(fabric: Fabric) -> str:
    """One object, a node or cable a line; raises TopologyError for an impossible fabric."""
    names = [node.name for node in checked(fabric).nodes]
    lists = {
        "hosts": [_node(node) for node in fabric.hosts],
        "switches": [_node(node) for node in fabric.switches],
        "cables": [
            {
                "from": [names[cable.a.node], cable.a.port],
                "to": [names[cable.b.node], cable.b.port],
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


def from_json(text: str, source: str = "JSON") -> Fabric:
    """What `to_json` wrote; raises TopologyError that names `source` and the place in it."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TopologyError(f"{source} is not valid JSON: {error}") from None
    reader = _Reader(source)
    top = reader.object(document, "the file", {"schema", "name", "hosts", "switches", "cables"})
    if top["schema"] != SCHEMA:
        raise TopologyError(f"{source}: schema {str(top['schema'])[:20]}; expected {SCHEMA}")
    name = reader.text(top["name"], "name")
    hosts = reader.nodes(top["hosts"], "hosts")
    switches = reader.nodes(top["switches"], "switches")
    index = {node.name: place for place, node in enumerate(hosts + switches)}
    told = reader.list(top["cables"], "cables", MOST_CABLES)
    cables = tuple(
        reader.cable(cable, f"cables[{place}]", index) for place, cable in enumerate(told)
    )
    try:
        return checked(Fabric(name, hosts, switches, cables))
    except TopologyError as error:
        raise TopologyError(f"{source}: {error}") from None


def read_json(path: Path) -> Fabric:
    """A fabric from a file; raises TopologyError."""
    try:
        text = read_text(path, LARGEST_JSON_BYTES)
    except ValueError as error:
        raise TopologyError(str(error)) from None
    return from_json(text, str(path))


def _text(item: object) -> str:
    return json.dumps(item, ensure_ascii=False)


def _node(node: Node) -> dict[str, object]:
    return {"name": node.name, "ports": node.ports, "guid": f"0x{node.guid:x}", "lid": node.lid}


class _Reader:
    """Takes a document apart; every error says where in the file."""

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

    def nodes(self, value: Any, where: str) -> tuple[Node, ...]:
        nodes = self.list(value, where, MOST_NODES)
        return tuple(self.node(node, f"{where}[{place}]") for place, node in enumerate(nodes))

    def node(self, value: Any, where: str) -> Node:
        document = self.object(value, where, {"name", "ports"})
        guid = document.get("guid", "0x0")
        try:
            number = int(guid, 16) if len(guid) <= 18 else -1
        except (TypeError, ValueError):
            raise self.fail(f"{where}.guid", 'a GUID such as "0x100001"') from None
        return Node(
            self.text(document["name"], f"{where}.name"),
            self.whole(document["ports"], f"{where}.ports"),
            number,
            self.whole(document.get("lid", 0), f"{where}.lid"),
        )

    def cable(self, value: Any, where: str, index: dict[str, int]) -> Cable:
        document = self.object(value, where, {"from", "to", "rate_bps"})
        return Cable(
            self.end(document["from"], f"{where}.from", index),
            self.end(document["to"], f"{where}.to", index),
            self.whole(document["rate_bps"], f"{where}.rate_bps"),
        )

    def end(self, value: Any, where: str, index: dict[str, int]) -> End:
        if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], str):
            raise self.fail(where, 'an end such as ["leaf00", 21]')
        if value[0] not in index:
            raise self.fail(where, f'a node of the file, there is no "{value[0][:40]}"')
        return End(index[value[0]], self.whole(value[1], where))
