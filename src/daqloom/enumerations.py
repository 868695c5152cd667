"""The engine's enumerations, by the words of a scenario."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

Value = TypeVar("Value", bound=Enum)


def named(kind: type[Value], word: str) -> Value:
    """Return the value that a scenario's word names, as `named(BufferModel, "shared-memory")`."""
    return kind[word.replace("-", "_")]
