"""Incast in ns-3 and in daqloom, in one run: packet-hops per CPU second of each.

Sets ns-3 up in an environment of its own, builds `incast/` against it, runs both sides in turn on
`incast.toml` and prints one JSON object on standard output; progress goes to standard error. With
`--marks` it compares what DCTCP loses and repairs on `marks.toml` instead of speed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SPEED = HERE / "incast.toml"
MARKS = HERE / "marks.toml"
REQUIREMENTS = HERE / "requirements.txt"
PROGRAM = HERE / "incast" / "incast.cpp"
NS3_MODULES = (
    *("nix-vector-routing", "internet", "point-to-point"),
    *("traffic-control", "network", "core"),
)
RUN_LIMIT_S = 1800
# Links, ToR models and first acknowledgements differ in detail; the work may not.
SAME_WORK_TOLERANCE = 0.02
FULL_FRAME_BYTES = 1518
# Above a limited queue's disc, ns-3's device keeps one packet and sends another.
NS3_DEVICE_PACKETS = 2

Json = dict[str, Any]


class BenchmarkError(Exception):
    """One sentence for the person who started the benchmark."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--marks", action="store_true", help="DCTCP in a shallow buffer instead of the speed"
    )
    parser.add_argument("--repeats", type=int, default=3, help="runs of each side (default 3)")
    parser.add_argument(
        "--build", type=Path, default=ROOT / "build" / "ns3", help="where ns-3 and the program go"
    )
    parser.add_argument("--daqloom", help="the daqloom command (default: .venv/bin, then PATH)")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error("--repeats must be 1 or more")
    try:
        result = compare_marks(options) if options.marks else compare(options)
        print(json.dumps(result, indent=2))
    except (BenchmarkError, OSError) as error:
        print(f"ns-3 benchmark: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("ns-3 benchmark: interrupted; nothing was measured to the end", file=sys.stderr)
        return 1
    return 0


def compare(options: argparse.Namespace) -> Json:
    problem = tomllib.loads(SPEED.read_text())
    daqloom = find_daqloom(options.daqloom)
    ns3 = install_ns3(options.build.resolve())
    program = build_program(ns3)

    runs: dict[str, list[Json]] = {"ns3": [], "daqloom": []}
    for repeat in range(1, options.repeats + 1):
        for side, run in (
            ("daqloom", run_daqloom(daqloom, SPEED)),
            ("ns3", run_ns3(program, problem)),
        ):
            runs[side].append(run)
            progress(
                f"{side}, run {repeat} of {options.repeats}: {run['hops_per_cpu_s'] / 1e6:.3f} "
                "M packet-hops per CPU second"
            )
    ns3_side, daqloom_side = (summary(runs[side]) for side in ("ns3", "daqloom"))
    return {
        "benchmark": "the same incast in ns-3 and in daqloom",
        "ratio_hops_per_cpu_s": daqloom_side["hops_per_cpu_s"] / ns3_side["hops_per_cpu_s"],
        "ratio_process_cpu_s": ns3_side["process_cpu_s"] / daqloom_side["process_cpu_s"],
        "caveats": caveats(ns3),
        "same_work": same_work(ns3_side, daqloom_side),
        "problem": problem,
        "repeats": options.repeats,
        "ns3": ns3_side | ns3.describe(),
        "daqloom": daqloom_side,
        "machine": {
            "cpu": cpu_model(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        },
    }


def compare_marks(options: argparse.Namespace) -> Json:
    """Both sides once on `marks.toml`: what they drop, mark and repair, and how long it takes."""
    problem = tomllib.loads(MARKS.read_text())
    daqloom = find_daqloom(options.daqloom)
    ns3 = install_ns3(options.build.resolve())
    sides = {
        "ns3": run_ns3(build_program(ns3), problem),
        "daqloom": run_daqloom(daqloom, MARKS),
    }
    keys = (
        *("packet_hops", "packets_dropped", "packets_marked", "timeouts"),
        *("events_measured", "mean_completion_s", "max_completion_s"),
    )
    return {
        "benchmark": "the same incast in ns-3 and in daqloom, with DCTCP in a shallow buffer",
        "problem": problem,
        "ns3_version": ns3.requirement,
    } | {side: {key: run[key] for key in keys} for side, run in sides.items()}


# ---- the two sides ------------------------------------------------------------------------------


def run_ns3(program: Path, problem: Json) -> Json:
    """One run of the ns-3 program on the scenario's numbers."""
    links, transport = problem["network"]["links"], problem["transport"]
    sources = problem["readout"]["units"]
    arguments = {
        "sources": sources,
        "fragmentBytes": whole_bytes(problem["event"]["size"]) // sources,
        "eventRateHz": plain(problem["event"]["rate"], "Hz"),
        "requestBytes": whole_bytes(problem["building"]["request_size"]),
        "mtuBytes": whole_bytes(problem["network"]["mtu"]),
        "segmentBytes": whole_bytes(problem["network"]["mtu"]) - 52,  # IP, TCP, timestamps
        "congestion": {
            "newreno": "ns3::TcpNewReno",
            "cubic": "ns3::TcpCubic",
            "dctcp": "ns3::TcpDctcp",
        }[transport["congestion"]],
        "initialWindowSegments": transport["initial_window"],
        "receiveWindowBytes": whole_bytes(transport["receive_window"]),
        "delayedAckSeconds": plain(transport["delayed_ack"], "s"),
        "segmentsPerAck": transport["ack_every"],
        "minRtoSeconds": plain(transport["rto_min"], "s"),
        "durationSeconds": plain(problem["run"]["duration"], "s"),
        "warmupSeconds": plain(problem["run"]["warmup"], "s"),
    }
    tor = problem["network"]["switch"]["tor"]
    if "queue_packets" in tor:
        arguments["queuePackets"] = tor["queue_packets"] - NS3_DEVICE_PACKETS
        arguments["markPackets"] = whole_bytes(tor["ecn_threshold"]) // FULL_FRAME_BYTES
    for link in ("source", "uplink", "access"):
        for key in ("rate", "delay"):
            arguments[link + key.title()] = links[link][key].replace(" ", "")
    run = time_command([str(program), *(f"--{key}={value}" for key, value in arguments.items())])
    return run | {"ack_share": run["ack_hops"] / run["packet_hops"]}


def run_daqloom(daqloom: str, scenario: Path) -> Json:
    """One run of `daqloom simulate`, in the terms of the ns-3 program's answer."""
    run = time_command([daqloom, "simulate", str(scenario), "--json"])
    metrics, engine = run["metrics"], run["engine"]
    return {
        "packet_hops": engine["packet_hops"],
        "ack_share": metrics["ack_hops"] / metrics["packet_hops"],  # both after the warm-up
        "packets_dropped": metrics["packets_dropped"],
        "packets_marked": metrics["packets_marked"],
        "timeouts": metrics["retransmission_timeouts"],
        "cpu_s": engine["cpu_s"],
        "hops_per_cpu_s": engine["packet_hops"] / engine["cpu_s"],
        "process_cpu_s": run["process_cpu_s"],
        "virtual_s": engine["virtual_s"],
        "sim_events": engine["sim_events"],
        "peak_rss_bytes": engine["peak_rss_bytes"],
        "events_measured": metrics["events_built"],
        "tor_peak_bytes": metrics["buffer_peak_bytes"]["tor"],
        "mean_completion_s": metrics["collection_latency_s"]["mean"],
        "max_completion_s": metrics["collection_latency_s"]["max"],
        "version": run["version"],
    }


def time_command(command: Sequence[str]) -> Json:
    """The JSON object that `command` prints, and the CPU time of its whole process."""
    before = children_cpu_s()
    run: Json = json.loads(output_of(command, limit_s=RUN_LIMIT_S))
    run["process_cpu_s"] = children_cpu_s() - before
    return run


def children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def summary(runs: Sequence[Json]) -> Json:
    """Medians of what varies from run to run; the simulated results may not."""
    measured = ("cpu_s", "hops_per_cpu_s", "process_cpu_s", "peak_rss_bytes")
    result = {key: value for key, value in runs[0].items() if key not in measured}
    for run in runs:
        if any(run[key] != value for key, value in result.items()):
            raise BenchmarkError("two runs of the same side differ in their simulated results")
    for key in measured:
        result[key] = median(run[key] for run in runs)
    result["hops_per_cpu_s_runs"] = [run["hops_per_cpu_s"] for run in runs]
    return result


def same_work(ns3: Json, daqloom: Json) -> Json:
    """daqloom's figure over ns-3's for what both must agree on; raises where they do not."""
    keys = (
        *("events_measured", "packet_hops", "ack_share"),
        *("mean_completion_s", "max_completion_s", "tor_peak_bytes"),
    )
    if ns3["packets_dropped"] or daqloom["packets_dropped"]:
        raise BenchmarkError("packets were dropped, in a scenario made so that none can be")
    ratios = {key: daqloom[key] / ns3[key] for key in keys}
    for key, ratio in ratios.items():
        if abs(ratio - 1) > SAME_WORK_TOLERANCE:
            raise BenchmarkError(
                f"the sides did not do the same work: {key} is {daqloom[key]} in daqloom and "
                f"{ns3[key]} in ns-3; compare incast.toml with what run.py passes on"
            )
    return {f"{key}_daqloom_over_ns3": ratio for key, ratio in ratios.items()}


# ---- setting up ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ns3:
    """An installed ns-3: `folder` holds include/ and lib64/ of the wheel."""

    requirement: str
    environment: Path
    folder: Path

    def library(self, module: str) -> Path:
        (path,) = (self.folder / "lib64").glob(f"libns3.*-{module}.so")
        return path

    def compiled_in(self) -> dict[str, bool]:
        """Options that the TCP/IP library itself was compiled with, not those of the headers."""
        code = self.library("internet").read_bytes()
        return {
            "assertions_compiled_in": b"NS_ASSERT failed" in code,
            "logging_compiled_in": b"LogComponent9IsEnabled" in code,
        }

    def describe(self) -> Json:
        return {"version": self.requirement} | self.compiled_in()


def install_ns3(build: Path) -> Ns3:
    """The pinned wheel in a virtual environment under `build`, installed once."""
    requirement = next(
        line for line in REQUIREMENTS.read_text().split("\n") if line and line[0] != "#"
    )
    environment = build / requirement.replace("==", "-")
    packages = sysconfig.get_path("platlib", "venv", {"platbase": str(environment)})
    ns3 = Ns3(requirement, environment, Path(packages) / "ns3")
    if not (environment / "installed").exists():
        progress(f"installing {requirement}")
        try:
            venv.create(environment, clear=True, with_pip=True)
        except subprocess.CalledProcessError:
            raise BenchmarkError(
                f"{sys.executable} makes no virtual environment with pip in {environment}; install "
                "Python's venv and ensurepip (Debian: python3-venv)"
            ) from None
        pip = [str(environment / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        output_of([*pip, "install", "--quiet", "--no-deps", "-r", str(REQUIREMENTS)])
        (environment / "installed").touch()
    return ns3


def build_program(ns3: Ns3) -> Path:
    """incast.cpp as an executable of its own, with the definitions that ns-3 was built with."""
    program = ns3.environment / "bin" / "incast"
    if program.exists() and program.stat().st_mtime > PROGRAM.stat().st_mtime:
        return program
    progress("building incast.cpp")
    libraries = [ns3.library(module) for module in NS3_MODULES]
    defines = {
        "assertions_compiled_in": "NS3_ASSERT_ENABLE",
        "logging_compiled_in": "NS3_LOG_ENABLE",
    }
    unfinished = program.with_suffix(".unfinished")
    output_of(
        [
            os.environ.get("CXX", "g++"),
            *("-std=c++20", "-O2", "-Wall", "-Wextra"),
            *(f"-D{defines[key]}" for key, present in ns3.compiled_in().items() if present),
            *("-isystem", str(ns3.folder / "include")),
            *(str(PROGRAM), "-o", str(unfinished)),
            *(str(library) for library in libraries),
            f"-Wl,-rpath,{ns3.folder / 'lib64'}",
        ]
    )
    unfinished.rename(program)
    return program


def find_daqloom(given: str | None) -> str:
    for candidate in (given, str(ROOT / ".venv" / "bin" / "daqloom"), "daqloom"):
        if candidate and (found := shutil.which(candidate)):
            return found
        if given:
            break
    raise BenchmarkError(
        f"{given or 'daqloom'} is not a command here; run `make demo` once, or name the command "
        "with --daqloom"
    )


def output_of(command: Sequence[str], limit_s: float = 900) -> str:
    """Standard output of `command`; what it says on standard error is for the person to see."""
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"{command[0]} was not ready after {limit_s:.0f} s") from None
    if done.returncode != 0:
        raise BenchmarkError(f"{command[0]} failed with exit code {done.returncode}")
    return done.stdout


# ---- small things -------------------------------------------------------------------------------


def plain(quantity: str, unit: str) -> float:
    """The number of `"375 Hz"`: incast.toml writes what goes to ns-3 without prefixes."""
    number, _, found = quantity.partition(" ")
    if found != unit:
        raise BenchmarkError(f"incast.toml: expected {quantity!r} in {unit}, without a prefix")
    return float(number)


def whole_bytes(quantity: str) -> int:
    return int(plain(quantity, "B"))


def caveats(ns3: Ns3) -> list[str]:
    compiled_in = ns3.compiled_in()
    present: Iterable[str] = (key.split("_")[0] for key, there in compiled_in.items() if there)
    return [
        f"the ns-3 libraries have {' and '.join(present) or 'neither assertions nor logging'} "
        "compiled in; see README.md for what a build without them would gain",
        "ns-3 routes IP packets at the core and the ToR, daqloom switches frames",
        "CPU time of ns-3 is that of Simulator::Run, of daqloom that of its engine; process_cpu_s "
        "counts the whole process, start-up of Python included",
    ]


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
