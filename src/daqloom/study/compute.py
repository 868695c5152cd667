"""Computes a cell into the store."""

from daqloom.measure import MeasureError
from daqloom.result import StoppedError
from daqloom.scenario import ScenarioError
from daqloom.simulate import SimulationError
from daqloom.study.cell import Cell
from daqloom.study.store import Store


def compute(cell: Cell, store: Store) -> str | None:
    """Computes a cell and stores it; the sentence says why that was not possible."""
    try:
        result = cell.compute()
    except (ScenarioError, SimulationError, MeasureError) as error:
        return str(error)
    except MemoryError:
        return "out of memory"
    except StoppedError:  # what a run had counted until Ctrl-C is no result of its cell
        raise KeyboardInterrupt from None
    store.put(cell, result)
    return None
