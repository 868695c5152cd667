"""A cell: one run of one method for one system and seed, stored under one key."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from daqloom.deployment.scenarios import override
from daqloom.results.result import Result
from daqloom.scenario.schema.models import Scenario
from daqloom.study.file.kinds import kind_of
from daqloom.study.methods import methods

SEEDED = frozenset({"simulate", "measure"})
"""Methods that draw random numbers; other methods have one cell for all seeds."""
TIMED = frozenset({"measure"})
"""Methods that measure times on this machine; no other cell is computed at the same time."""


@dataclass(frozen=True)
class Cell:
    """`method` applied with `seed` (None without random numbers) to the scenario `base` with
    `changes`. `scenario_hash` is the hash of the changed scenario, which is built only on
    demand."""

    base: Scenario
    changes: Mapping[str, Any]
    method: str
    seed: int | None
    scenario_hash: str

    @cached_property
    def scenario(self) -> Scenario:
        """Return the system. Raises ScenarioError."""
        return override(self.base, self.changes) if self.changes else self.base

    @cached_property
    def key(self) -> str:
        """Key of the cell in a store: a digest of all inputs of its result."""
        drawn = self.seed if self.method in SEEDED else None
        version = kind_of(self.base).versions[self.method]
        text = f"{self.scenario_hash} {self.method} {drawn} {version}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def compute(self) -> Result:
        """Run the method. Raises ScenarioError, SimulationError or MeasureError."""
        if self.scenario.hash() != self.scenario_hash:
            raise RuntimeError(f"{self.changes} do not lead to the scenario that was planned")
        drawn = {"seed": self.seed} if self.method in SEEDED else {}
        result: Result = getattr(methods, self.method)(self.scenario, **drawn)
        return result
