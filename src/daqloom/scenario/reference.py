"""Writes docs/reference/scenario.md from the models: `python -m daqloom.scenario.reference`."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from daqloom.scenario.event import LeakyBucket
from daqloom.scenario.explain import named_tables
from daqloom.scenario.fabric import FabricScenario
from daqloom.scenario.hosts import Stage
from daqloom.scenario.load import presets
from daqloom.scenario.models import Scenario
from daqloom.scenario.push import Group
from daqloom.scenario.quantities import TIME, dimension_of
from daqloom.scenario.switches import ARCHITECTURES, DEFAULTS, Switch

HEAD = """\
# Scenario keys

<!-- Written by `python -m daqloom.scenario.reference`; edit src/daqloom/scenario instead. -->

A scenario is a TOML file that describes one event-building system; `analyse` and `simulate` take
the same file. A scenario is given by name ({names}) or by the path of its file. `daqloom show NAME`
prints one with every default. `--set event.size="2 MB"` overrides any key below.

Quantities are strings with a unit: sizes in bytes (`"5 MB"`, `"64 KiB"`), rates in bits per second
(`"25 Gb/s"`), times in seconds (`"170 ns"`), frequencies in hertz (`"12 kHz"`). Prefixes are
decimal; `Ki`, `Mi`, `Gi` are binary. A quantity without a unit, a negative one and one of another
dimension are refused, and so is a key that is not listed here. Files are text, relative to the
scenario's folder (to the working folder in `--set`); `#` starts a comment in them.
"""

FABRIC = """
# Scenario keys of a fabric

A scenario with any of the tables below is that of an event builder on an InfiniBand fabric, which
builds events by linear shifting or as DAQPIPE does, or of hosts that just write to each other:
`simulate` takes it. A key whose meaning begins
with a value (`count:`, `shift:`) means nothing where another value is chosen. The keys at the top
of the file and `[run]` are the same; there `duration` is {duration} and `warmup` {warmup} unless
given.
"""

SWITCH = """
`[switch.core]` stands between the sources and the uplinks, `[switch.tor]` before the builders.
Both have the same keys. What `buffer` and its companions default to depends on `model`; a dash
means that the key means nothing to that model and is refused there. Overriding `model` drops the
file's numbers for the model it replaces.
"""


def reference() -> str:
    """The page's text."""
    names = ", ".join(f"`{name}`" for name in presets())
    run = FabricScenario.model_fields["run"].annotation
    assert isinstance(run, type)
    given = {key: TIME.format(run.model_fields[key].default) for key in ("duration", "warmup")}
    of_fabrics = ("fragments", "nodes", "shift", "daqpipe", "flows", "fabric", "measure")
    return "\n".join(
        [
            HEAD.format(names=names),
            *_sections(Scenario, ""),
            FABRIC.format(**given),
            *_sections(FabricScenario, "", of_fabrics),
            "",
        ]
    )


def _sections(
    model: type[BaseModel], path: str, only: Container[str] | None = None
) -> Iterator[str]:
    own = {
        key: field
        for key, field in model.model_fields.items()
        if not _is_table(field) and not named_tables(field)
    }
    if own and only is None:
        yield f"## `[{path}]`" if path else "## At the top of the file"
        yield from ["", *_rows(own), ""]
    for key, field in model.model_fields.items():
        if path == "" and key == "switch":
            yield from _switch_section()
        elif _is_table(field) and (only is None or key in only):
            assert isinstance(field.annotation, type)
            yield from _sections(field.annotation, f"{path}.{key}" if path else key)
        elif (named := named_tables(field)) and (only is None or key in only):
            yield from _sections(named, f"{key}.NAME")


def _rows(fields: dict[str, FieldInfo]) -> Iterator[str]:
    yield "| key | default | values | meaning |"
    yield "|---|---|---|---|"
    for key, field in fields.items():
        yield f"| `{key}` | {_default(field)} | {_values(field)} | {_sentence(field)} |"
        entries: dict[str, type[BaseModel]] = {
            "processing": Stage,
            "complex_dead_time": LeakyBucket,
            "groups": Group,
        }
        inside = entries[key].model_fields if key in entries else {}
        for inner, described in inside.items():
            yield (
                f"| `{key}[].{inner}` | {_default(described)} | {_values(described)} "
                f"| {_sentence(described)} |"
            )


def _switch_section() -> Iterator[str]:
    fields = Switch.model_fields
    yield "## `[switch.core]`, `[switch.tor]`"
    yield SWITCH
    yield "| key | values | meaning |"
    yield "|---|---|---|"
    for key, field in fields.items():
        yield f"| `{key}` | {_values(field)} | {_sentence(field)} |"
    yield ""
    yield "| default of | " + " | ".join(f"`{model}`" for model in DEFAULTS) + " |"
    yield "|---|" + "---|" * len(DEFAULTS)
    for key, field in fields.items():
        if key == "model":
            shown = [f"is {ARCHITECTURES[model]}" for model in DEFAULTS]
        elif any(key in known for known in DEFAULTS.values()) and key != "cost":
            shown = [f"`{known[key]}`" if key in known else "–" for known in DEFAULTS.values()]
        else:
            own = _default(field)
            shown = [f"`{known[key]}`" if key in known else own for known in DEFAULTS.values()]
        yield f"| `{key}` | " + " | ".join(shown) + " |"
    yield ""


def _is_table(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    dimension = dimension_of(field)
    if dimension:
        return f"`{dimension.format(field.default)}`"
    value: Any = field.default
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if value in ("", ()):
        return "none"
    return f"`{value}`"


def _values(field: FieldInfo) -> str:
    dimension = dimension_of(field)
    if dimension:
        return f"{dimension.name} ({dimension.unit})"
    annotation: Any = field.annotation
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(annotation))
    if field.default == "equal":
        return "`equal`, or list of numbers"
    names: dict[Any, str] = {
        int: "whole number",
        float: "number",
        bool: "`true`, `false`",
        str: "text",
        int | str: "whole number or text",
    }
    return names.get(annotation, "list")


def _sentence(field: FieldInfo) -> str:
    text = (field.description or "").replace("|", "\\|")
    dimension = dimension_of(field)
    if dimension:
        text = text.removesuffix(f" ({dimension.unit})")  # `values` says it
    return text[:1].upper() + text[1:]


if __name__ == "__main__":
    print(reference(), end="")
