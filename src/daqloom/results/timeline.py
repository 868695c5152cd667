"""Timelines of event building: stages of nodes over time, as series and for ui.perfetto.dev."""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from daqloom.base.output import write_text
from daqloom.deployment.fabric_system import FabricSystem
from daqloom.scenario.schema.building import Building
from daqloom.topology.schedule.slots import DUMMY, hosts_of

Stage = tuple[float, int, int, str]
"""Begin (s), step, node, what it does."""
Collected = tuple[float, float, int, int]
"""Assigned (s), built (s), builder, event."""
Assigned = tuple[float, int, int]
"""Assigned (s), builder, event."""
Sent = tuple[float, float, int, int]
"""Posted (s), arrived (s), source, flow."""
_SILENT = ("entering", "finished")
MOST_KEPT = 200_000
"""Maximum spans or events in a series of a result; the last ones are kept."""


class Span(NamedTuple):
    """A stage of a node from `begin_s` to `end_s`."""

    node: int
    """Index among the nodes with a readout unit, in the order of slots."""
    step: int
    """Number of phases since the start of the run, not restarted with each round."""
    what: str
    """Activity: sending; asking (waits for the builder unit's permission to write); idle (the
    partner's slot is empty); waiting (in a barrier, until the last node enters); releasing
    (afterwards)."""
    to: int
    """The host that is the node's partner in this step, or `DUMMY`."""
    begin_s: float
    end_s: float


Partner = Callable[[int, int], int]
"""Function that returns the host to which a node sends in a step, or `DUMMY` for an empty slot."""


def partner_in_schedule(system: FabricSystem) -> Partner:
    """Return the function for the partners in a schedule that does not change during the run."""
    slot_of = [slot for slot, host in enumerate(system.readouts.tolist()) if host != DUMMY]
    builders = system.builders.tolist()
    return lambda node, step: int(builders[(slot_of[node] + step) % len(builders)])


class Waits(NamedTuple):
    """Nodes awaited in barriers."""

    whom: Mapping[int, frozenset[int]]
    """For each node, all nodes that must enter a barrier before its release, itself included."""
    slack: int
    """Number of phases by which the awaited nodes may be late."""


def barrier_waits(building: Building, groups: Sequence[int], nodes: Collection[int]) -> Waits:
    """Return the nodes for which `nodes` wait; `groups` is `FabricSystem.barrier_groups`."""
    members: dict[int, list[int]] = defaultdict(list)
    for node in sorted(nodes):
        members[groups[node] if groups else 0].append(node)
    whom: dict[int, frozenset[int]] = {}
    for group in members.values():
        if building.barrier == "neighbour":
            follows = zip(group, [*group[1:], group[0]], strict=True)
            whom |= {node: frozenset((node, following)) for node, following in follows}
            if building.keeps_order:
                whom |= {node: frozenset((node,)) for node in group[:-1]}
        else:
            whom |= dict.fromkeys(group, frozenset(group))
    return Waits(whom, building.barrier_slack * building.phases_per_barrier)


def spans(
    stages: Sequence[Stage], end_s: float, nodes: Collection[int], partner: Partner, waits: Waits
) -> list[Span]:
    """Return the stages of all nodes as spans, sorted by end. `stages`, sorted by time, contain the
    beginning of each stage; `nodes` are the participating nodes."""
    in_barrier = (stage for stage in stages if stage[3] == "in_barrier")
    entered_s = {(node, step): begin_s for begin_s, step, node, _ in in_barrier}
    first = min((step for _, step, _, _ in stages), default=0)

    @cache
    def full_s(whom: frozenset[int], step: int) -> float:
        """Return the time when the last node of `whom` entered the barrier after a step."""
        return max(entered_s.get((node, step), end_s) for node in whom)

    rows: list[Span] = []
    last: dict[int, Stage] = {}
    for stage in [*stages, *((end_s, 0, node, "finished") for node in nodes)]:
        if stage[2] in last and last[stage[2]][3] not in _SILENT:
            begin_s, step, node, what = last[stage[2]]
            to = partner(node, step)
            if what == "in_barrier":
                awaited = step - waits.slack
                full = full_s(waits.whom[node], awaited) if awaited >= first else begin_s
                full = min(max(full, begin_s), stage[0])
                rows.append(Span(node, step, "waiting", to, begin_s, full))
                rows.append(Span(node, step, "releasing", to, full, stage[0]))
            else:
                rows.append(Span(node, step, what, to, begin_s, stage[0]))
        last[stage[2]] = stage
    return rows


def phase_columns(found: list[Span], system: FabricSystem) -> dict[str, list[object]]:
    """Return the series `phases`: the fields of `Span`, with names for the node and its partner."""
    names = _names(hosts_of(system.readouts), system)
    kept = found[-MOST_KEPT:]
    return {
        "node": [names[span.node] for span in kept],
        "step": [span.step for span in kept],
        "what": [span.what for span in kept],
        "to": [_partner(span.to, system) for span in kept],
        "begin_s": [span.begin_s for span in kept],
        "end_s": [span.end_s for span in kept],
    }


def event_columns(
    built: list[Collected], under_way: list[Assigned], end_s: float, names: list[str]
) -> dict[str, list[object]]:
    """Return the series `events`: builder, event, time of assignment, and time of completion or end
    of the run."""
    all_of_them = [(*each, True) for each in built]
    all_of_them += [(at_s, end_s, builder, event, False) for at_s, builder, event in under_way]
    kept = all_of_them[-MOST_KEPT:]
    return {
        "builder": [names[builder] for _, _, builder, _, _ in kept],
        "event": [event for _, _, _, event, _ in kept],
        "assigned_s": [assigned_s for assigned_s, *_ in kept],
        "until_s": [until_s for _, until_s, *_ in kept],
        "whole": [whole for *_, whole in kept],
    }


def write_phases(path: Path, found: list[Span], system: FabricSystem) -> None:
    """Write phases of linear shifting for ui.perfetto.dev, a track per node. Raises OutputError."""
    events = _tracks(_names(hosts_of(system.readouts), system))
    events += [_slice(span, system) for span in found]
    _write(path, events)


def write_events(path: Path, built: list[Collected], names: list[str]) -> None:
    """Write the events of DAQPIPE for ui.perfetto.dev, a track per builder unit, from assignment to
    last fragment. Events of a builder unit overlap. Raises OutputError."""
    rows = ((*each, f"event {each[-1]}") for each in built)
    _write(path, _tracks(names) + _overlapping("event", rows))


def _names(hosts: Iterable[int], system: FabricSystem) -> list[str]:
    return [system.fabric.hosts[host].name for host in hosts]


def _partner(to: int, system: FabricSystem) -> str:
    return "dummy" if to == DUMMY else system.fabric.hosts[to].name


def write_messages(path: Path, arrived: list[Sent], hosts: list[str], flows: list[str]) -> None:
    """Write the messages of flows for ui.perfetto.dev, a track per host, from post to arrival.
    Messages of a host overlap. Raises OutputError."""
    rows = ((*each[:3], number, flows[each[3]]) for number, each in enumerate(arrived))
    _write(path, _tracks(hosts) + _overlapping("message", rows))


def _overlapping(
    kind: str, rows: Iterable[tuple[float, float, int, int, str]]
) -> list[dict[str, object]]:
    """Return Perfetto's begin and end events for rows of begin (s), end (s), track, number,
    name."""
    return [
        {
            "ph": phase,
            "ts": 1e6 * at_s,
            "cat": kind,
            "name": name,
            "pid": 1,
            "tid": track,
            "id": id_,
        }
        for begin_s, end_s, track, id_, name in rows
        for phase, at_s in (("b", begin_s), ("e", end_s))
    ]


def _tracks(names: list[str]) -> list[dict[str, object]]:
    head = {"ph": "M", "name": "thread_name", "pid": 1}
    return [head | {"tid": unit, "args": {"name": name}} for unit, name in enumerate(names)]


def _write(path: Path, events: list[dict[str, object]]) -> None:
    write_text(path, json.dumps({"traceEvents": events}))


def _slice(span: Span, system: FabricSystem) -> dict[str, object]:
    return {
        "ph": "X",
        "name": f"to {_partner(span.to, system)}" if span.what == "sending" else span.what,
        "cat": span.what,
        "pid": 1,
        "tid": span.node,
        "ts": 1e6 * span.begin_s,
        "dur": 1e6 * (span.end_s - span.begin_s),
        "args": {"phase": span.step % len(system.readouts), "step": span.step},
    }
