"""The event builder against the limits of this machine and against MPI.

Units are processes of this machine. What they build is compared with non-temporal copies and with
raw sockets, which are the limits, and with the same volume through Open MPI. Contestants take
turns, so that each ratio is of runs that followed each other; what is judged is the median ratio.
A table goes to standard error, one JSON object to standard output.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from contestants import (
    ROOT,
    BenchmarkError,
    EventBuilder,
    Load,
    Mpi,
    Programs,
    daqloom_command,
)

KB, MB = 1 << 10, 1 << 20
POINTS = [Load(2, MB), Load(4, MB), Load(8, MB), Load(4, 256 * KB), Load(4, 2 * MB)]
QUICK_POINTS = [Load(2, MB), Load(8, MB)]
PACKINGS = [1, 10, 100, 1000, 10_000, 30_000]
SMALL_FRAGMENT_BYTES = 100
BARRIERS = ["centralised", "tournament", "dissemination"]
FREE = {"building__barrier": '"none"', "building__meps_per_phase": 4}
"""No barrier, and four packets of lead."""
OVERLAPPING = FREE | {"building__phases_under_way": 2}
"""A phase begins while the writes of the one before are still under way, as `MPI_Alltoall` and
plain sockets send to all at once."""
LOCKSTEP = {"building__barrier": '"tournament"', "building__meps_per_phase": 4}
PACED = FREE | {"building__pace": '"builder"'}
"""At the pace of builder units, each of which lets one readout unit write at a time."""
WAYS = {"free": FREE, "overlapping": OVERLAPPING, "lockstep": LOCKSTEP, "paced": PACED}
PARTS = ["shm", "tcp", "cubic", "idle", "barriers", "warm_up", "small_packets"]
NAMESPACE = "DAQLOOM_BENCH_CUBIC"

Contest = dict[str, Callable[[], dict[str, float]]]
Runs = list[dict[str, dict[str, float]]]


class Bench:
    def __init__(self, options: argparse.Namespace) -> None:
        self.repeats = options.repeats
        self.programs = Programs(options.programs.resolve(), options.seconds)
        self.mpi = Mpi(options.programs.resolve() / "mpi", options.seconds)
        self.builder = EventBuilder(daqloom_command(options.daqloom), 2 * options.seconds)
        self.sockets: list[str] | None = None

    def interleave(self, contest: Contest) -> Runs:
        return [{name: run() for name, run in contest.items()} for _ in range(self.repeats)]

    # ---- throughput

    def over_shm(self, load: Load) -> dict[str, Any]:
        return self.point(
            "shm",
            load,
            {
                "limit": lambda: self.programs.copy_limit(load),
                **self.builders(load, "shm"),
                **self.mpi_contest(load, "shm"),
            },
        )

    def over_tcp(self, load: Load) -> dict[str, Any]:
        return self.point(
            "tcp",
            load,
            {
                **self.sockets_contest(load),
                **self.builders(load, "tcp"),
                "libfabric": lambda: self.builder.build(load, "libfabric:tcp", **FREE),
                **self.mpi_contest(load, "tcp"),
            },
        )

    def sockets_contest(self, load: Load) -> Contest:
        """The ways to use plain sockets, of which the best in each turn is the limit."""
        if self.sockets is None:
            self.sockets, lacking = self.programs.ways_of_sockets()
            for way, reason in lacking.items():
                report(f"no sockets with {way}: {reason}")
        return {
            f"sockets: {way}": lambda way=way: self.programs.sockets(way, load)
            for way in self.sockets
        }

    def builders(self, load: Load, transport: str) -> Contest:
        return {
            way: lambda keys=keys: self.builder.build(load, transport, **keys)
            for way, keys in WAYS.items()
        }

    def mpi_contest(self, load: Load, over: str) -> Contest:
        if not self.mpi.is_there:
            return {}
        return {
            "alltoall": lambda: self.mpi.run("alltoall", over, load),
            "sendrecv": lambda: self.mpi.run("shift", over, load),
        }

    def point(self, transport: str, load: Load, contest: Contest) -> dict[str, Any]:
        runs = self.interleave(contest)
        for turn in runs:
            ways = [run for name, run in turn.items() if name.startswith("sockets: ")]
            if ways:
                turn["limit"] = max(ways, key=lambda run: run["bytes_per_s"])
        found: dict[str, Any] = {
            "transport": transport,
            "units": load.units,
            "block_bytes": load.block,
            "bytes_per_s": of_each(runs, "bytes_per_s"),
            "bytes_per_cpu_s": of_each(runs, "bytes_per_cpu_s"),
            "overhead_share": middle(runs, "free", "overhead_share"),
            "of_limit": {
                name: ratio(runs, name, "limit") for name in WAYS
            },
            "of_limit_per_cpu_s": {
                name: ratio(runs, name, "limit", "bytes_per_cpu_s") for name in WAYS
            },
            "paced_times": {
                name: ratio(runs, "paced", name) for name in WAYS if name != "paced"
            },
            "mpi_yields_when_idle": {
                mode: bool(yields) for (mode, over, at), yields in self.mpi.chosen.items()
                if at == load and (over == "shm") == (transport == "shm")
            },
            "runs": [{name: run["bytes_per_s"] for name, run in turn.items()} for turn in runs],
        }  # fmt: skip
        if "libfabric" in contest:
            found["times_libfabric"] = ratio(runs, "free", "libfabric")
        if self.mpi.is_there:
            found["times_mpi"] = {
                f"{name} / {mode}": ratio(runs, name, mode)
                for name in WAYS
                for mode in ("alltoall", "sendrecv")
            }
            found["limit_times_mpi"] = {
                mode: ratio(runs, "limit", mode) for mode in ("alltoall", "sendrecv")
            }
        report(
            f"{transport}, {load.units} units, {load.block // KB} kB: "
            + ", ".join(f"{name} {rate / 1e9:.2f}" for name, rate in found["bytes_per_s"].items())
            + " GB/s; of the limit "
            + ", ".join(f"{name} {share:.2f}" for name, share in found["of_limit"].items())
            + "; paced of "
            + ", ".join(f"{name} {times:.2f}" for name, times in found["paced_times"].items())
        )
        return found

    # ---- latencies, small messages, idle units

    def barriers(self, units: int) -> dict[str, Any]:
        load = Load(units, 1)
        contest: Contest = {
            name: lambda kind=kind: self.programs.barrier(units, kind)
            for kind, name in enumerate(BARRIERS)
        }
        if self.mpi.is_there:
            contest["MPI_Barrier"] = lambda: {
                "barrier_s": self.mpi.run("barrier", "shm", load)["round_s"]
            }
        runs = self.interleave(contest)
        found: dict[str, Any] = {"units": units, "barrier_s": of_each(runs, "barrier_s")}
        report(
            f"barrier of {units}: "
            + ", ".join(f"{name} {time * 1e6:.1f} us" for name, time in found["barrier_s"].items())
        )
        return found

    def small(self, packing: int) -> dict[str, Any]:
        units = 4
        contest: Contest = {
            "free": lambda: self.builder.run(units, packing, SMALL_FRAGMENT_BYTES, **FREE)
        }
        block = packing * SMALL_FRAGMENT_BYTES
        if self.mpi.is_there:
            contest["alltoall"] = lambda: self.mpi.run("alltoall", "shm", Load(units, block))
        runs = self.interleave(contest)
        found: dict[str, Any] = {
            "packing": packing,
            "fragment_bytes": SMALL_FRAGMENT_BYTES,
            "units": units,
            "bytes_per_s": of_each(runs, "bytes_per_s"),
            "event_rate_hz": middle(runs, "free", "event_rate_hz"),
            "packets_per_s": middle(runs, "free", "event_rate_hz") / packing * units,
            "overhead_share": middle(runs, "free", "overhead_share"),
        }
        report(
            f"packing {packing}: {found['event_rate_hz']:.3g} events/s, "
            + ", ".join(f"{name} {rate / 1e9:.3f}" for name, rate in found["bytes_per_s"].items())
            + " GB/s"
        )
        return found

    def idle(self) -> dict[str, Any]:
        runs = self.interleave(
            {
                "idle": lambda: self.builder.run(
                    4, 1, 1000, event__rate='"1 Hz"', measure__duration='"6 s"',
                    measure__warmup='"1 s"',
                )
            }
        )  # fmt: skip
        share = middle(runs, "idle", "unit_cores")
        report(f"idle units use {share:.2%} of a core")
        return {"units": 4, "event_rate_hz": 1, "unit_cores": share}

    def warm_up(self, units: int) -> dict[str, Any]:
        contest: Contest = {
            transport: lambda transport=transport: self.builder.build(Load(units, MB), transport)
            for transport in ("shm", "tcp", "libfabric:tcp")
        }
        if self.mpi.is_there:
            contest["alltoall"] = lambda: {
                "first_event_s": self.mpi.run("alltoall", "shm", Load(units, MB))["first_round_s"]
            }
        runs = self.interleave(contest)
        found: dict[str, Any] = {"units": units, "first_event_s": of_each(runs, "first_event_s")}
        report(
            f"first event of {units} units after the start: "
            + ", ".join(f"{k} {v * 1e3:.2f} ms" for k, v in found["first_event_s"].items())
        )
        return found


def of_each(runs: Runs, key: str) -> dict[str, float]:
    """The median of what each contestant has."""
    return {name: middle(runs, name, key) for name in runs[0] if key in runs[0][name]}


def middle(runs: Runs, name: str, key: str) -> float:
    return median(turn[name][key] for turn in runs)


def ratio(runs: Runs, name: str, other: str, key: str = "bytes_per_s") -> float:
    """The median of those of the turns."""
    return median(turn[name][key] / turn[other][key] for turn in runs)


def target(what: str, bound: float, found: float, *, most: bool = False) -> dict[str, Any]:
    reached = found <= bound if most else found >= bound
    side = "most" if most else "least"
    report(f"{'reached' if reached else 'MISSED'}: {what}, {found:.3g} ({side} {bound})")
    return {"target": what, "bound": bound, "found": found, "reached": reached}


def targets(points: Sequence[dict[str, Any]], idle: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The targets of each transport, at its points of 1 MB and two units, and of many units."""

    def point_of(transport: str, units: int) -> dict[str, Any] | None:
        return next(
            (p for p in points
             if (p["transport"], p["units"], p["block_bytes"]) == (transport, units, MB)),
            None,
        )  # fmt: skip

    judged = []
    for transport, of_limit, times in (("shm", 0.8, 2.0), ("tcp", 0.95, 1.0)):
        two, eight = point_of(transport, 2), point_of(transport, 8)
        if two is None or eight is None:
            continue
        for point in (two, eight):
            where = f"{transport}, {point['units']} units"
            for way in ("free", "overlapping"):
                judged.append(
                    target(f"{where}, {way}: of the limit", of_limit, point["of_limit"][way])
                )
            if "times_libfabric" in point:
                judged.append(
                    target(f"{where}: times libfabric:tcp", 1.0, point["times_libfabric"])
                )
            if "times_mpi" in point:
                judged.append(
                    target(f"{where}: times MPI_Alltoall", times,
                           point["times_mpi"]["free / alltoall"])
                )  # fmt: skip
        shares = [p["bytes_per_s"]["free"] for p in (eight, two)]
        for point in points:
            units = point["units"]
            if (point["transport"], point["block_bytes"]) != (transport, MB):
                continue
            where = f"{transport}, {units} units, paced"
            judged.append(target(f"{where}: of free", 1.0, point["paced_times"]["free"]))
            if units <= 4:
                judged.append(target(f"{where}: of the limit", 0.85, point["of_limit"]["paced"]))
        judged.append(
            target(f"{transport}: 8 units of what 2 units do", 0.6, shares[0] / shares[1])
        )
    if idle is not None:
        judged.append(target("cores of an idle unit", 0.02, idle["unit_cores"], most=True))
    return judged


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, help="turns of each (default 5; quick: 1)")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a run (default 1)")
    parser.add_argument("--quick", action="store_true", help="fewer points, one turn")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="default: all")
    parser.add_argument(
        "--programs",
        type=Path,
        default=ROOT / "build" / "bench" / "programs_event_building",
        help="where `make bench` has built this folder's programs",
    )
    parser.add_argument("--daqloom", help="the daqloom command (default: this interpreter's)")
    options = parser.parse_args()
    if options.repeats is None:
        options.repeats = 1 if options.quick else 5
    if not (1 <= options.repeats <= 100 and 0.1 <= options.seconds <= 60):
        parser.error("expected 1 to 100 --repeats of 0.1 to 60 --seconds")
    if not (options.programs / "copy_limit").exists():
        parser.error(f"no programs in {options.programs}; run `make bench`, or name their folder")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if os.environ.get(NAMESPACE):
        return over_cubic(options)
    try:
        report = compare(options)
    except (BenchmarkError, OSError) as error:
        print(f"event building: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("event building: interrupted", file=sys.stderr)
        return 1
    print(json.dumps(report, indent=2))
    return 0


def compare(options: argparse.Namespace) -> dict[str, Any]:
    bench = Bench(options)
    loads = QUICK_POINTS if options.quick else POINTS
    packings = PACKINGS[2::3] if options.quick else PACKINGS
    measure: dict[str, Callable[[], Any]] = {
        "shm": lambda: [bench.over_shm(load) for load in loads],
        "tcp": lambda: [bench.over_tcp(load) for load in loads],
        "cubic": in_a_namespace,
        "idle": bench.idle,
        "barriers": lambda: [bench.barriers(units) for units in (2, 4, 8)],
        "warm_up": lambda: [bench.warm_up(units) for units in (2, 8)],
        "small_packets": lambda: [bench.small(packing) for packing in packings],
    }
    found = {part: measure[part]() for part in PARTS if part in options.parts}
    return {
        "benchmark": "building events: limits, the event builder, MPI",
        "targets": targets(found.get("shm", []) + found.get("tcp", []), found.get("idle")),
        **found,
        "repeats": options.repeats,
        "seconds": options.seconds,
        "machine": {
            "cores": len(os.sched_getaffinity(0)),
            "kernel": platform.release(),
            "load_average": os.getloadavg()[0],
            "congestion_control": Path("/proc/sys/net/ipv4/tcp_congestion_control")
            .read_text()
            .strip(),
        },
    }


# ---- another congestion control: libfabric's sockets take that of the route ----------------------

CUBIC = (
    "ip link set lo up && ip route replace local 127.0.0.1 dev lo table local "
    'proto kernel scope host src 127.0.0.1 congctl cubic && exec "$@"'
)


def in_a_namespace() -> list[dict[str, Any]] | str:
    """The points over TCP with cubic, in a network namespace; or why not."""
    try:
        run = subprocess.run(
            ["unshare", "--net", "sh", "-c", CUBIC, "sh", sys.executable, *sys.argv],
            env=os.environ | {NAMESPACE: "1"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return list(json.loads(run.stdout))
    except (OSError, ValueError, subprocess.CalledProcessError):
        report("nothing is measured with cubic: only root may make a network namespace")
        return "only root may make a network namespace"


def over_cubic(options: argparse.Namespace) -> int:
    bench = Bench(options)
    print(json.dumps([bench.over_tcp(load) for load in QUICK_POINTS]))
    return 0


def report(sentence: str) -> None:
    print(f"event building: {sentence}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
