"""One run of one method: what the store keeps under one key."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from daqloom.result import Result
from daqloom.scenario import Scenario

MODEL_VERSIONS = {"analyse": 2, "simulate": 2}
"""Raised when the same scenario and seed give another result: cells of before are computed anew."""

SEEDED = frozenset({"simulate"})
"""Methods that draw random numbers; the others have one cell for all seeds."""


def cell_key(scenario_hash: str, method: str, seed: int | None) -> str:
    """The name of a cell in a store: a digest of all that its result depends on."""
    drawn = seed if method in SEEDED else None
    text = f"{scenario_hash} {method} {drawn} {MODEL_VERSIONS[method]}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Cell:
    """`method` applied, with `seed` (None where none is drawn), to `base` with `changes`.

    `scenario_hash` is that of the changed system, which is built only when it is needed.
    """

    base: Scenario
    changes: Mapping[str, Any]
    method: str
    seed: int | None
    scenario_hash: str

    @cached_property
    def scenario(self) -> Scenario:
        """The system. Raises ScenarioError."""
        return self.base.with_overrides(self.changes) if self.changes else self.base

    @cached_property
    def key(self) -> str:
        """Its name in a store."""
        return cell_key(self.scenario_hash, self.method, self.seed)

    def compute(self) -> Result:
        """Runs the method. Raises ScenarioError or SimulationError."""
        if self.scenario.hash() != self.scenario_hash:
            raise RuntimeError(f"{self.changes} do not lead to the scenario that was planned")
        if self.method == "analyse":
            return self.scenario.analyse()
        return self.scenario.simulate(seed=self.seed)
