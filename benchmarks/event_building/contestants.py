"""The contestants: the event builder, the limits of the machine, and MPI."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FRAGMENT_BYTES = 1000
HEADER_BYTES = 15
"""The most that a fragment adds to a packet: its type, its size, padding."""
READ_AREA, WRITE_AREA = 64_000_000, 256_000_000
"""Bytes that each process reads from and writes to: the buffers of a unit."""
MOST_S = 300
SOCKETS: dict[str, tuple[str, dict[str, float]]] = {
    "poll": ("sockets", {"way": 0}),
    "busy-polled": ("sockets", {"way": 1}),
    "blocking": ("sockets", {"way": 2}),
    "epoll": ("sockets", {"way": 3}),
    "io_uring": ("sockets_uring", {"zero_copy": 0}),
    "io_uring, zero copy": ("sockets_uring", {"zero_copy": 1}),
}
"""Ways to wait for sockets, each a program with an option. Blocking ones have a second thread."""


class BenchmarkError(Exception):
    """A program that did not do its work."""


def json_output(command: list[str], env: Mapping[str, str] = os.environ) -> dict[str, float]:
    """The JSON object in the last line of what it prints."""
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=MOST_S, env=dict(env), check=True
        )
        found = run.stdout[run.stdout.index("{") :]
        return dict(json.loads(found))
    except subprocess.CalledProcessError as error:
        raise BenchmarkError(f"{command[0]} failed: {error.stderr[-500:].strip()}") from None
    except (ValueError, subprocess.TimeoutExpired, OSError) as error:
        raise BenchmarkError(f"{command[0]}: {error}") from None


@dataclass(frozen=True)
class Load:
    """The transfers: from each of `units` processes to each, itself included."""

    units: int
    block: int
    """Bytes of a multi-fragment packet."""


@dataclass(frozen=True)
class Programs:
    """The programs of this folder, as CMake builds them."""

    folder: Path
    seconds: float

    def copy_limit(self, load: Load) -> dict[str, float]:
        """Copies with a process per core, which share the areas of all units."""
        cores = len(os.sched_getaffinity(0))
        return self._run(
            "copy_limit",
            processes=cores,
            block=load.block,
            read_area=READ_AREA * load.units // cores,
            write_area=WRITE_AREA * load.units // cores,
        )

    def sockets(self, way: str, load: Load) -> dict[str, float]:
        """`way`: one of SOCKETS."""
        program, option = SOCKETS[way]
        return self._run(
            program,
            **option,
            processes=load.units,
            block=load.block,
            read_area=READ_AREA,
            write_area=WRITE_AREA,
        )

    def ways_of_sockets(self) -> tuple[list[str], dict[str, str]]:
        """The ways of this machine, and why it lacks the others."""
        brief = replace(self, seconds=0.1)
        ways, lacking = [], {}
        for way, (program, _) in SOCKETS.items():
            if not (self.folder / program).exists():
                lacking[way] = "liburing-dev was missing where the programs were built"
                continue
            try:
                brief.sockets(way, Load(2, 1 << 20))
                ways.append(way)
            except BenchmarkError as error:
                lacking[way] = str(error)
        return ways, lacking

    def barrier(self, units: int, kind: int) -> dict[str, float]:
        return self._run("barrier", processes=units, kind=kind)

    def _run(self, program: str, **options: float) -> dict[str, float]:
        options["seconds"] = self.seconds
        return json_output(
            [str(self.folder / program), *(f"--{name}={value}" for name, value in options.items())]
        )


@dataclass
class Mpi:
    """Open MPI, with what of its settings is best here for each use: found once."""

    program: Path
    seconds: float
    chosen: dict[tuple[str, str, Load], int] = field(default_factory=dict)

    @property
    def is_there(self) -> bool:
        return self.program.exists() and shutil.which("mpirun") is not None

    def run(self, mode: str, over: str, load: Load) -> dict[str, float]:
        """`mode`: alltoall, shift or barrier. `over`: "shm" or "tcp"."""
        key = (mode, over, load)
        if key not in self.chosen:
            times = {yields: self._run(mode, over, load, yields)["round_s"] for yields in (0, 1)}
            self.chosen[key] = min(times, key=lambda yields: times[yields])
        return self._run(mode, over, load, self.chosen[key])

    def _run(self, mode: str, over: str, load: Load, yields: int) -> dict[str, float]:
        layers = {
            "shm": ("btl", "self,vader"),
            "tcp": ("btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"),
        }
        return json_output(
            ["mpirun", "--oversubscribe", "--mca", "pml", "ob1", "--mca", *layers[over],
             "--mca", "mpi_yield_when_idle", str(yields), "-np", str(load.units),
             str(self.program), mode, str(load.block), str(READ_AREA), str(WRITE_AREA),
             str(self.seconds)],
            os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
        )  # fmt: skip


@dataclass(frozen=True)
class EventBuilder:
    """`daqloom measure`, with sources that only number their packets and consumers that only give
    them back: what is measured is transport and protocol."""

    command: list[str]
    seconds: float
    settle_s: float = 0.7
    """Until the first pass through all buffers is over."""

    def run(
        self, units: int, fragments: int, fragment_bytes: int, **sets: object
    ) -> dict[str, float]:
        """`sets`: further keys, with __ for a dot. Returns metrics, flat, and `bytes_per_s`,
        `bytes_per_cpu_s` of fragments built."""
        phase = int(str(sets.get("building__meps_per_phase", 1)))
        two_rounds = 2 * phase * (units + 1) * fragments * (fragment_bytes + HEADER_BYTES)
        keys = {
            "readout.units": units,
            "network.hosts_per_leaf": units,
            "event.fragment_size": f'"{fragment_bytes} B"',
            "event.packing": fragments,
            "measure.content": '"once"',
            "measure.sink": '"discard"',
            "measure.when_full": '"wait"',
            "measure.stream_buffer": f'"{max(READ_AREA, two_rounds)} B"',
            "measure.output_buffer": f'"{WRITE_AREA} B"',
            "measure.fault_timeout": '"60 s"',
            "measure.warmup": f'"{self.settle_s} s"',
            "measure.duration": f'"{self.settle_s + self.seconds} s"',
        } | {name.replace("__", "."): value for name, value in sets.items()}
        options = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
        result = json_output([*self.command, "measure", "laptop", "--json", *options])
        found = dict(result["metrics"])  # type: ignore[call-overload]
        bytes_per_s = found["throughput_bps"] / 8
        return found | {
            "bytes_per_s": bytes_per_s,
            "bytes_per_cpu_s": bytes_per_s / max(found["unit_cores"] * units, 1e-9),
        }

    def build(self, load: Load, transport: str, **sets: object) -> dict[str, float]:
        fragment = min(FRAGMENT_BYTES, load.block)
        return self.run(
            load.units,
            max(1, load.block // fragment),
            fragment,
            measure__transport=f'"{transport}"',
            **sets,
        )


def daqloom_command(given: str | None) -> list[str]:
    """The command line of this interpreter's daqloom, or that which is named."""
    return [given] if given else [sys.executable, "-m", "daqloom"]
