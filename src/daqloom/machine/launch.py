"""Launchers of units: as local children, by ssh, under Slurm, or by hand.

Units read the run's token from standard input: no list of processes shows it."""

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from daqloom.results.errors import MeasureError

COMMAND = (sys.executable, "-m", "daqloom", "unit")
"""Command of a unit, also on other hosts."""


@dataclass(frozen=True)
class Task:
    """Local process that is, or starts, the processes of `units`."""

    units: tuple[int, ...]
    command: tuple[str, ...]
    input_stays_open: bool = False
    """Whether its units end when their standard input does."""


class Launcher(Protocol):
    """Starter of units that connect to the run control at `control`, host:port."""

    def tasks(self, units: Sequence[int], control: str) -> list[Task]:
        """Return the tasks for these units: at the beginning all, later one that comes back."""

    def command_at(self, unit: int, command: Sequence[str]) -> tuple[str, ...]:
        """Return the command that runs another program on the host of a unit. Raises MeasureError
        if the host is unknown."""


@dataclass(frozen=True)
class Local:
    """Launcher of children of this process, which end with it."""

    command: Sequence[str] = COMMAND
    options: Sequence[str] = ()

    def tasks(self, units: Sequence[int], control: str) -> list[Task]:
        """Return the tasks that start units: see `Launcher`."""
        parent = ("--parent", str(os.getpid()))
        return [Task((unit,), (*_unit(self, control, unit), *parent)) for unit in units]

    def command_at(self, unit: int, command: Sequence[str]) -> tuple[str, ...]:
        """Return the command itself."""
        return tuple(command)


@dataclass(frozen=True)
class Ssh:
    """Launcher on `hosts` in turn, by keys: a password cannot be entered."""

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
        """Return the command of ssh."""
        host = self.hosts[unit % len(self.hosts)]
        return (*self.program, "--", host, shlex.join(command))


@dataclass(frozen=True)
class Slurm:
    """Launcher in this allocation: one srun for all units of a run, which numbers them, and one for
    each unit that comes back."""

    command: Sequence[str] = COMMAND
    options: Sequence[str] = ()
    # The run goes on without a task that ends.
    program: Sequence[str] = ("srun", "--kill-on-bad-exit=0", "--wait=0", "--overlap")

    def tasks(self, units: Sequence[int], control: str) -> list[Task]:
        """Return the tasks that start units: see `Launcher`."""
        if len(units) > 1 and list(units) == list(range(len(units))):  # ranks are numbers
            size = f"--ntasks={len(units)}"
            return [Task(tuple(units), (*self.program, size, *_unit(self, control, None)))]
        alone = (*self.program, "--ntasks=1", "--nodes=1")
        return [Task((unit,), (*alone, *_unit(self, control, unit))) for unit in units]

    def command_at(self, unit: int, command: Sequence[str]) -> tuple[str, ...]:
        """Raise MeasureError: Slurm chooses the node of a unit."""
        raise _unknown("slurm")


@dataclass(frozen=True)
class ByHand:
    """Launcher of nothing: the user starts the units."""

    def tasks(self, units: Sequence[int], control: str) -> list[Task]:
        """Return no tasks."""
        return []

    def command_at(self, unit: int, command: Sequence[str]) -> tuple[str, ...]:
        """Raise MeasureError: the user chooses the host of a unit."""
        raise _unknown("by-hand")


def _unknown(launch: str) -> MeasureError:
    return MeasureError(
        f'measure.launch = "{launch}" leaves the host of a unit unknown; use "ssh" and hosts'
    )


def _unit(launcher: Local | Ssh | Slurm, control: str, number: int | None) -> tuple[str, ...]:
    which = () if number is None else ("--unit", str(number))
    return (*launcher.command, "--control", control, *which, *launcher.options)
