"""Whether a laboratory keeps only metrics that hold: lab-rack, measured many times, and simulated
with the same events.

A row for each run: pressure and lateness of the machine, share of the peak that ports below their
rates made, errors in percent, with a bar behind the metrics left out. Below: how often each metric
was kept, and how many of those were within 5 % (rate, mean) or 10 % (99th percentile, peak). Runs
without busy loops and with them take turns.

    .venv/bin/python benchmarks/laboratory_validity.py [--runs 20] [--loops 1] [--duration "13 s"]
"""

import argparse
import os
import subprocess
import sys
from contextlib import ExitStack

from daqloom import load
from daqloom.lab.validity import Evidence, Judgement, judge
from daqloom.measure import result
from daqloom.results.errors import MeasureError
from daqloom.results.result import Result

METRICS = {
    "event_rate_hz": 0.05,
    "collection_latency_s.mean": 0.05,
    "collection_latency_s.p99": 0.1,
    "buffer_peak_bytes.tor": 0.1,
}
"""Metrics and the relative errors up to which they hold."""
LOOP = (sys.executable, "-c", "while True: pass")


def trial(duration: str, loops: int) -> tuple[Result, Result, Evidence | None]:
    """The simulation, the measurement with all its metrics, and the evidence for them."""
    keys = {"run.duration": duration, "measure.duration": duration}
    system = load("lab-rack", keys)
    all_evidence: list[Evidence] = []

    def all_kept(found: dict[str, object], evidence: Evidence) -> Judgement:
        all_evidence.append(evidence)
        return Judgement(dict(found))

    result.judge = all_kept
    with ExitStack() as stack:
        for _ in range(loops):
            process = stack.enter_context(subprocess.Popen(LOOP))
            stack.callback(process.kill)
        measured = system.measure()
    return system.simulate(), measured, all_evidence[0] if all_evidence else None


def main() -> int:
    """Run the trial and print its table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--loops", type=int, default=1)
    parser.add_argument("--duration", default="13 s")
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores; | behind an error: the metric is left out")
    print("loops  load  pressure  lateness  excess      rate      mean       p99      peak")
    kept, held, whole = dict.fromkeys(METRICS, 0), dict.fromkeys(METRICS, 0), 0
    for number in range(given.runs):
        loops = given.loops if number % 2 else 0
        try:
            simulated, measured, evidence = trial(given.duration, loops)
        except MeasureError as error:
            print(f"{loops:5}  {os.getloadavg()[0]:4.1f}  {error}", flush=True)
            continue
        assert evidence is not None
        judgement = judge(measured.metrics, evidence)
        left = Result(scenario="", scenario_hash="", method="measure", metrics=judgement.metrics)
        cells = []
        for name, tolerance in METRICS.items():
            error = (measured.metric(name) or 0.0) / (simulated.metric(name) or 1.0) - 1
            is_kept = not judgement.refusal and left.metric(name) is not None
            kept[name] += is_kept
            held[name] += is_kept and abs(error) <= tolerance
            cells.append(f"{100 * error:+8.1f}{' ' if is_kept else '|'}")
        whole += not judgement.refusal and not judgement.warnings
        print(
            f"{loops:5}  {os.getloadavg()[0]:4.1f}  {evidence.pressure or 0.0:8.2f}  "
            f"{evidence.lateness:8.3f}  {evidence.excess or 0.0:6.2f} {' '.join(cells)}",
            flush=True,
        )
    print(f"\nall four kept: {whole} of {given.runs}")
    for name, tolerance in METRICS.items():
        print(f"{name:28} kept {kept[name]:3}, of these within {tolerance:.0%}: {held[name]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
