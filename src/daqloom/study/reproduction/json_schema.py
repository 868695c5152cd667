"""JSON Schema of records: that of the models, with the tables of a study file where they occur."""

from typing import Any

from daqloom.scenario.file import json_schema
from daqloom.study.file.axis import VARIANT
from daqloom.study.file.json_schema import study_schema
from daqloom.study.reproduction.record import Record


def record_schema() -> dict[str, Any]:
    """Return the JSON Schema of records of published numbers."""
    found, study = json_schema.json_schema(Record, "Published number"), study_schema()
    found["$defs"] |= study["$defs"]
    found["$defs"]["StudyTables"] = study["properties"]["quick"]  # any of the keys of a study
    axis = {"anyOf": [{"const": VARIANT}, {"$ref": "#/$defs/Key"}]}
    for term in ("Ours", "Term"):
        keys = found["$defs"][term]["properties"]
        for name in ("tables", "quick"):
            del keys[name]["type"], keys[name]["additionalProperties"]
            keys[name] |= {"$ref": "#/$defs/StudyTables"}
        keys["at"] |= {"propertyNames": axis}
    return found
