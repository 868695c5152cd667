"""JSON Schema of a format of files, from the models that validate them: for editors, and for
programs that write files. Rules across keys and ranges of quantities are left to the loader."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from daqloom.scenario.file.reference import choices_of, default_in_words
from daqloom.scenario.quantities import dimension_of, example_of
from daqloom.scenario.schema.choices import Key, keys_of

DIALECT = GenerateJsonSchema.schema_dialect
"""Draft 2020-12. The keywords in use mean the same in draft 7, which some editors know."""
_RANGES = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def json_schema(model: type[BaseModel], title: str) -> dict[str, Any]:
    """Return the JSON Schema of the files that `model` validates."""
    found = model.model_json_schema(schema_generator=_Generator)
    return {"$schema": DIALECT, "title": title, **found}


class _Generator(GenerateJsonSchema):
    """Generator with the meanings, defaults and conditions of keys, as a file contains them."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def nullable_schema(self, schema: Any) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])  # TOML has no null

    def dict_schema(self, schema: Any) -> JsonSchemaValue:
        found = super().dict_schema(schema)
        return found | {"additionalProperties": False} if "patternProperties" in found else found

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        found, model = super().model_schema(schema), schema["cls"]
        del found["title"]
        found["description"] = " ".join(found["description"].split())
        for name in model.model_fields:
            _describe(found["properties"][name], keys_of(model)[name])
        return found


def _describe(entry: dict[str, Any], key: Key) -> None:
    """Add the meaning of a key to its schema, and its default in the notation of a file."""
    given, sentences = entry.pop("default", None), [key.meaning]
    if dimension := dimension_of(key.field):
        for each in _RANGES:  # numbers, where the file has a text
            entry.pop(each, None)
        given = dimension.format(given) if isinstance(given, int | float) else None
        entry["examples"] = [example_of(key.field)]
    if not (key.table or key.field.is_required()):
        default = default_in_words(key)
        if given is not None and default in (given, str(given).lower()):
            entry["default"] = given
        elif default != "none":
            sentences.append(f"Default: {default}")
    if conditions := choices_of(key):
        sentences.append(f"Only with {conditions}")
    entry["description"] = ". ".join(sentences) + "."
