"""Processes that the run control starts, with their output in log files."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from daqloom.machine.foreign import Foreign, began_of
from daqloom.machine.launch import TOKEN, Task

MOST_SHOWN_BYTES = 4096
END_S = 10.0
"""Time in which a process that ends units has to end them (s)."""
_CPUCLOCK_SCHED = 2
"""Kind of clock, as clock_getcpuclockid(3) encodes it in a clock ID."""


@dataclass(frozen=True)
class ProcessRecord:
    """Local process that runs units, as another run control finds it again."""

    units: tuple[int, ...]
    pid: int
    began: int
    """See `began_of`."""


class Processes:
    """Runner of tasks, with logs in `folder`; calls `on_exit(units, how)` when a task ends, and
    `on_start` when one has begun. With `outlive`, tasks go on when this process is killed."""

    def __init__(
        self,
        folder: Path,
        token: bytes,
        on_exit: Callable[[tuple[int, ...], str], None],
        *,
        outlive: bool = False,
        on_start: Callable[[], None] = lambda: None,
    ) -> None:
        self._folder, self._token, self._on_exit = folder, token, on_exit
        self._outlive, self._on_start = outlive, on_start
        self._ending = False
        self._running: dict[asyncio.subprocess.Process | Foreign, tuple[int, ...]] = {}
        self._records: dict[asyncio.subprocess.Process | Foreign, ProcessRecord] = {}
        self._watchers: set[asyncio.Task[None]] = set()
        self._enders: set[asyncio.subprocess.Process | Foreign] = set()

    def start(self, task: Task) -> None:
        """Start the process of a task; a failure to start is reported as its end."""
        watcher = asyncio.get_running_loop().create_task(self._run(task))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)

    @property
    def records(self) -> Sequence[ProcessRecord]:
        """The running processes."""
        return list(self._records.values())

    def adopt(self, known: ProcessRecord) -> bool:
        """Take over a process of an earlier run control; return False if it has ended."""
        try:
            process = Foreign(known.pid, known.began)
        except ProcessLookupError:
            return False
        self._running[process], self._records[process] = known.units, known
        watcher = asyncio.get_running_loop().create_task(self._watch(process))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)
        return True

    def stands_for_several(self, unit: int) -> bool:
        """Return whether one local process, such as srun, runs this unit together with others."""
        return any(unit in units and len(units) > 1 for units in self._running.values())

    def kill(self, unit: int) -> None:
        """Kill the unit's process."""
        self.signal(unit, signal.SIGKILL)

    def signal(self, unit: int, number: signal.Signals) -> None:
        """Send a signal to the process of a unit and to all its descendants."""
        for process, units in self._running.items():
            if units == (unit,):
                _signal(process, number)

    def cpu_s(self, unit: int) -> float | None:
        """Return the CPU time of the unit's process (s); None if it has no process."""
        for process, units in self._running.items():
            if units == (unit,):
                return cpu_time_s(process.pid)
        return None

    async def end(self, *, are_ending: bool = False) -> None:
        """Kill all processes, including those being started, and wait for their end. Processes that
        end their units themselves get the time to do so, without a signal if units `are_ending` of
        themselves: MPI removes its files at the end of the last rank."""
        self._ending = True
        if are_ending and self._enders and self._watchers:
            await asyncio.wait(self._watchers, timeout=END_S)
        for process in list(self._running):
            _signal(process, signal.SIGTERM if process in self._enders else signal.SIGKILL)
        if self._enders and self._watchers:
            await asyncio.wait(self._watchers, timeout=END_S)
        for process in list(self._running):
            _signal(process, signal.SIGKILL)
        await asyncio.gather(*self._watchers, return_exceptions=True)

    def log(self, unit: int) -> Path:
        """Return the path of the file with the unit's output."""
        return log_file(self._folder, unit)

    def last_lines(self, unit: int, count: int = 5) -> list[str]:
        """Return the last lines of the unit's output."""
        with suppress(OSError), self.log(unit).open("rb") as file:
            file.seek(max(0, os.path.getsize(self.log(unit)) - MOST_SHOWN_BYTES))
            lines = file.read(MOST_SHOWN_BYTES).decode(errors="replace").splitlines()
            return [line for line in lines if line.strip()][-count:]
        return []

    async def _run(self, task: Task) -> None:
        first = task.units[0]
        there, here = os.pipe2(os.O_CLOEXEC)
        # The process holds both ends of its input, if that has to outlast this process.
        kept = (here,) if self._outlive and task.input_stays_open else ()
        secret = {TOKEN: self._token.hex()} if task.token_in_environment else {}
        try:
            with self.log(first).open("ab") as output:
                process = await asyncio.create_subprocess_exec(
                    *task.command,
                    stdin=there,
                    stdout=output,
                    stderr=output,
                    pass_fds=kept,
                    env={**os.environ, **secret},
                    start_new_session=True,  # Ctrl-C is for the run control, which ends units
                )
        except OSError as error:
            os.close(here)
            self._on_exit(task.units, f"{task.command[0]}: {(error.strerror or '').lower()}")
            return
        finally:
            os.close(there)
        self._running[process] = task.units
        if task.ends_units:
            self._enders.add(process)
        self._records[process] = ProcessRecord(task.units, process.pid, began_of(process.pid))
        if self._ending:
            _signal(process, signal.SIGKILL)
        self._on_start()
        try:
            with suppress(OSError):
                os.write(here, self._token.hex().encode() + b"\n")  # fits into an empty pipe
            if kept or not task.input_stays_open:
                os.close(here)
                here = -1
            await self._watch(process)
        finally:
            if here >= 0:
                os.close(here)

    async def _watch(self, process: asyncio.subprocess.Process | Foreign) -> None:
        code = await process.wait()
        units = self._running.pop(process)
        del self._records[process]
        how = "it was started by an earlier run control" if isinstance(process, Foreign) else ""
        self._on_exit(units, how or _how(code))


def log_file(folder: Path, unit: int) -> Path:
    """Return the path of the file with a unit's output."""
    return folder / f"unit-{unit}.log"


def cpu_time_s(process: int) -> float | None:
    """Return the CPU time of a process (s); None if it has ended."""
    with suppress(OSError):
        return time.clock_gettime(~process << 3 | _CPUCLOCK_SCHED)
    return None


def _signal(process: asyncio.subprocess.Process | Foreign, number: signal.Signals) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)  # it leads a session of its own


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"
