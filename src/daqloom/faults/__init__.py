"""Failures of links: logs of a site, what they tell, and what they cost.

`daqloom.faults.cost` is that of `daqloom.faults.loss`, imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    cost: Any


class FaultsError(Exception):
    """A log or an option that cannot be used, in one sentence."""


if not TYPE_CHECKING:  # a type checker would take any name of this module to exist

    def __getattr__(name: str) -> Any:
        if name == "cost":
            from importlib import import_module

            return import_module("daqloom.faults.loss").cost
        raise AttributeError(f"module 'daqloom.faults' has no attribute {name!r}")
