"""Failures of links: a site's logs, their statistics, and the cost of failures.

`daqloom.faults.cost` is `daqloom.faults.costs.loss.cost`; it is imported at its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from daqloom.base.lazy import names_of

if TYPE_CHECKING:
    cost: Any
else:  # a type checker would accept any name of this module
    __getattr__ = names_of(__name__, {"cost": "daqloom.faults.costs.loss"})


class FaultsError(Exception):
    """An unusable log or option, in one sentence."""
