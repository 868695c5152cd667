"""Reader of `lldpcli show neighbors -f json` (lldpd), or `-f json0`, from a host or Linux switch.

    {"lldp": {"interface": [
      {"swp1": {"via": "LLDP", "rid": "1", "age": "0 day, 00:04:11",
         "chassis": {"spine0": {"id": {"type": "mac", "value": "0c:29:…"}, "descr": "…",
            "capability": [{"type": "Bridge", "enabled": true}, …]}},
         "port": {"id": {"type": "ifname", "value": "swp7"}, "descr": "swp7", "ttl": "120"}}},
      …]}}

`json` writes a list of one element as this element, and an object with a `name` as the value of
that name; `json0` does neither. Rates are missing: `auto-negotiation` (with `details`) is ignored,
because it has no names for 25 Gb/s, nor for 200 Gb/s and above.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from daqloom.base.line_counts import IGNORED, USED
from daqloom.topology import TopologyError
from daqloom.topology.dump_lines import whole_text
from daqloom.topology.formats.neighbours import (
    FORWARDING,
    LARGEST_TABLE_BYTES,
    Neighbour,
    Table,
    text_of,
)

EXPECTED = "expected output of `lldpcli show neighbors -f json`"


def read_lldpcli(path: Path, device: str) -> Table:
    """Return the neighbour table of a device; raises TopologyError."""
    text = whole_text(path, LARGEST_TABLE_BYTES, EXPECTED)
    try:
        document = json.loads(text, object_pairs_hook=_merge)
    except (ValueError, RecursionError) as error:
        raise TopologyError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(document, dict) or "lldp" not in document:
        raise TopologyError(f'{path} has no "lldp"; {EXPECTED}')
    reader = _Reader(path)
    by_port = [
        list(reader.neighbour(port, each))
        for lldp in reader.objects(document["lldp"], "lldp")
        for port, each in reader.named_objects(lldp.get("interface"), "interface")
    ]
    neighbours = [each for some in by_port for each in some]
    counts = {USED: len(neighbours), IGNORED: by_port.count([])}
    return Table(device, str(path), neighbours, lines=counts)


def _merge(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; a repeated key (an interface with several neighbours) gets a list."""
    if len(merged := dict(pairs)) == len(pairs):
        return merged
    all_of: dict[str, list[Any]] = defaultdict(list)
    for key, value in pairs:
        all_of[key] += _many(value)
    return dict(all_of)


def _many(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


class _Reader:
    """Checks and converts the parts of a document; every error names the place in the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def objects(self, value: Any, where: str) -> list[dict[str, Any]]:
        """Return an object, or a list of them, as a list."""
        objects = _many(value)
        if not all(isinstance(each, dict) for each in objects):
            raise TopologyError(f"{self.path}: {where}: expected objects")
        return objects

    def text(self, value: Any) -> str:
        """Return a text, or the text in the `value` of an object; empty if there is none."""
        value = next(iter(_many(value)), "")
        if isinstance(value, dict):
            value = next(iter(_many(value.get("value"))), "")
        return text_of(value, str(self.path)) if isinstance(value, str) else ""

    def named_objects(self, value: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield objects and their names; the name is in the object, or a key whose value it is."""
        for entry in self.objects(value, where):
            if "name" in entry:
                yield self.text(entry["name"]), entry
            else:
                for name, inner in entry.items():
                    for each in self.objects(inner, f"{where} {text_of(name, str(self.path))}"):
                        yield text_of(name, str(self.path)), each

    def neighbour(self, port: str, entry: dict[str, Any]) -> Iterator[Neighbour]:
        """Yield the neighbour at a port if it uses LLDP; lldpd may also receive other protocols."""
        where = f"{self.path}: {port or 'an interface without name'}"
        if self.text(entry.get("via")) not in ("", "LLDP"):
            return
        ids = tuple(
            self.text(each.get(key))
            for each in self.objects(entry.get("port"), f"port of {port}")
            for key in ("id", "descr")
        )
        name, chassis = self.chassis(entry.get("chassis"), port)
        chassis_id = self.text(chassis.get("id"))
        if not port or not (name or chassis_id or any(ids)):
            raise TopologyError(f"{where}: expected a neighbour with a chassis and a port")
        forwards = self.forwards(chassis.get("capability"), port)
        yield Neighbour(port, name, ids, chassis_id, forwards, str(self.path))

    def chassis(self, value: Any, port: str) -> tuple[str, dict[str, Any]]:
        """Return name and content of a chassis; without a name, the entry itself is the content."""
        entries = self.objects(value, f"chassis of {port}")
        for entry in entries:
            chassis_id = next(iter(_many(entry.get("id"))), None)
            if "name" not in entry and isinstance(chassis_id, dict) and "value" in chassis_id:
                return "", entry
        return next(self.named_objects(entries, f"chassis of {port}"), ("", {}))

    def forwards(self, value: Any, port: str) -> bool | None:
        capabilities = self.objects(value, f"capability of {port}")
        on = [each.get("type") for each in capabilities if each.get("enabled") in (True, "on")]
        return any(kind in on for kind in FORWARDING) if capabilities else None
