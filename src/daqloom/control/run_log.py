"""The log of a run: that of the engine's run control, with the load of this machine."""

from dataclasses import dataclass

from daqloom import _engine
from daqloom.base.words import counted
from daqloom.machine.machine import Machine

About = _engine.About
LATE = ("silent for ", "is stuck", "no answer to ")
"""Reasons of a loss that a busy machine can have."""


@dataclass(frozen=True)
class RunEvent:
    """An entry of the log: see that of the engine."""

    time_s: float
    text: str
    about: _engine.About
    phase: _engine.RunPhase
    members: int
    lost: int | None
    is_trouble: bool


def logged(event: _engine.RunEvent, machine: Machine) -> RunEvent:
    """Return an entry of the log; that of a unit which was late on a busy machine names the
    load."""
    is_late = event.lost is not None and any(reason in event.text for reason in LATE)
    return RunEvent(
        time_s=event.time_s,
        text=event.text + (_busy(machine) if is_late else ""),
        about=event.about,
        phase=event.phase,
        members=event.members,
        lost=event.lost,
        is_trouble=event.is_trouble,
    )


def _busy(machine: Machine) -> str:
    """Return the end of a sentence about a busy machine; empty for one that is not."""
    load, cores = machine.load()
    if load <= cores:
        return ""
    means = f"load {load:.1f} on {counted(cores, 'core')}"
    return f"; {means}: raise measure.fault_timeout on busy machines"
