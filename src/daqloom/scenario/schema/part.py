"""The base of all tables of a scenario."""

import ast
import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class Part(BaseModel):
    """A table of the scenario file: immutable, without unknown keys."""

    model_config = ConfigDict(
        defer_build=True, extra="forbid", frozen=True, allow_inf_nan=False, strict=True
    )


def items(most: int) -> Any:
    """Return the pydantic field for a list of at most `most` entries, empty by default."""
    return Field(default=(), strict=False, max_length=most)


@functools.cache
def meanings(table: type[BaseModel]) -> dict[str, str]:
    """Return the description of each key of a table: the string below its declaration. Pydantic
    would parse these strings at every start."""
    found = {key: field.description or "" for key, field in table.model_fields.items()}
    for base in reversed(table.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            [declared] = ast.parse(inspect.getsource(base)).body
            for key, below in pairwise(ast.iter_child_nodes(declared)):
                match key, below:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(ast.Constant(str(text))):
                        found[name] = " ".join(text.split()).removesuffix(".")
    return found


@dataclass(frozen=True)
class When:
    """Marks a key or table that applies only with some values of another key. `key` is the dotted
    name of the other key; a leading dot means a key in the same table. The condition holds if `key`
    applies and its value is in `among` or, if `among` is empty, is neither 0 nor empty. A key that
    does not apply is rejected in a file, not shown, and not part of the scenario's hash."""

    key: str
    among: tuple[str, ...] = ()
    or_without: bool = False
    """Whether the condition also holds if `key` itself does not apply."""
    or_with: str = ""
    """A further dotted key: the condition also holds if its value is neither 0 nor empty."""


@dataclass(frozen=True)
class DefaultWith:
    """Gives a key a default that depends on another key: `values` maps values of `key` (dotted as
    in `When`) to the default, as text or number in a file."""

    key: str
    values: Mapping[str, object]
    when: When | None = None
    """Condition on the key."""


@dataclass(frozen=True)
class GuessedWhere:
    """Gives a key another default, listed as assumed, if a test of the scenario holds. The argument
    of the test is a function that returns the value of a key in the notation of a file."""

    holds: Callable[[Callable[[str], object]], bool]
    where: str
    """The test in words."""
    default: object
    """Text or number as in a file."""


@dataclass(frozen=True)
class Guess:
    """Marks a key whose default is a guess at the user's system; results list it as assumed if the
    key is not given. Neutral defaults have no mark: they switch something off (no cost, no limit)
    or come from a standard or an operating system."""

    unless_given: str = ""
    """Another key, dotted as in `When`; if given, it determines the value, which is then no
    guess."""
    when: tuple[When, ...] = ()
    """Conditions under which the default is a guess; the key may also apply under others."""


ASSUMED = Guess()


_SHARE = r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(%?)\s*"


def _read_share(value: object) -> object:
    share = re.fullmatch(_SHARE, value) if isinstance(value, str) else None
    return float(Decimal(share[1]) / (100 if share[2] else 1)) if share else value


class _Share(BeforeValidator):
    """A validator of numbers that may be written in per cent."""

    def __get_pydantic_json_schema__(self, schema: Any, handler: Callable[[Any], Any]) -> Any:
        per_cent = {"type": "string", "pattern": f"^({_SHARE})$", "examples": ["20 %"]}
        return {"anyOf": [handler(schema), per_cent]}


PER_CENT = _Share(_read_share)
"""Lets a share be written as "20 %"."""

Number = Annotated[float, Field(ge=0), PER_CENT]
"""Number without unit, or a share such as "20 %"; whole numbers may be written without a point."""

ETHERNET = When("network.technology", ("ethernet",))
INFINIBAND = When("network.technology", ("infiniband",))
RACKS = When("network.shape", ("rack", "farm"))
FAT_TREE = When("network.shape", ("fat-tree",))
REGULAR = When("network.shape", ("fat-tree", "one-switch"))
CABLED = When("network.shape", ("fat-tree", "one-switch", "imported", "cables"))
RDMA = When("transport.kind", ("rdma",))
TCP = When("transport.kind", ("tcp",))
