"""Access to tables in the configuration database of a SONiC switch by gNMI."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pygnmi.spec.v080 import gnmi_pb2 as gnmi

from daqloom_adapters.gnmi_session import Session, path_of

ORIGIN = "sonic-db"
DATABASE = ("CONFIG_DB", "localhost")
MOST_ROWS = 1 << 16

Key = Annotated[str, Field(max_length=256, pattern=r"^[!-.0-}]+$")]
"""Key of a row, without "/" and "~", which the device would take as JSON pointer syntax."""
Text = Annotated[str, Field(max_length=4096)]
Row = dict[str, str | list[str]]
Tables = dict[str, dict[str, Row]]

_TABLE: TypeAdapter[dict[str, Row]] = TypeAdapter(
    Annotated[dict[Key, dict[Key, Text | list[Text]]], Field(max_length=MOST_ROWS)],
    config=ConfigDict(strict=True),
)


@dataclass(frozen=True)
class Change:
    """A step of a change: delete a path, or replace or add (`update`) its value."""

    how: str
    path: tuple[str, ...]
    value: object = None

    def __str__(self) -> str:
        value = "" if self.how == "delete" else f" {json.dumps(self.value)}"
        return f"{self.how} /{ORIGIN}:{'/'.join(DATABASE + self.path)}{value}"


def read_tables(session: Session, names: Iterable[str]) -> Tables:
    """Return the named tables; a missing table is empty. Raises AdapterError."""
    return {name: _table(session, name) for name in names}


def _table(session: Session, name: str) -> dict[str, Row]:
    found = session.get((*DATABASE, name), origin=ORIGIN)
    try:
        return _TABLE.validate_python(found[0][1] if found else {})
    except ValidationError:
        raise session.error(
            f"invalid table {name} in the answer; expected rows of texts, as in config_db.json"
        ) from None


def changes(now: Tables, then: Tables) -> list[Change]:
    """Return the steps that change the tables `now` into the tables `then`."""
    return [step for name, table in now.items() for step in _of_table(name, table, then[name])]


def _of_table(name: str, now: dict[str, Row], then: dict[str, Row]) -> Iterator[Change]:
    # The device refuses rows of a missing table, and tables without rows.
    if now and not then:
        yield Change("delete", (name,))
    elif then and not now:
        yield Change("update", (name,), then)
    else:
        for key in sorted(now.keys() - then.keys()):
            yield Change("delete", (name, key))
        for key, row in then.items():
            if key in now:
                yield from _of_row((name, key), now[key], row)
            else:
                yield Change("update", (name, key), row)


def _of_row(path: tuple[str, ...], now: Row, then: Row) -> Iterator[Change]:
    for field in sorted(now.keys() - then.keys()):
        yield Change("delete", (*path, field))
    for field, value in then.items():
        if now.get(field) != value:
            yield Change("replace" if field in now else "update", (*path, field), value)


def make(session: Session, steps: Iterable[Change]) -> None:
    """Make all steps, or none of them if one fails. Raises AdapterError."""
    request = gnmi.SetRequest()
    for step in steps:
        path = path_of(DATABASE + step.path, ORIGIN)
        if step.how == "delete":
            request.delete.append(path)
        else:
            value = gnmi.TypedValue(json_ietf_val=json.dumps(step.value).encode())
            getattr(request, step.how).append(gnmi.Update(path=path, val=value))
    session.set(request)
