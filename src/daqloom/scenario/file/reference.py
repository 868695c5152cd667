"""Writes docs/reference/scenario.md: `python -m daqloom.scenario.file.reference`."""

import json
from collections.abc import Iterator
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from daqloom.scenario.quantities import dimension_of
from daqloom.scenario.schema.choices import Key, keys_of, named_tables, table_of
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.part import Guess, meanings
from daqloom.scenario.schema.switches import ARCHITECTURES, DEFAULTS, PacketBuffer, Switch

HEAD = """\
# Scenario keys

<!-- Written by `python -m daqloom.scenario.file.reference`; edit src/daqloom/scenario instead. -->

A scenario is a TOML file that describes one event-building system in five parts: the events
(`[event]`), the building protocol (`[building]`), the units and their hosts (`[readout]`,
`[builders]`, `[hosts]`), the transport (`[transport]`), and the network (`[network]`). All methods
use the same file. A scenario is given by the path of its file, or by a name that
`daqloom scenarios` lists. `daqloom show NAME` prints one with all defaults. `--set
event.size="2 MB"` overrides any key below.

Quantities are strings with a unit: sizes in bytes (`"5 MB"`, `"64 KiB"`), rates in bits per second
(`"25 Gb/s"`), times in seconds (`"170 ns"`, also `"2 min"`, `"1 h"`), frequencies in hertz
(`"12 kHz"`). Prefixes are decimal; `Ki`, `Mi`, `Gi` are binary. A share may also be given in per
cent (`"20 %"` is 0.2). Refused are quantities without a unit, negative quantities, quantities with
the unit of another dimension, and keys that are not listed here. Files that keys name are text
files, relative to the scenario's folder (to the working folder in `--set`); `#` starts a comment in
them.

A default with a star is a guess at your system. Other defaults are neutral: they switch something
off, or are those of a standard or of Linux. `daqloom show` and the results of each method list the
guessed defaults that affect the system as assumed.

A key with an entry in the column *with* applies only with these values of other keys, and is
refused with others. `--set` of one of these other keys drops the file's keys that no longer apply.

A **multi-fragment packet (MFP)** contains `event.packing` consecutive fragments of one source. The
MFPs of all sources for the same events are a **multi-event packet (MEP)**, which one builder unit
builds as a whole. An event builder is **folded** if each host has
both a readout unit and a builder unit.
"""

SWITCH = """
In racks and farms, `[network.switch.core]` is between the readout units and the uplinks, and
`[network.switch.tor]` in front of the builder units. Both have the same keys. The defaults of
`buffer` and related keys depend on `model`; a model refuses the keys with a dash. `--set` of
`model` drops the file's keys of the previous model.
"""


def reference() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *sections(Scenario), ""])


def sections(model: type[BaseModel], path: str = "") -> Iterator[str]:
    """Yield a section with the keys of a table, and of each table in it."""
    if any(not table_of(each) and not named_tables(each) for each in model.model_fields.values()):
        yield f"## `[{path}]`" if path else "## At the top of the file"
        yield from ["", *_rows(model, path), ""]
    for key, field in model.model_fields.items():
        inner = f"{path}.{key}" if path else key
        if inner == "network.switch.core":
            yield from _switch_section()
        elif (table := table_of(field)) and table is not Switch:
            yield from sections(table, inner)
        elif named := named_tables(field):
            yield from sections(named, f"{inner}.NAME")


def _rows(model: type[BaseModel], path: str) -> Iterator[str]:
    yield "| key | default | with | values | meaning |"
    yield "|---|---|---|---|---|"
    keys, meaning_of = keys_of(Scenario), meanings(model)
    for name, field in model.model_fields.items():
        if table_of(field) or named_tables(field):
            continue
        key = keys.get(f"{path}.{name}" if path else name)
        yield (
            f"| `{name}` | {default_of(field, key)} | {choices_of(key)} | {values_of(field)} "
            f"| {sentence_of(field, meaning_of[name])} |"
        )
        if entry := entry_of(field):
            of_entry = meanings(entry)
            for inner, each in entry.model_fields.items():
                yield (
                    f"| `{name}[].{inner}` | {default_of(each)} | | {values_of(each)} "
                    f"| {sentence_of(each, of_entry[inner])} |"
                )


def entry_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model of the entries if a key is a list of tables, else None."""
    entry = (
        (*get_args(field.annotation), None)[0] if get_origin(field.annotation) is tuple else None
    )
    return entry if isinstance(entry, type) and issubclass(entry, BaseModel) else None


def choices_of(key: Key | None) -> str:
    """Return the values of other keys with which a key applies, as text."""
    if key is None:
        return ""
    choices = []
    for condition in key.conditions:
        name = condition.key.rpartition(".")[2]
        among = ", ".join(each or "none" for each in condition.among)
        either = f", or {condition.or_with.rpartition('.')[2]}" if condition.or_with else ""
        choices.append((f"{name} {among}" if among else name) + either)
    return "; ".join(choices)


def _switch_section() -> Iterator[str]:
    fields, meaning_of = Switch.model_fields, meanings(Switch)
    yield "## `[network.switch.core]`, `[network.switch.tor]`"
    yield SWITCH
    yield "| key | values | meaning |"
    yield "|---|---|---|"
    for key, field in fields.items():
        yield f"| `{key}` | {values_of(field)} | {sentence_of(field, meaning_of[key])} |"
    yield ""
    yield "| default of | " + " | ".join(f"`{model}`" for model in DEFAULTS) + " |"
    yield "|---|" + "---|" * len(DEFAULTS)
    for key, field in fields.items():
        known = DEFAULTS.values()
        is_of_models = key != "cost" and any(key in keys for keys in known)
        own = "–" if is_of_models else default_of(field)
        shown = [f"`{keys[key]}`" if key in keys else own for keys in known]
        if key == "model":
            shown = [f"is {ARCHITECTURES[model]}" for model in DEFAULTS]
        yield f"| `{key}` | " + " | ".join(shown) + " |"
    yield ""


def default_of(field: FieldInfo, key: Key | None = None) -> str:
    """Return the default of a key, for a page."""
    if field.is_required():
        return "required"
    if field.default_factory is not None:
        return "none"
    extra = field.json_schema_extra
    if isinstance(extra, dict) and "default" in extra:
        return str(extra["default"])
    if key and (by := key.default_with):
        defaults = [f"`{_plain(value)}` ({choice})" for choice, value in by.values.items()]
        return ", ".join([*defaults, f"else `{_shown(field)}`"]) + _mark(field)
    if key and key.guessed:
        return f"`{key.guessed.default}` ({key.guessed.where}) *, else `{_shown(field)}`"
    shown = _shown(field)
    return f"`{shown}`{_mark(field)}" if shown else "none"


def default_in_words(model: type[BaseModel], name: str) -> str:
    """Return the default of a key, for a sentence; for a switch with its models."""
    by_model = {each: keys[name] for each, keys in DEFAULTS.items() if name in keys}
    if issubclass(model, PacketBuffer) and by_model and name != "cost":
        return ", ".join(f"{_plain(value)} ({each})" for each, value in by_model.items())
    found = default_of(model.model_fields[name], keys_of(model)[name])
    return found.replace("`", "").replace(" *", " (a guess)")


def _shown(field: FieldInfo) -> str:
    dimension = dimension_of(field)
    return dimension.format(field.default) if dimension else _plain(field.default)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return json.dumps(value) if value else ""
    return "" if value is None else str(value)


def _mark(field: FieldInfo) -> str:
    return " *" if any(isinstance(item, Guess) for item in field.metadata) else ""


def _without_none(annotation: Any) -> Any:
    """Return the type `T` of an annotation `T | None`; other annotations are unchanged."""
    either = get_args(annotation)
    if NoneType not in either or len(either) != 2:
        return annotation
    present = next(each for each in either if each is not NoneType)
    return get_args(present)[0] if get_origin(present) is Annotated else present


def values_of(field: FieldInfo) -> str:
    """Return the kind of values of a key, for a page."""
    dimension = dimension_of(field)
    if dimension:
        return f"{dimension.name} ({dimension.unit})"
    annotation = _without_none(field.annotation)
    if annotation in _KINDS:
        return _KINDS[annotation]
    if field.default == "equal":
        return "`equal`, or list of numbers"
    is_list = get_origin(annotation) is tuple
    kinds = get_args(annotation)[: 1 if is_list else None]
    if get_origin(annotation) is Literal:
        kinds = (annotation,)
    choices = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    words = ", ".join(f"`{word}`" for word in choices)
    if is_list or not words:
        return f"list of {words}" if words else "list"
    others = f", or {'whole number' if int in kinds else 'list'}" if len(kinds) > 1 else ""
    return words + others


_KINDS: dict[Any, str] = {
    int: "whole number",
    float: "number",
    bool: "`true`, `false`",
    str: "text",
    int | str: "whole number or text",
    str | int | float: "quantity",
    int | tuple[int, ...]: "whole number or list of these",
    tuple[str, ...]: "list of texts",
    tuple[str | int | float, str | int | float]: "two quantities",
}
"""Kinds of values by their types."""


def sentence_of(field: FieldInfo, meaning: str) -> str:
    """Return the meaning of a key, for a page."""
    text = meaning.replace("|", "\\|")
    dimension = dimension_of(field)
    if dimension:
        text = text.removesuffix(f" ({dimension.unit})")  # `values` says it
    return text[:1].upper() + text[1:]


if __name__ == "__main__":
    print(reference(), end="")
