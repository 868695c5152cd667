"""A cell: one run of one method, which the store keeps under one key."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from daqloom.results.result import Result
from daqloom.scenario.schema.models import Scenario
from daqloom.study.file.kinds import kind_of
from daqloom.study.methods import methods
from daqloom.topology.system.scenarios import override

SEEDED = frozenset({"simulate", "measure"})
"""Methods that draw random numbers; the others have one cell for all seeds."""
TIMED = frozenset({"measure"})
"""Methods whose results are times of this machine: no other cell is computed meanwhile."""


@dataclass(frozen=True)
class Cell:
    """`method` applied, with `seed` (None where none is drawn), to `base` with `changes`.
    `scenario_hash` is that of the changed system, which is built only when it is needed."""

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
        """Return the name of the cell in a store: a digest of all that its result depends on."""
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
