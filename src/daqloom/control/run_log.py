"""Log of a run: the engine's log, with the load of this machine."""

import logging
from dataclasses import dataclass, fields, replace

from daqloom import _engine
from daqloom.base.log import LOG
from daqloom.base.words import plural
from daqloom.machine.machine import Machine

About = _engine.About
LATE = ("silent for ", "is stuck", "no answer to ")
"""Reasons of losses on a busy machine."""


@dataclass(frozen=True)
class RunEvent:
    """Entry of the log, as the engine's."""

    time_s: float
    text: str
    about: _engine.About
    phase: _engine.RunPhase
    members: int
    lost: int | None
    is_trouble: bool


def log_entry(event: _engine.RunEvent, machine: Machine) -> RunEvent:
    """Return an entry of the log, with the load of a busy machine if a unit was late."""
    is_late = event.lost is not None and any(reason in event.text for reason in LATE)
    entry = RunEvent(**{field.name: getattr(event, field.name) for field in fields(RunEvent)})
    return replace(entry, text=entry.text + _busy(machine)) if is_late else entry


def report_entry(entry: RunEvent) -> None:
    """Log an entry in the format of this process."""
    level = logging.WARNING if entry.is_trouble else logging.INFO
    level = logging.ERROR if entry.about is About.FAILURE else level
    LOG.log(level, "%s", entry.text, extra={"event": str(entry.about), "unit": entry.lost})


def _busy(machine: Machine) -> str:
    """Return the end of a sentence about a busy machine; empty for an idle one."""
    load, cores = machine.load()
    if load <= cores:
        return ""
    means = f"load {load:.1f} on {plural(cores, 'core')}"
    return f"; {means}: raise measure.fault_timeout on busy machines"
