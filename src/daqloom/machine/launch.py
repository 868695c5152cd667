"""Launchers of units: as local child processes, by ssh, under Slurm, by mpirun, or by hand.

Units read the run's token from standard input or from their environment, so that no list of
processes shows it."""

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, Protocol

from daqloom.base.words import reason_of
from daqloom.machine.programs import TooLongError, run_program
from daqloom.results.errors import MeasureError

COMMAND = (sys.executable, "-m", "daqloom", "unit")
"""Command that starts a unit, used on all hosts."""
TOKEN = "DAQLOOM_TOKEN"
"""Environment variable with the run's token, in hexadecimal digits."""
Mpi = Literal["Open MPI", "MPICH"]


@dataclass(frozen=True)
class Task:
    """A local process that is the process of `units`, or starts their processes."""

    units: tuple[int, ...]
    command: tuple[str, ...]
    input_stays_open: bool = False
    """Whether the units end when their standard input ends."""
    token_in_environment: bool = False
    """Whether the units find the run's token in `TOKEN`, not in standard input."""
    ends_units: bool = False
    """Whether the process ends the units and removes their shared memory on SIGTERM."""


class Launcher(Protocol):
    """Interface to start units, which connect to the run control at `control` (host:port)."""

    def tasks(self, units: Sequence[int], control: str) -> list[Task]:
        """Return the tasks that start these units: initially all units, later one that returns."""

    def command_at(self, unit: int, command: Sequence[str]) -> tuple[str, ...]:
        """Return the command that runs `command` on the host of a unit. Raises MeasureError if the
        host is unknown."""


@dataclass(frozen=True)
class Local:
    """Launcher of units as children of this process, which end with it; with `address_file`, which
    has the address of their run control, they outlive it."""

    command: Sequence[str] = COMMAND
    options: Sequence[str] = ()
    address_file: str = ""

    def tasks(self, units: Sequence[int], control: str) -> list[Task]:
        """Return the tasks that start units, as `Launcher` describes."""
        lifeline = ("--parent", str(os.getpid()))
        if self.address_file:
            lifeline = ("--address-file", self.address_file)
        return [Task((unit,), (*_unit(self, control, unit), *lifeline)) for unit in units]

    def command_at(self, unit: int, command: Sequence[str]) -> tuple[str, ...]:
        """Return `command` unchanged, because the unit runs on this machine."""
        return tuple(command)


@dataclass(frozen=True)
class Ssh:
    """Launcher on `hosts` in turn, by ssh with keys, because no password can be entered."""

    hosts: Sequence[str]
    command: Sequence[str] = COMMAND
    options: Sequence[str] = ()
    program: Sequence[str] = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10")

    def tasks(self, units: Sequence[int], control: str) -> list[Task]:
        """Return the tasks that start units: see `Launcher`."""
        tasks = []
        for unit in units:
            host = self.hosts[unit % len(self.hosts)]
            remote = shlex.join((*_unit(self, control, unit), "--while-input"))
            tasks.append(Task((unit,), (*self.program, "--", host, remote), input_stays_open=True))
        return tasks

    def command_at(self, unit: int, command: Sequence[str]) -> tuple[str, ...]:
        """Return the ssh command that runs `command` on the unit's host."""
        host = self.hosts[unit % len(self.hosts)]
        return (*self.program, "--", host, shlex.join(command))


@dataclass(frozen=True)
class Slurm:
    """Launcher in this Slurm allocation: one srun starts and numbers all units of a run, and a
    further srun starts each unit that returns."""

    command: Sequence[str] = COMMAND
    options: Sequence[str] = ()
    hosts: Sequence[str] = ()
    """Node of each unit; empty: Slurm chooses."""
    is_bound: bool = False
    """Whether units pin themselves to cores, in place of Slurm."""
    # A task that ends does not end the others.
    program: Sequence[str] = ("srun", "--kill-on-bad-exit=0", "--wait=0", "--overlap")

    def tasks(self, units: Sequence[int], control: str) -> list[Task]:
        """Return the tasks that start units: see `Launcher`."""
        program = (*self.program, "--cpu-bind=none") if self.is_bound else self.program
        if len(units) > 1 and list(units) == list(range(len(units))):  # ranks are numbers
            # An arbitrary distribution puts task k on the k-th node of the list.
            where = ("--distribution=arbitrary", f"--nodelist={','.join(self.hosts)}")
            size = (f"--ntasks={len(units)}", *(where if self.hosts else ()))
            return [Task(tuple(units), (*program, *size, *_unit(self, control, None)))]
        return [
            Task((unit,), (*program, *self._alone(unit), *_unit(self, control, unit)))
            for unit in units
        ]

    def command_at(self, unit: int, command: Sequence[str]) -> tuple[str, ...]:
        """Return the srun command that runs `command` on the unit's node. Raises MeasureError if
        Slurm chooses that node."""
        if not self.hosts:
            raise _unknown("slurm")
        return (*self.program, *self._alone(unit), *command)

    def _alone(self, unit: int) -> tuple[str, ...]:
        where = (f"--nodelist={self.hosts[unit]}",) if self.hosts else ()
        return ("--ntasks=1", "--nodes=1", *where)


@dataclass(frozen=True)
class Mpirun:
    """Launcher by one mpirun, for all units of a run: ranks are their numbers. It starts no unit
    again, because it ends all units when it loses one."""

    hosts: Sequence[str]
    """Host of each unit; empty: this machine."""
    mpi: Mpi
    command: Sequence[str] = COMMAND
    options: Sequence[str] = ()
    program: str = "mpirun"

    def tasks(self, units: Sequence[int], control: str) -> list[Task]:
        """Return the task that starts all units; no task for some of them."""
        if list(units) != list(range(len(self.hosts))):
            return []
        parts: list[str] = []
        for host, group in groupby(self.hosts):  # ranks follow the order of the parts
            where = ("-host", host) if host else ()
            parts += (":",) if parts else ()
            parts += ("-n", str(len(list(group))), *where, *_unit(self, control, None))
        command = (self.program, *self._options(), *parts)
        return [Task(tuple(units), command, token_in_environment=True, ends_units=True)]

    def command_at(self, unit: int, command: Sequence[str]) -> tuple[str, ...]:
        """Return the mpirun command that runs `command` on the unit's host."""
        where = ("-host", self.hosts[unit]) if self.hosts[unit] else ()
        return (self.program, *self._options(), "-n", "1", *where, *command)

    def _options(self) -> tuple[str, ...]:
        if self.mpi == "MPICH":
            return ()  # it passes the environment on, and binds to no cores
        root = ("--allow-run-as-root",) if os.geteuid() == 0 else ()
        return ("--oversubscribe", "--bind-to", "none", "-x", TOKEN, *root)


def mpi_of(program: str) -> Mpi:
    """Return the MPI of an mpirun. Raises MeasureError if it cannot run, or is of another MPI."""
    try:
        done = run_program((program, "--version"), b"", 60.0, 1 << 16)
        output = (done.stdout + done.stderr).decode(errors="replace")
    except (TimeoutError, TooLongError):
        output = ""
    except OSError as error:
        raise MeasureError(
            f"measure.mpirun = {program} cannot run: {reason_of(error)}; install an MPI (on Debian "
            "and Ubuntu: apt-get install openmpi-bin, or mpich)"
        ) from None
    if "Open MPI" in output or "OpenRTE" in output:
        return "Open MPI"
    if "HYDRA" in output:
        return "MPICH"
    raise MeasureError(f"measure.mpirun = {program} is neither of Open MPI nor of MPICH; use one")


@dataclass(frozen=True)
class ByHand:
    """Launcher that starts nothing, because the user starts the units."""

    def tasks(self, units: Sequence[int], control: str) -> list[Task]:
        """Return no tasks."""
        return []

    def command_at(self, unit: int, command: Sequence[str]) -> tuple[str, ...]:
        """Raise MeasureError, because the user chooses the host of a unit."""
        raise _unknown("by-hand")


def _unknown(launch: str) -> MeasureError:
    return MeasureError(
        f'measure.launch = "{launch}" leaves the host of a unit unknown; use "ssh" and hosts'
    )


def _unit(
    launcher: Local | Ssh | Slurm | Mpirun, control: str, number: int | None
) -> tuple[str, ...]:
    which = () if number is None else ("--unit", str(number))
    return (*launcher.command, "--control", control, *which, *launcher.options)
