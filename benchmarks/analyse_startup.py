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

COMMAND = [sys.executable, "-m", "daqloom", "analyse", "atlas-lab", "--json"]
RUNS = 5
TARGET_S = 0.5


def run_once() -> tuple[float, float]:
    """Wall-clock and processor time (s) of the command."""
    before = _children_cpu_s()
    started = time.perf_counter()
    subprocess.run(COMMAND, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started, _children_cpu_s() - before


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    load = os.getloadavg()[0]
    run_once()
    walls, cpus = zip(*(run_once() for _ in range(RUNS)), strict=True)
    median = statistics.median(walls)
    print(f"daqloom analyse atlas-lab: {median:.3f} s, target {TARGET_S} s", file=sys.stderr)
    report = {
        "benchmark": "analyse_startup",
        "counts": "seconds from starting the interpreter to its end",
        "command": "daqloom analyse atlas-lab --json",
        "runs": RUNS,
        "wall_s": {"median": median, "all": walls},
        "cpu_s": {"median": statistics.median(cpus), "all": cpus},
        "load_before": load,
        "cores": os.cpu_count(),
        "target_wall_s": TARGET_S,
        "reached": median <= TARGET_S,
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
