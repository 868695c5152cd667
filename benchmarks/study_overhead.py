"""Costs of the machinery of studies: planning, analytic cells, a cell's own overhead, reading.

One process. JSON on standard output: seconds on the processor and on the clock.
"""

import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from daqloom.results.result import Result
from daqloom.study.file.load import load_study
from daqloom.study.run.dataset import open_study
from daqloom.study.run.executor import InProcess
from daqloom.study.run.plan import plan
from daqloom.study.run.runner import run
from daqloom.study.store.store import Store

GRID = """
scenario = "atlas-lab"
methods = ["analyse"]
[grid]
"event.rate" = {{ from = "1 kHz", to = "10 kHz", count = {count} }}
"event.size" = {{ from = "1 MB", to = "8 MB", count = {count} }}
"""

SIZES = """
scenario = "atlas-lab"
methods = ["analyse"]
[grid]
"event.size" = { from = "1 MB", to = "8 MB", count = 10000 }
"""
BUFFERS = """
scenario = "atlas-lab"
methods = ["analyse"]
[set]
"network.switch.tor.model" = "drop-tail"
[grid]
"event.size" = { from = "1 MB", to = "8 MB", count = 100 }
"network.switch.tor.buffer" = { from = "1 MB", to = "8 MB", count = 100 }
"""
"""Every point another system, save for its rate: none is known to be saturated from another."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = {
            "plan_1e5_cells": time_plan(Path(folder), GRID.format(count=317)),
            "plan_1e4_sizes": time_plan(Path(folder), SIZES),
            "plan_1e4_sizes_and_buffers": time_plan(Path(folder), BUFFERS),
            "run_1e4_analytic_cells": time_computation(Path(folder), GRID.format(count=100)),
            "open_1e5_cells": time_open(Path(folder), GRID.format(count=317)),
        }
    print(json.dumps(report, indent=2))


def time_plan(folder: Path, text: str) -> dict[str, float]:
    study = study_of(folder, text)
    wall, cpu = time.perf_counter(), time.process_time()
    found = plan(study, None)
    return spent(wall, cpu) | {"cells": found.cells_left}


def time_computation(folder: Path, text: str) -> dict[str, float]:
    study = study_of(folder, text)
    with Store.open(folder / "store", create=True) as store:
        wall, cpu = time.perf_counter(), time.process_time()
        progress = run(study, store, InProcess(store))
        first = spent(wall, cpu)
        keys = store.keys()
        analysed = sum(store_cpu(store, key) for key in keys)
        wall, cpu = time.perf_counter(), time.process_time()
        run(study, store, InProcess(store))
        again = spent(wall, cpu)
    overhead_s = (first["cpu_s"] - analysed) / progress.computed
    return first | {
        "cells": progress.computed,
        "overhead_s_per_cell": overhead_s,
        "reuse_s_per_cell": again["cpu_s"] / progress.computed,
    }


class ConstantResult(InProcess):
    """Keeps one result under every cell: what is measured is the store and what reads it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._result: Result | None = None

    def outcomes(self) -> Iterator[tuple[str, None]]:
        waiting, self._waiting = self._waiting, []
        for cell in waiting:
            self._result = self._result or cell.compute()
            self._store.put(cell, self._result)
            yield cell.key, None


def time_open(folder: Path, text: str) -> dict[str, float]:
    study = study_of(folder, text)
    with Store.open(folder / "copies", create=True) as store:
        cells = run(study, store, ConstantResult(store)).computed
    wall, cpu = time.perf_counter(), time.process_time()
    dataset = open_study(folder / "grid.toml", store=folder / "copies")
    read = spent(wall, cpu)
    assert bool(dataset["event_rate_bound_hz"].notnull().all())
    return read | {
        "cells": cells,
        "store_bytes": sum(f.stat().st_size for f in (folder / "copies").rglob("*") if f.is_file()),
        "peak_rss_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }


def store_cpu(store: Store, key: str) -> float:
    """Processor time of the method itself, as its result says."""
    result = store.get(key)
    assert result is not None
    return float(result.engine["cpu_s"])


def study_of(folder: Path, text: str):
    path = folder / "grid.toml"
    path.write_text(text)
    return load_study(path)


def spent(wall: float, cpu: float) -> dict[str, float]:
    return {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


if __name__ == "__main__":
    sys.exit(main())
