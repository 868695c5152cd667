"""Writes docs/reference/scenario.md: `python -m daqloom.scenario.file.reference`."""

import json
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from daqloom.scenario.quantities import dimension_of
from daqloom.scenario.schema.choices import Key, all_keys, keys_of, without_none
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.part import Guess
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
(`"25 Gb/s"`), times in seconds (`"10 us"`, `"2 min"`, `"1 h"`), frequencies in hertz
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


def sections(model: type[BaseModel]) -> Iterator[str]:
    """Yield a section with the keys of a table, for each table of a format."""
    tables: dict[str, list[Key]] = {}
    for key in all_keys(model):
        table = key.path.partition("[]")[0].rpartition(".")[0]
        tables.setdefault(table, []).append(key)
    for table, keys in tables.items():
        if table == "network.switch.core":
            yield from _switch_section()
        elif keys[0].model is not Switch and (rows := [*_rows(keys, table)]):
            yield f"## `[{table.replace('*', 'NAME')}]`" if table else "## At the top of the file"
            yield from ["", "| key | default | with | values | meaning |", "|---|---|---|---|---|"]
            yield from [*rows, ""]


def _rows(keys: list[Key], table: str) -> Iterator[str]:
    for key in keys:
        name = key.path.removeprefix(f"{table}.")
        choices = "" if "[" in name else choices_of(key)  # of the list, in the list's row
        if not key.table:
            yield (
                f"| `{name}` | {default_of(key)} | {choices} | {values_of(key.field)} "
                f"| {sentence_of(key)} |"
            )


def choices_of(key: Key) -> str:
    """Return the values of other keys with which a key applies, as text."""
    choices = []
    for condition in key.conditions:
        name = condition.key.rpartition(".")[2]
        among = ", ".join(each or "none" for each in condition.among)
        either = f", or {condition.or_with.rpartition('.')[2]}" if condition.or_with else ""
        choices.append((f"{name} {among}" if among else name) + either)
    return "; ".join(choices)


def _switch_section() -> Iterator[str]:
    keys = keys_of(Switch)
    yield "## `[network.switch.core]`, `[network.switch.tor]`"
    yield SWITCH
    yield "| key | values | meaning |"
    yield "|---|---|---|"
    for name, key in keys.items():
        yield f"| `{name}` | {values_of(key.field)} | {sentence_of(key)} |"
    yield ""
    yield "| default of | " + " | ".join(f"`{model}`" for model in DEFAULTS) + " |"
    yield "|---|" + "---|" * len(DEFAULTS)
    for name, key in keys.items():
        known = DEFAULTS.values()
        is_of_models = name != "cost" and any(name in defaults for defaults in known)
        own = "–" if is_of_models else default_of(key)
        shown = [f"`{defaults[name]}`" if name in defaults else own for defaults in known]
        if name == "model":
            shown = [f"is {ARCHITECTURES[model]}" for model in DEFAULTS]
        yield f"| `{name}` | " + " | ".join(shown) + " |"
    yield ""


def default_of(key: Key) -> str:
    """Return the default of a key, for a page."""
    field = key.field
    if field.is_required():
        return "required"
    if field.default_factory is not None:
        return "none"
    extra = field.json_schema_extra
    if isinstance(extra, dict) and "default" in extra:
        return str(extra["default"])
    if by := key.default_with:
        defaults = [f"`{_plain(value)}` ({choice})" for choice, value in by.values.items()]
        return ", ".join([*defaults, f"else `{_shown(field)}`"]) + _mark(field)
    if key.guessed:
        return f"`{key.guessed.default}` ({key.guessed.where}) *, else `{_shown(field)}`"
    shown = _shown(field)
    return f"`{shown}`{_mark(field)}" if shown else "none"


def default_in_words(key: Key) -> str:
    """Return the default of a key, for a sentence; for a switch with its models."""
    by_model = {each: keys[key.name] for each, keys in DEFAULTS.items() if key.name in keys}
    if issubclass(key.model, PacketBuffer) and by_model and key.name != "cost":
        return ", ".join(f"{_plain(value)} ({each})" for each, value in by_model.items())
    return default_of(key).replace("`", "").replace(" *", " (a guess)")


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


def values_of(field: FieldInfo) -> str:
    """Return the kind of values of a key, for a page."""
    dimension = dimension_of(field)
    if dimension:
        return f"{dimension.name} ({dimension.unit})"
    annotation = without_none(field.annotation)
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


def sentence_of(key: Key) -> str:
    """Return the meaning of a key, for a page."""
    text = key.meaning.replace("|", "\\|")
    if dimension := dimension_of(key.field):
        text = text.removesuffix(f" ({dimension.unit})")  # `values` says it
    return text[:1].upper() + text[1:]


if __name__ == "__main__":
    print(reference(), end="")
