"""What a study would compute, what of it is done already, and how long the rest may take."""

from __future__ import annotations

import math
from dataclasses import dataclass

from daqloom.result import Result
from daqloom.scenario import ScenarioError
from daqloom.study.bisection import most_evaluations
from daqloom.study.cell import Cell
from daqloom.study.changes import number
from daqloom.study.errors import StudyError
from daqloom.study.file import Study, search_bounds, search_tolerance
from daqloom.study.program import follow, program, tasks
from daqloom.study.store import Store

HOPS_PER_S = 20e6
"""Packet hops that one core simulates per second, roughly."""
ANALYSIS_S = 2e-3
HOPS_PER_PACKET = 4.5
"""Three links there, and an acknowledgement of every second packet three links back."""


@dataclass
class Plan:
    """Counts of tasks (one method, point and seed) and cells (one run of a method)."""

    tasks: int = 0
    tasks_done: int = 0
    cells_done: int = 0
    cells_left: int = 0  # at most: a search may end sooner
    cpu_s: float = 0.0  # estimated for the cells left
    refused: int = 0  # points that are no valid system
    first_refusal: str = ""


def plan(study: Study, store: Store | None) -> Plan:
    """Follows every program as far as `store` knows the answers."""
    found = Plan()
    longest = searched_cells(study)

    def known(cell: Cell) -> Result | None:
        return None if store is None else store.get(cell.key)

    for task in tasks(study):
        found.tasks += 1
        try:
            done, state = follow(program(study, task), known)
        except (ScenarioError, StudyError) as error:
            found.refused += 1
            found.first_refusal = found.first_refusal or str(error)
            continue
        found.cells_done += done
        if not isinstance(state, Cell):
            found.tasks_done += 1
            continue
        searched = study.search is not None and study.search.method == task.method
        left = max(1, longest - done) if searched else 1
        found.cells_left += left
        found.cpu_s += left * cost_s(state)
    return found


def searched_cells(study: Study) -> int:
    """The most cells that one search asks for: ⌈log₂(range / tolerance)⌉ + 2, times its votes."""
    search = study.search
    if search is None:
        return 1
    evaluations = most_evaluations(*search_bounds(search), search_tolerance(search), search.spacing)
    return evaluations * search.votes


def cost_s(cell: Cell) -> float:
    """Estimated time on one core, from rate, size and duration; builds no scenario."""
    if cell.method != "simulate":
        return ANALYSIS_S
    rate_hz, size, duration_s = (
        number(cell.base, cell.changes, key) for key in ("event.rate", "event.size", "run.duration")
    )
    packets_hz = rate_hz * math.ceil(size / cell.base.mss)
    return packets_hz * HOPS_PER_PACKET * duration_s / HOPS_PER_S
