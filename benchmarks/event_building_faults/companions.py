"""Programs beside a run: consumers of its outputs, a console with a viewer, a study; memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

from system import System

from support.consoles import served

CONSUMER = Path(__file__).with_name("consumer.py")
MEMORY_PERIOD_S = 5.0
MOST_GROWTH, SLACK_BYTES = 1.1, 20 << 20
"""Growth of a kind of process from the first to the last third of the time that counts as flat."""
LEAST_SAMPLES = 60
"""Samples from which growth is judged."""
WORDS = {"consumer.py": "consumers", "unit": "units", "study": "study", "console": "console"}
STUDY = """title = "A study beside a run"
scenario = "laptop"
methods = ["simulate"]

[set]
"run.duration" = "4 ms"
"run.warmup" = "1 ms"

[grid]
"event.packing" = [100, 200, 400]

[repeat]
seeds = 2
"""


class Consumers:
    """A consumer of each unit's output, which serves while the sink of the run is "user"."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Consumers:
        for unit in range(self._system.units):
            self.start(unit)
        return self

    def __exit__(self, *_: object) -> None:
        for unit in list(self._processes):
            self.kill(unit)

    def start(self, unit: int) -> None:
        """Start the consumer of a unit."""
        output = f"daqloom/{self._system.name}/{unit}/output"
        command = [*self._system.inside(unit), sys.executable, str(CONSUMER)]
        command += [output, str(self._system.recording), f"consumer-{unit}"]
        self._processes[unit] = subprocess.Popen(command, start_new_session=True)

    def kill(self, unit: int) -> None:
        """Kill the consumer of a unit."""
        process = self._processes.pop(unit)
        process.kill()
        process.wait()

    def pid(self, unit: int) -> int:
        return self._processes[unit].pid


class Viewer:
    """A console with a viewer of the run, a context. `frames`: events that the viewer has read."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.frames = folder, 0
        self._stack, self._ends = ExitStack(), threading.Event()
        self._thread = threading.Thread(target=self._view)

    def __enter__(self) -> Viewer:
        self._console = self._stack.enter_context(served(runtime=self._folder))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._stack.close()
        self._thread.join()

    def _view(self) -> None:
        cookie = self._console.cookie("view")
        while not self._ends.is_set():
            with suppress(OSError, ValueError, AttributeError):  # of a connection that has ended
                for line in self._console.ask("/api/run", headers=cookie):
                    self.frames += line.startswith(b"data:")
                    if self._ends.is_set():
                        return


@contextmanager
def study(folder: Path) -> Iterator[list[int]]:
    """Run a study again and again; yields the exit codes."""
    ends, codes = threading.Event(), []
    document, store = folder / "study.toml", folder / "store"
    document.write_text(STUDY)
    command = [sys.executable, "-m", "daqloom", "study", "run", str(document), "--quiet"]
    command += ["--workers", "1", "--store", str(store)]

    def follow() -> None:
        while not ends.is_set():
            codes.append(subprocess.run(command, stdout=subprocess.DEVNULL).returncode)
            shutil.rmtree(store, ignore_errors=True)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield codes
    finally:
        ends.set()
        thread.join()


class Memory:
    """Resident memory of the processes of a run, by kind, sampled; a context."""

    def __init__(self, folder: Path) -> None:
        self._mark = f"XDG_RUNTIME_DIR={folder}"
        self._samples: list[dict[str, int]] = []
        self._ends, self._thread = threading.Event(), threading.Thread(target=self._sample)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ends.wait(MEMORY_PERIOD_S):
            found: dict[str, int] = {}
            for pid in processes_with(self._mark):
                with suppress(OSError, ValueError):
                    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
                    names = (WORDS[Path(word).name] for word in words if Path(word).name in WORDS)
                    kind = next(names, "run control")
                    found[kind] = found.get(kind, 0) + private_bytes(pid)
            self._samples.append(found)

    def record(self) -> dict[str, Any]:
        """Return the memory of each kind in the first and in the last third of the time."""
        third = max(1, len(self._samples) // 3)
        found = {}
        for kind in sorted({kind for sample in self._samples for kind in sample} - {"study"}):
            values = [sample.get(kind, 0) for sample in self._samples]
            first, last = (int(median(part)) for part in (values[:third], values[-third:]))
            is_flat = last <= MOST_GROWTH * first + SLACK_BYTES or len(values) < LEAST_SAMPLES
            found[kind] = {"first_bytes": first, "last_bytes": last, "is_flat": is_flat}
        return found


def private_bytes(pid: int) -> int:
    """Return the resident memory of a process without files and shared memory (B); 0 for one that
    has ended."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))


def processes_with(variable: str) -> list[int]:
    """Return the processes, other than this one, with NAME=VALUE in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            variables = (folder / "environ").read_bytes().split(b"\0")
            if variable.encode() in variables and int(folder.name) != os.getpid():
                found.append(int(folder.name))
    return found
