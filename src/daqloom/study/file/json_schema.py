"""JSON Schema of study files: that of the models, with the keys of a scenario in the tables whose
keys are those of a scenario, and with the names of metrics."""

import copy
import re
from collections.abc import Callable, Iterable
from typing import Any

from daqloom.results.metrics import METRICS
from daqloom.scenario.file import json_schema
from daqloom.scenario.file.explain import known_keys
from daqloom.scenario.schema.models import Scenario
from daqloom.simulate.slices import SLICE_METRICS
from daqloom.study.file.tables import StudyFile

Schema = dict[str, Any]

_NUMBER: Schema = {"type": ["string", "number"]}
RANGE: Schema = {
    "type": "object",
    "description": "Values in steps of `step`, or `count` values.",
    "properties": {
        "from": _NUMBER,
        "to": _NUMBER,
        "step": _NUMBER,
        "count": {"type": "integer", "minimum": 2},
        "spacing": {"enum": ["linear", "log"], "default": "linear"},
    },
    "required": ["from", "to"],
    "oneOf": [{"required": ["step"]}, {"required": ["count"]}],
    "additionalProperties": False,
}


def study_schema() -> Schema:
    """Return the JSON Schema of study files."""
    study = json_schema.json_schema(StudyFile, "Study")
    scenario = json_schema.json_schema(Scenario, "Scenario")
    del scenario["title"], scenario["$schema"]
    defs = study["$defs"] | scenario.pop("$defs") | {"Scenario": scenario, "Range": RANGE}
    defs |= {"Key": _names(known_keys()), "Metric": _names(metric.name for metric in METRICS)}
    study["$defs"], tables = defs, study["properties"]
    value, axis = _changes(defs, "set", _value), _changes(defs, "axis", _axis)
    tables["set"] |= value
    tables["grid"] |= axis
    tables["zip"]["items"] = axis
    tables["variants"]["additionalProperties"] = value
    defs["Search"]["properties"]["key"] |= {"$ref": "#/$defs/Key"}
    defs["Repeat"]["properties"]["sets"]["items"] = {"$ref": "#/$defs/Key"}
    defs["Report"]["properties"]["show"]["items"] = {"$ref": "#/$defs/Metric"}
    defs["Equilibrium"]["properties"]["metric"]["enum"] = list(SLICE_METRICS)
    defs["Equilibrium"]["properties"]["longest"] |= {"$ref": "#/$defs/Run/properties/duration"}
    tables["quick"] |= _partial(defs, {key: tables[key] for key in tables if key != "quick"})
    return study


def _names(known: Iterable[str]) -> Schema:
    """Return the schema of texts that are known names; `*` in a name stands for any part."""
    names = list(known)
    forms = [re.escape(name).replace(r"\*", "[^.]+") for name in names if "*" in name]
    plain = {"enum": [name for name in names if "*" not in name]}
    return {"type": "string", "anyOf": [plain, {"pattern": f"^({'|'.join(forms)})$"}]}


def _value(value: Schema, _: Schema) -> Schema:
    return value


def _axis(value: Schema, entry: Schema) -> Schema:
    """Return the schema of the values of a key; `value` refers to that of one, `entry`."""
    is_quantity = "pattern" in entry and "examples" in entry
    ends = {"from": value, "to": value} | ({"step": value} if is_quantity else {})
    values = {"type": "array", "items": value, "minItems": 1}
    return {"anyOf": [values, {"allOf": [{"$ref": "#/$defs/Range"}, {"properties": ends}]}]}


def _changes(
    defs: Schema, kind: str, of_key: Callable[[Schema, Schema], Schema], table: str = "Scenario"
) -> Schema:
    """Return the schema of a table that changes keys of a scenario's table, by dotted names or in
    tables of their own. `of_key` makes the schema of a key from a reference to the schema of its
    value, and from that schema."""
    name = f"{kind}.{table}"
    place = {"$ref": f"#/$defs/{name}"}
    if name in defs:
        return place
    keys: Schema = {}
    forms: Schema = {}
    defs[name] = {"type": "object", "properties": keys, "patternProperties": forms}
    defs[name]["additionalProperties"] = False
    for key, entry in defs[table]["properties"].items():
        if inner := _table(defs, entry):
            keys[key] = _changes(defs, kind, of_key, inner)
            below = defs[f"{kind}.{inner}"]
            for part in below["properties"]:
                keys[f"{key}.{part}"] = {"$ref": f"{keys[key]['$ref']}/properties/{part}"}
            for form, each in below["patternProperties"].items():
                forms[form.replace("^", rf"^{key}\.", 1)] = each
        elif inner := _table(defs, next(iter(entry.get("patternProperties", {}).values()), {})):
            named = _changes(defs, kind, of_key, inner)
            keys[key] = {"type": "object", "additionalProperties": named}
            for part in defs[f"{kind}.{inner}"]["properties"]:
                each = {"$ref": f"{named['$ref']}/properties/{part}"}
                forms[rf"^{key}\.[^.]+\.{re.escape(part)}$"] = each
        else:
            keys[key] = of_key({"$ref": f"#/$defs/{table}/properties/{key}"}, entry)
    return place


def _table(defs: Schema, entry: Schema) -> str:
    """Return the name of the table to which a schema refers, "" for other schemas."""
    name = entry.get("$ref", "").rpartition("/")[2]
    return name if "properties" in defs.get(name, {}) else ""


def _partial(defs: Schema, tables: Schema) -> Schema:
    """Return the schema of a table with any of the keys of `tables`."""
    parts = copy.deepcopy(tables)
    for entry in parts.values():
        if "required" in (table := defs.get(_table(defs, entry), {})):
            del entry["$ref"]
            entry |= {key: table[key] for key in table if key not in ("required", "description")}
    return {"properties": parts, "additionalProperties": False}
