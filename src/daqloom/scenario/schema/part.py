"""The base of all tables of a scenario."""

import ast
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
    """Return the field of a list of at most `most` entries, empty by default."""
    return Field(default=(), strict=False, max_length=most)


def meanings(table: type[BaseModel]) -> dict[str, str]:
    """Return what each key of a table means: the text below its declaration, which pydantic would
    read at every start."""
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
    """Marks a key, or a table, that a scenario has only beside some choices.

    `key` is that of the choice, dotted from the root of the file, or with a dot in front that of
    the same table. The mark holds where its value is one of `among`, or, if that is empty, is
    neither 0 nor empty, and where the choice itself is a key of the scenario. A key that does not
    apply is refused, and neither shown nor part of the digest.
    """

    key: str
    among: tuple[str, ...] = ()
    or_without: bool = False
    """Holds also where the choice itself is no key of the scenario."""
    or_with: str = ""
    """Holds also where this key, dotted likewise, is neither 0 nor empty."""


@dataclass(frozen=True)
class DefaultWith:
    """Gives a key another default beside some choices: the value of `key`, as of `When` → text or
    number as in a file."""

    key: str
    values: Mapping[str, object]
    when: When | None = None
    """Condition on the key."""


@dataclass(frozen=True)
class GuessedWhere:
    """Gives a key another default, listed as assumed, where a test of the scenario holds. The test
    takes a function that returns the value of each key, as in a file."""

    holds: Callable[[Callable[[str], object]], bool]
    where: str
    """The test in words."""
    default: object
    """Text or number as in a file."""


@dataclass(frozen=True)
class Assumed:
    """Marks a key whose default is a guess at the user's system, listed as assumed if not given.
    Neutral defaults are not marked: those that switch something off (no cost, no limit), and those
    of a standard or an operating system."""

    unless_given: str = ""
    """A key, dotted as in `When`, which determines the value where it is given."""
    when: tuple[When, ...] = ()
    """Choices with which the default is a guess; the key may apply beside others too."""


ASSUMED = Assumed()


def _read_share(value: object) -> object:
    share = re.fullmatch(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*%\s*", str(value))
    return float(Decimal(share[1]) / 100) if share and isinstance(value, str) else value


PER_CENT = BeforeValidator(_read_share)
"""Lets a share be written as "20 %"."""

Number = Annotated[float, Field(strict=False, ge=0), PER_CENT]
"""Number without unit, or a share such as "20 %"; whole numbers may be written without a point."""

ETHERNET = When("network.technology", ("ethernet",))
INFINIBAND = When("network.technology", ("infiniband",))
RACKS = When("network.shape", ("rack", "farm"))
FAT_TREE = When("network.shape", ("fat-tree",))
REGULAR = When("network.shape", ("fat-tree", "one-switch"))
CABLED = When("network.shape", ("fat-tree", "one-switch", "imported", "cables"))
RDMA = When("transport.kind", ("rdma",))
TCP = When("transport.kind", ("tcp",))
