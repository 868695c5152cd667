"""How long `daqloom analyse atlas-lab` takes, interpreter start included: median of five.

The command runs as a person runs it, once unmeasured to fill the file cache. Prints one JSON
object; progress goes to standard error. The target holds for an idle machine: `load_before` says
how idle it was, and the processor's time does not depend on it.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time

RUNS = 5


def run_once(command: list[str]) -> tuple[float, float]:
    """Wall-clock and processor time (s) of a command of daqloom."""
    before = _children_cpu_s()
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "daqloom", *command], check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - started, _children_cpu_s() - before


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(benchmark: str, command: list[str], target_s: float) -> None:
    """Runs a command of daqloom again and again; prints the report."""
    load = os.getloadavg()[0]
    run_once(command)
    walls, cpus = zip(*(run_once(command) for _ in range(RUNS)), strict=True)
    median = statistics.median(walls)
    line = " ".join(["daqloom", *command])
    print(f"{line}: {median:.3f} s, target {target_s} s", file=sys.stderr)
    report = {
        "benchmark": benchmark,
        "counts": "seconds from starting the interpreter to its end",
        "command": line,
        "runs": RUNS,
        "wall_s": {"median": median, "all": walls},
        "cpu_s": {"median": statistics.median(cpus), "all": cpus},
        "load_before": load,
        "cores": os.cpu_count(),
        "target_wall_s": target_s,
        "reached": median <= target_s,
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    measure("analyse_startup", ["analyse", "atlas-lab", "--json"], target_s=0.5)
