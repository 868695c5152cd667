"""The kernel's side: programs built, namespaces entered, one question per run."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any, Self

from comparison import LONGEST_ROUND_S, Load, Outcome, Point

HERE = Path(__file__).resolve().parent
MOST_ROUNDS = 100_000

ROUNDS_TO_OPEN_WINDOWS = 10


USUAL_HZ = 250


class BenchmarkError(Exception):
    """One sentence for the person who started the benchmark."""


class KernelSide:
    """The incast on this machine's TCP; a context manager that leaves nothing behind."""

    def __init__(self, build: Path, software: str = "") -> None:
        """`software`: the daqloom command whose software switch stands in for the bridge."""
        self._build, self._software = build, software
        self._child: subprocess.Popen[str] | None = None
        self.may_hold_window = os.geteuid() == 0

    def __enter__(self) -> Self:
        build_programs(self._build)
        # The kernel ends unshare with this process, and with unshare all that it started.
        enter = ["setpriv", "--pdeathsig", "KILL"]
        enter += ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"]
        if os.geteuid() != 0:
            enter += ["--user", "--map-root-user"]
        # A session of its own: Ctrl-C reaches this process alone, which then ends the child.
        self._child = subprocess.Popen(
            [
                *enter,
                *(sys.executable, str(HERE / "rack.py"), str(self._build)),
                *([self._software] if self._software else []),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.described = self._answer()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._child
        self._child.kill()  # with it ends the process namespace, and with that all the others
        self._child.wait()

    def measure(self, point: Point, seconds: float, repeat: int = 0) -> Outcome:
        return outcome(self.ask(point, seconds))

    def drops(self, point: Point, rounds: int) -> bool:
        """Whether the bottleneck drops anything in so many rounds."""
        return bool(self.ask(point, LONGEST_ROUND_S / 2, rounds)["dropped_after_warmup"])

    def ask(
        self, point: Point, seconds: float, rounds: int = MOST_ROUNDS, **more: object
    ) -> dict[str, Any]:
        """Runs the incast once; all that `rack.py` says about it. `more`: see there."""
        assert self._child is not None
        assert self._child.stdin is not None
        question = {
            "congestion": self._congestion(point.load),
            "static_window": self._static_window(point.load),
            "buffer_packets": point.buffer_packets,
            "seconds": max(1, round(seconds)),
            "rounds": rounds,
            **more,
        }
        self._child.stdin.write(json.dumps(question) + "\n")
        self._child.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._child is not None
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise BenchmarkError("the namespaces' side ended early; see above for its reason")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise BenchmarkError(answer["error"])
        return answer

    def _congestion(self, load: Load) -> str:
        # Registered names are known to the whole machine: the process id keeps them apart.
        return "cubic" if load.congestion == "cubic" else f"w{load.window}_{os.getpid()}"

    def _static_window(self, load: Load) -> str:
        """The object file of the congestion control that holds the window; '' for CUBIC."""
        if load.congestion == "cubic":
            return ""
        target = self._build / f"static_window_{load.window}.o"
        compile_with(
            "clang-16", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{multiarch()}",
            f"-DWINDOW={load.window}", f'-DNAME="{self._congestion(load)}"',
            "-c", str(HERE / "static_window.bpf.c"), "-o", str(target),
        )  # fmt: skip
        return str(target)


def outcome(answer: dict[str, Any]) -> Outcome:
    """The figures of a run out of the counters of `rack.py`."""
    latencies, counters = answer["latency_s"], answer["tcp"]
    ordered = sorted(latencies)
    return Outcome(
        rounds=len(latencies),
        goodput_bps=8 * answer["round_bytes"] * len(latencies) / answer["elapsed_s"],
        median_round_s=ordered[len(ordered) // 2],
        longest_round_s=ordered[-1],
        drops=answer["dropped"],
        timeouts=counters.get("TcpExtTCPTimeouts", 0),
        loss_probes=counters.get("TcpExtTCPLossProbes", 0),
        retransmissions=counters.get("TcpRetransSegs", 0),
    )


def build_programs(build: Path) -> None:
    """Compiles what the namespaces run; what is up to date is compiled again: it takes seconds."""
    for program, package in (
        ("unshare", "util-linux"),
        ("ip", "iproute2"),
        ("g++", "g++"),
        ("clang-16", "clang-16"),
    ):
        if shutil.which(program) is None:
            raise BenchmarkError(f"{program} is missing; install the package {package}")
    if not Path("/usr/include/bpf/bpf.h").exists():
        raise BenchmarkError("bpf/bpf.h is missing; install the package libbpf-dev")
    build.mkdir(parents=True, exist_ok=True)
    for name, libraries in (
        ("sender", ()),
        ("receiver", ()),
        ("load_static_window", ("-lbpf",)),
    ):
        source = HERE / f"{name}.cpp"
        compile_with("g++", "-std=c++20", "-O2", "-Wall", "-Wextra", str(source),
                     "-o", str(build / name), *libraries)  # fmt: skip


def compile_with(*words: str) -> None:
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise BenchmarkError(f"'{words[0]}' failed on {words[-3]}: {done.stderr.strip()}")


def multiarch() -> str:
    return subprocess.run(
        ["g++", "-print-multiarch"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()


def ticks_per_second() -> int:
    """The running kernel's HZ, on whose ticks TCP's timers strike; 250 where it does not tell."""
    try:
        return parse_hz(gzip.open("/proc/config.gz", "rt").read())
    except OSError:
        pass
    try:
        return parse_hz(Path(f"/boot/config-{os.uname().release}").read_text())
    except OSError:
        return USUAL_HZ


def parse_hz(config: str) -> int:
    """HZ out of a kernel's build configuration."""
    found = re.search(r"^CONFIG_HZ=(\d+)$", config, re.MULTILINE)
    return int(found[1]) if found else USUAL_HZ


@dataclass(frozen=True)
class Hosts:
    """How the hosts of this machine answer, which no parameter of the network tells.

    They share the machine's cores: one begins to answer `spacing_s` after the other, earlier or
    later from round to round by `jitter_s` (one standard deviation), and puts its reply on the
    wire at `emission_bps`. Timers strike on the kernel's ticks, `tick_s` apart.
    """

    spacing_s: float
    jitter_s: float
    emission_bps: float
    tick_s: float


def hosts_speed(hosts: Sequence[Mapping[str, Sequence[float]]], reply_wire_bytes: int) -> Hosts:
    """Medians over the rounds, and for jitter and emission over the hosts.

    For a run where every reply fits its congestion window: a sender has then handed its last packet
    to the switch when its send() returns.
    """
    rounds = range(ROUNDS_TO_OPEN_WINDOWS, min(len(host["answered_s"]) for host in hosts))
    if len(rounds) < 2:
        raise BenchmarkError("too few rounds to measure the hosts; lengthen --seconds")
    asked = [sorted(host["asked_s"][i] for host in hosts) for i in rounds]
    jitters = [
        robust_deviation(
            [host["asked_s"][i] - times[0] for i, times in zip(rounds, asked, strict=True)]
        )
        for host in hosts
    ]
    emissions = [host["answered_s"][i] - host["asked_s"][i] for host in hosts for i in rounds]
    return Hosts(
        spacing_s=median(times[-1] - times[0] for times in asked) / (len(hosts) - 1),
        jitter_s=median(jitters),
        emission_bps=8 * reply_wire_bytes / median(emissions),
        tick_s=1 / ticks_per_second(),
    )


def robust_deviation(values: Sequence[float]) -> float:
    """The standard deviation of a normal distribution with the median distance of `values`.

    Other programs on the machine sometimes stop everything for milliseconds; that is no jitter.
    """
    middle = median(values)
    return median(abs(value - middle) for value in values) / 0.6745
