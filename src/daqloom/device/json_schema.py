"""JSON Schema of device files: that of the models, with the keys of the installed adapters."""

from typing import Any

from daqloom.device.document import DeviceFile
from daqloom.device.registry import adapter_type, names
from daqloom.scenario.file.json_schema import json_schema


def device_schema() -> dict[str, Any]:
    """Return the JSON Schema of device files."""
    device = json_schema(DeviceFile, "Device under test")
    defs, kinds = device["$defs"], {name: adapter_type(name) for name in names()}
    for name, kind in kinds.items():
        table = json_schema(kind.Options, name)
        defs |= table.pop("$defs", {})
        table["properties"] = {"adapter": {"const": name}, **table["properties"]}
        table["required"] = ["adapter", *table.get("required", ())]
        del table["$schema"]
        defs[f"adapter.{name}"] = table
    for key, method in (("configure", "apply"), ("count", "read")):
        able = [name for name, kind in kinds.items() if hasattr(kind, method)]
        device["properties"][key] |= _one_of(defs, able)
        del device["properties"][key]["additionalProperties"]
    return device


def _one_of(defs: dict[str, Any], adapters: list[str]) -> dict[str, Any]:
    """Return the schema of a table with the keys of the adapter that it names."""
    every = {key: each for name in adapters for key, each in _keys(defs, name).items()}
    is_of = {name: {"properties": {"adapter": {"const": name}}} for name in adapters}
    return {
        # Descriptions of all keys, for completion: some editors do not look below `then`.
        "properties": {key: {"description": each["description"]} for key, each in every.items()}
        | {"adapter": {"enum": adapters, "description": "Name of the adapter."}},
        "required": ["adapter"],
        "allOf": [
            {"if": is_of[name], "then": {"$ref": f"#/$defs/adapter.{name}"}} for name in adapters
        ],
    }


def _keys(defs: dict[str, Any], name: str) -> dict[str, Any]:
    table = defs[f"adapter.{name}"]["properties"]
    return {key: each for key, each in table.items() if key != "adapter"}
