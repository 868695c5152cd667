"""One task of the MCP server, in a child process with limits on CPU time, memory and files.

The request is a JSON object on standard input: the `task`, its `arguments`, the `folder` whose
files may be read, and the limit `cpu_s`. Standard output has one JSON object a line: `progress` (a
share, 0 to 1), and at the end `answer`. A failure is one sentence on standard error, as of a
command, and a command's exit code.
"""

import json
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from daqloom.base import lazy
from daqloom.cli.console.terminal import list_record, plain_failures
from daqloom.deployment import scenarios as read
from daqloom.results.result import Result, ResultError
from daqloom.scenario import files
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.file import load
from daqloom.scenario.package_files import shipped_folder
from daqloom.system import System

with lazy.imports():
    from daqloom.study.store import store
    from daqloom.terms import explain as terms

MOST_MEMORY_BYTES = 2 << 30
MOST_ANSWER_BYTES = 1 << 20
MOST_RESULT_BYTES = 64 << 20
"""Largest file of a result that is read."""
MOST_LISTED = 100
"""Results that are listed of a store."""

Answer = Mapping[str, Any]


def scenarios() -> Answer:
    """Return the list of the shipped scenarios."""
    return list_record("scenarios", load.titles())


def explain(term: str) -> Answer:
    """Return the explanations of a term."""
    return terms.as_record(term, terms.explain(term))


def validate(scenario: str, overrides: Sequence[str]) -> Answer:
    """Return the scenario as TOML with all defaults, and its assumed values."""
    system = _system(scenario, overrides)
    assumed = system.scenario.assumptions()
    return {"schema": 1, "scenario": system.name, "assumed": assumed, "toml": system.show()}


def analyse(scenario: str, overrides: Sequence[str]) -> Answer:
    """Return the result of the closed forms."""
    return _system(scenario, overrides).analyse().to_dict()


def simulate(scenario: str, overrides: Sequence[str]) -> Answer:
    """Return the result of a simulation; print its progress."""
    system = _system(scenario, overrides)
    return system.simulate(progress=lambda share: _print({"progress": share})).to_dict()


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


TASKS: Mapping[str, Callable[..., Answer]] = {
    task.__name__: task for task in (scenarios, explain, validate, analyse, simulate, read_result)
}


def _system(scenario: str, overrides: Sequence[str]) -> System:
    """Return a system by its name, the path of its file, or its TOML text."""
    is_text = "=" in scenario or "\n" in scenario
    return System((read.loads if is_text else read.load)(scenario, overrides))


def _print(record: Answer) -> None:
    print(json.dumps(record, allow_nan=False), flush=True)


def main() -> None:
    """Carry out the task of standard input."""
    request = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_CPU, (request["cpu_s"], request["cpu_s"] + 1))
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    files.confine(*map(Path, request["folder"]), shipped_folder("scenarios"))
    with plain_failures("nothing was saved"):
        answer = TASKS[request["task"]](**request["arguments"])
        if len(json.dumps(answer)) > MOST_ANSWER_BYTES:
            raise ScenarioError(
                f"the answer is larger than {MOST_ANSWER_BYTES >> 10} KiB; use the command line "
                "with --json, or a smaller system"
            )
        _print({"answer": answer})


if __name__ == "__main__":
    main()
