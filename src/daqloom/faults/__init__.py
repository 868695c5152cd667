"""Failures of links: logs of a site, what they tell, and what they cost.

`daqloom.faults.cost` is that of `daqloom.faults.loss`, imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from daqloom.base.lazy import names_of

if TYPE_CHECKING:
    cost: Any
else:  # a type checker would take any name of this module to exist
    __getattr__ = names_of(__name__, {"cost": "daqloom.faults.loss"})


class FaultsError(Exception):
    """A log or an option that cannot be used, in one sentence."""
