"""The same small incast on this machine's kernel and in the simulator, side by side.

Twenty senders answer one receiver in rounds of 32 kB each, through 200 Mb/s. The kernel's side
runs between network namespaces of its own; the simulated side takes the same parameters. The table
goes to standard error, one JSON object to standard output.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import table
from comparison import (
    REPLY_WIRE_BYTES,
    SENDERS,
    UNBOUNDED,
    Check,
    Load,
    Outcome,
    Point,
    checks,
    close,
    drop_threshold,
    middle_run,
)
from kernel import BenchmarkError, Hosts, KernelSide, hosts_speed
from simulation import ROOT, SimulatedSide, find_daqloom

CUBIC = Load("cubic")
STATIC = Load("static", window=8)
THRESHOLD_LOADS = (CUBIC, Load("static", window=4), STATIC, Load("static", window=16))
BUFFERS = {
    CUBIC: (UNBOUNDED, 200, 100, 50, 20, 15, 10),
    STATIC: (UNBOUNDED, 120, 80, 40, 20, 16),
}
"""From a buffer that never fills, over losses that are repaired within the round, to time-outs in
every round (packets)."""
POINTS = [Point(load, packets) for load, buffers in BUFFERS.items() for packets in buffers]
THRESHOLD_ROUNDS = 60


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each point (default 3)")
    parser.add_argument(
        "--seconds", type=int, default=8, help="length of each run, real and virtual (default 8)"
    )
    parser.add_argument(
        "--build", type=Path, default=ROOT / "build" / "kernel_incast", help="where programs go"
    )
    parser.add_argument(
        "--software-switch",
        action="store_true",
        help="through the real software switch instead of the kernel's bridge",
    )
    parser.add_argument("--daqloom", help="the daqloom command (default: .venv/bin, then PATH)")
    options = parser.parse_args()
    if not (1 <= options.repeats <= 100 and 2 <= options.seconds <= 300):
        parser.error("expected 1 to 100 --repeats of 2 to 300 --seconds")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        report = compare(options)
    except (BenchmarkError, OSError, ValueError) as error:
        print(f"kernel incast: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("kernel incast: interrupted; nothing is left behind", file=sys.stderr)
        return 1
    print(json.dumps(report, indent=2))
    return 0


def compare(options: argparse.Namespace) -> dict[str, Any]:
    repeats, seconds = options.repeats, options.seconds
    software = (options.daqloom or find_daqloom()) if options.software_switch else ""
    with KernelSide(options.build.resolve(), software) as kernel:
        if not kernel.may_hold_window:
            progress("only root may register a congestion control; CUBIC alone is compared")

        def possible(load: Load) -> bool:
            return load == CUBIC or kernel.may_hold_window

        hosts = measure_hosts(kernel, seconds)
        simulation = SimulatedSide(options.daqloom, hosts)
        thresholds = [
            compare_thresholds(kernel, simulation, load, repeats)
            for load in filter(possible, THRESHOLD_LOADS)
        ]
        points = []
        for point in POINTS:
            if not possible(point.load):
                continue
            progress(f"{point.name}: {repeats} runs of {seconds} s on each side")
            runs = [[side.measure(point, seconds, i) for i in range(repeats)]
                    for side in (kernel, simulation)]  # fmt: skip
            points.append(describe(point, *runs))
        described = kernel.described
    all_checks = thresholds + [check for point in points for check in point["checks"]]
    print(table.thresholds(thresholds), table.points(points), sep="\n", file=sys.stderr)
    return {
        "benchmark": "the same incast on the kernel's TCP and in the simulator",
        "all_within_tolerance": all(check.within is not False for check in all_checks),
        "static_window_measured": kernel.may_hold_window,
        "thresholds": [asdict(check) for check in thresholds],
        "points": [as_json(point) for point in points],
        "hosts": asdict(hosts),
        "round_wire_bytes": SENDERS * REPLY_WIRE_BYTES,
        "repeats": repeats,
        "seconds": seconds,
        "kernel": described | {"release": platform.release()},
        "machine": {"cores": os.cpu_count(), "load_average": os.getloadavg()[0]},
    }


def measure_hosts(kernel: KernelSide, seconds: int) -> Hosts:
    """How the hosts of this machine answer when nothing is lost; no network parameter tells."""
    run = kernel.ask(Point(CUBIC, UNBOUNDED), seconds)
    hosts = hosts_speed(run["hosts"], REPLY_WIRE_BYTES)
    progress(
        f"one host begins {hosts.spacing_s * 1e6:.0f} us after the other, give or take "
        f"{hosts.jitter_s * 1e6:.0f} us, and emits its reply at {hosts.emission_bps / 1e9:.1f} Gb/s"
    )
    return hosts


def compare_thresholds(
    kernel: KernelSide, simulation: SimulatedSide, load: Load, repeats: int
) -> Check:
    """The smallest buffer that drops nothing, on both sides (packets)."""
    # What is offered at once bounds it, but for segments sent again without need.
    low, high = load.offered_packets * 3 // 4, load.offered_packets * 5 // 4

    def on(side: KernelSide | SimulatedSide) -> int:
        return drop_threshold(
            lambda packets: side.drops(Point(load, packets), THRESHOLD_ROUNDS), low, high
        )

    found, simulated = [on(kernel) for _ in range(repeats)], on(simulation)
    progress(f"{load.name}: drops below {found} packets, in the simulation below {simulated}")
    return close(f"{load.name}, drop threshold (packets)", median(found), simulated)


def describe(point: Point, kernel: list[Outcome], simulation: list[Outcome]) -> dict[str, Any]:
    """A point with the runs of both sides, the middle of each and what is judged of them."""
    middle = {"kernel": middle_run(kernel), "simulation": middle_run(simulation)}
    return {
        "point": point,
        **middle,
        "runs": {"kernel": kernel, "simulation": simulation},
        "checks": checks(point, **middle),
    }


def as_json(point: dict[str, Any]) -> dict[str, Any]:
    return {
        "load": point["point"].load.name,
        "buffer_packets": point["point"].buffer_packets,
        "kernel": asdict(point["kernel"]),
        "simulation": asdict(point["simulation"]),
        "runs": {side: [asdict(run) for run in runs] for side, runs in point["runs"].items()},
        "checks": [asdict(check) for check in point["checks"]],
    }


def progress(sentence: str) -> None:
    print(f"kernel incast: {sentence}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
