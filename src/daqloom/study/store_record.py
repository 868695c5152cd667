"""What a store keeps of one cell and of who computed it, and the JSON that says it."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, NoReturn

from daqloom.result import Result
from daqloom.study.cell import Cell
from daqloom.study.store_lines import DamageError

KEPT = ("course",)
"""Series that every record keeps: equilibrium and return levels are read off them."""


def now() -> str:
    """The time as stores write it: ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def host() -> str:
    """The name of this machine."""
    return platform.node() or "unknown"


@dataclass(frozen=True, slots=True)
class Session:
    """One process that wrote to a store."""

    command: str
    host: str
    system: str
    processors: int
    python: str
    daqloom: str
    started: str

    @classmethod
    def current(cls) -> Session:
        """Return the session of this process."""
        from daqloom.version import installed

        command = shlex.join(sys.argv).encode(errors="backslashreplace").decode()
        return cls(
            command=command,
            host=host(),
            system=platform.platform(),
            processors=os.cpu_count() or 1,
            python=platform.python_version(),
            daqloom=installed(),
            started=now(),
        )

    def to_json(self) -> str:
        """Return the session as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: bytes) -> Session:
        """Reads what `to_json` wrote. Raises ValueError; ignores unknown keys."""
        try:
            given = json.loads(text)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        names = {field.name: int if field.name == "processors" else str for field in fields(cls)}
        if not isinstance(given, dict):
            raise ValueError("no object")
        for name, kind in names.items():
            if not isinstance(given.get(name), kind):
                raise ValueError(f"{name} is no {kind.__name__}")
        return cls(**{name: given[name] for name in names})


@dataclass(frozen=True, slots=True)
class Record:
    """A result and where it comes from. `scenario` is the resolved scenario, every key in SI
    numbers; `time` is when the result was put (ISO 8601, UTC); `session` is None where the line
    that held it is damaged."""

    key: str
    method: str
    seed: int | None
    scenario: dict[str, Any]
    result: Result
    time: str
    session: Session | None


def written(cell: Cell, result: Result) -> bytes:
    """The record as one line of JSON, what varies least between cells first. Of the result's series
    only the course of its metrics is kept, and of what was assumed nothing: the same cell may be
    another study's that gives it (`Study.assumed`)."""
    result = replace(result, assumed={})
    head = {
        "scenario": cell.scenario.model_dump(mode="json"),
        "method": cell.method,
        "seed": cell.seed,
        "time": now(),
    }
    start = json.dumps(head, allow_nan=False).removesuffix("}")
    return f'{start}, "result": {result.to_json(series=KEPT, indent=None)}}}'.encode()


def read(key: str, text: bytes, session: Session | None) -> Record:
    """The inverse of `written`. Raises DamageError."""
    try:
        given = json.loads(text, parse_constant=_no_constant)
        if not isinstance(given, dict):
            raise DamageError("it is no object")
        kinds = {"scenario": dict, "method": str, "seed": int | None, "time": str, "result": dict}
        for name, kind in kinds.items():
            if name not in given or not isinstance(given[name], kind):
                raise DamageError(f"its {name} is not what it should be")
        result = Result.from_dict(given["result"])
    except RecursionError:
        raise DamageError("it is nested too deeply") from None
    except ValueError as error:  # a ResultError is one too
        raise DamageError(str(error)) from None
    return Record(
        key=key,
        method=given["method"],
        seed=given["seed"],
        scenario=given["scenario"],
        result=result,
        time=given["time"],
        session=session,
    )


def _no_constant(name: str) -> NoReturn:
    raise DamageError(f"{name} is no number")
