"""Program of a child process for the tasks of the MCP server."""

from pathlib import Path

from daqloom.base import lazy
from daqloom.results.result import Result, ResultError
from daqloom.scenario import files
from daqloom.scenario.errors import ScenarioError
from daqloom.tasks.program import Answer, Tasks, carry_out
from daqloom.tasks.systems import SYSTEM_TASKS

with lazy.imports():
    from daqloom.study.store import store

MOST_RESULT_BYTES = 64 << 20
"""Largest file of a result that is read."""
MOST_LISTED = 100
"""Results that are listed of a store."""


def read_result(path: str, key: str) -> Answer:
    """Return a result from a JSON file, or from a store by its key; without key, the list of the
    results of a store."""
    place = Path(path)
    if not files.is_allowed(place):
        raise ScenarioError(f"{path} is outside the folder of the server; give a path below it")
    try:
        if not place.is_dir():
            return Result.from_json(files.read_text(place, MOST_RESULT_BYTES)).to_dict()
    except ResultError as error:
        raise ScenarioError(f"{path}: {error}; give a file written with --json") from None
    except ValueError as error:
        raise ScenarioError(str(error)) from None
    with store.Store.open(place, create=False) as opened:
        return _of_store(opened, key)


def _of_store(opened: "store.Store", key: str) -> Answer:
    keys = opened.keys()
    if not key:
        found = ((each, opened.record(each)) for each in keys[:MOST_LISTED])
        listed = [
            {
                "key": each,
                "time": record.time,
                "scenario": record.result.scenario,
                "method": record.result.method,
                "seed": record.result.seed,
            }
            for each, record in found
            if record
        ]
        return {"schema": 1, "results": len(keys), "listed": listed}
    result = opened.get(key) if key in keys else None
    if result is None:
        damage = "; ".join(opened.damage) or f'{opened.path} has no result "{key[:80]}"'
        raise ScenarioError(f"{damage}; read the store without a key for a list of its results")
    return result.to_dict()


TASKS: Tasks = {**SYSTEM_TASKS, "read_result": read_result}

if __name__ == "__main__":
    carry_out(TASKS)
