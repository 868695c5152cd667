"""What a store keeps of one cell, and the JSON that says it."""

import json
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from daqloom.result import Result
from daqloom.study.cell import Cell
from daqloom.study.session import Session, now
from daqloom.study.store_lines import DamageError

KEPT = ("course",)
"""Series that every record keeps: equilibrium and return levels are read off them."""


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
