"""Timelines of event building, for ui.perfetto.dev: a track for each node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from daqloom.output import OutputError, written_whole
from daqloom.simulate.run import SimulationError
from daqloom.topology.schedule import DUMMY

if TYPE_CHECKING:
    from daqloom.topology.system import FabricSystem

Stage = tuple[float, int, int, str]
"""Begin (s), step, node, what it does."""
Collected = tuple[float, float, int, int]
"""Assigned (s), built (s), builder, event."""
_SILENT = ("entering", "finished")


def write_phases(path: Path, stages: list[Stage], end_s: float, system: FabricSystem) -> None:
    """Linear shifting: what every node does in which phase. Raises SimulationError where the file
    cannot be written."""
    slot_of = [slot for slot, host in enumerate(system.slots.tolist()) if host != DUMMY]
    names = [system.fabric.hosts[host].name for host in system.hosts]
    events = _tracks(names)
    last: dict[int, Stage] = {}
    for stage in [*stages, *((end_s, 0, unit, "finished") for unit in range(len(names)))]:
        begun = last.get(stage[2])
        if begun is not None and begun[3] not in _SILENT:
            events.append(_slice(begun, stage[0], slot_of, system))
        last[stage[2]] = stage
    _write(path, events)


def write_events(path: Path, built: list[Collected], names: list[str]) -> None:
    """DAQPIPE: the events that each builder unit collected, several at a time, from assignment to
    last fragment. Raises SimulationError where the file cannot be written."""
    events = _tracks(names)
    for assigned_s, built_s, builder, event in built:
        same = {"cat": "event", "name": f"event {event}", "pid": 1, "tid": builder, "id": event}
        events.append({"ph": "b", "ts": 1e6 * assigned_s, **same})
        events.append({"ph": "e", "ts": 1e6 * built_s, **same})
    _write(path, events)


def _tracks(names: list[str]) -> list[dict[str, object]]:
    return [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": unit, "args": {"name": name}}
        for unit, name in enumerate(names)
    ]


def _write(path: Path, events: list[dict[str, object]]) -> None:
    try:
        with written_whole(path) as scratch:
            scratch.write_text(json.dumps({"traceEvents": events}))
    except OutputError as error:
        raise SimulationError(str(error)) from None


def _slice(
    begun: Stage, end_s: float, slot_of: list[int], system: FabricSystem
) -> dict[str, object]:
    begin_s, step, unit, what = begun
    name = what.replace("_", " ")
    if what == "sending":
        slots = len(system.slots)
        to = int(system.slots[(slot_of[unit] + step) % slots])
        name = f"to {system.fabric.hosts[to].name}"
    return {
        "ph": "X",
        "name": name,
        "cat": what,
        "pid": 1,
        "tid": unit,
        "ts": 1e6 * begin_s,
        "dur": 1e6 * (end_s - begin_s),
        "args": {"phase": step % len(system.slots), "step": step},
    }
