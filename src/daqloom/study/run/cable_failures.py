"""Simulated throughput of a system with broken cables, unchanged and run in other ways."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NamedTuple

from daqloom.deployment.fabric_system import can_mend
from daqloom.deployment.scenarios import override
from daqloom.faults.costs.throughput import Throughput
from daqloom.scenario.schema.models import Scenario
from daqloom.study import StudyError
from daqloom.study.file.load import study_of
from daqloom.study.file.study import Study
from daqloom.study.file.tables import StudyFile
from daqloom.study.run.program import Outcome, Task
from daqloom.study.run.runner import Report, compute
from daqloom.topology import TopologyError
from daqloom.topology.routing.by_name import D_MOD_K, IMPORTED, MENDED
from daqloom.topology.shapes.shape import cable_network

AS_IT_IS = "as it is"
AROUND = "D-mod-K around broken cables"
REORDERED = "network.routing = mended"
"""Name of runs with tables and an order of builder units computed for the working cables."""
MINHOP = "minimal:balanced"
"""Forwarding tables that OpenSM uses instead of D-mod-K if a cable is missing."""
WHILE_BROKEN = f"while a cable is broken, tables are those of {MINHOP} (OpenSM's minhop)"
USUAL_NUMBERS = (1, 3, 5)
MOST_DRAWS = 1000
WAYS: Mapping[str, Mapping[str, Any]] = {
    "no barrier": {"building.barrier": "none"},
    "builder-paced, no barrier": {"building.barrier": "none", "building.pace": "builder"},
}
"""Other ways to run linear shifting: changed keys by name of the way."""


class Point(NamedTuple):
    """One simulation: a way to run the system, number of broken cables, number of the draw."""

    way: str
    broken: int
    draw: int


@dataclass(frozen=True)
class BrokenStudy:
    """A study of the throughput with broken cables."""

    study: Study
    points: tuple[Point, ...]
    """Point for each variant of the study."""
    notes: tuple[str, ...] = field(default=())
    """Sentences on the forwarding tables used with broken cables, and on ways that are left out."""

    def throughputs(
        self, outcomes: Iterable[tuple[Task, Outcome | None]], failures: Mapping[Task, str]
    ) -> tuple[dict[str, Throughput], list[str]]:
        """Return the throughput of each way, and sentences on ways without throughput. Raises
        StudyError if the unchanged system has no throughput."""
        found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        rates: dict[str, float] = {}
        reasons: dict[tuple[str, int], list[str]] = defaultdict(list)
        for task, outcome in outcomes:
            point = self.points[task.index[0]]
            if outcome is None or outcome.run is None:
                reasons[point.way, point.broken].append(failures.get(task, "it was not computed"))
                continue
            throughput_bps, rate_hz = _rates(outcome.run.result.metrics)
            found[point.way][point.broken].append(throughput_bps)
            if not point.broken:
                rates[point.way] = rate_hz
        by_way, notes = {}, []
        numbers = sorted({point.broken for point in self.points})
        for way in dict.fromkeys(point.way for point in self.points):
            missing = [number for number in numbers if not found[way][number]]
            if missing or not found[way][0][0]:
                reason = reasons[way, missing[0]][0] if missing else "its throughput is 0"
                number = missing[0] if missing else 0
                sentence = f'"{way}" has no throughput with {number} broken: {reason}'
                if way == AS_IT_IS:
                    raise StudyError(sentence)
                notes.append(f"{sentence}; it is left out")
                continue
            for number in numbers:
                if failed := reasons[way, number]:
                    draws = len(failed) + len(found[way][number])
                    notes.append(
                        f'"{way}": {len(failed)} of {draws} draws with {number} broken have no '
                        f"throughput and do not count: {failed[0]}"
                    )
            by_number = {number: tuple(found[way][number]) for number in numbers}
            by_way[way] = Throughput(by_number, rates[way])
        return by_way, notes


def broken_study(
    scenario: Scenario, numbers: Sequence[int], draws: int = 3, *, others: bool = True
) -> BrokenStudy:
    """Return a study of the scenario with 0 and with each of `numbers` broken cables, drawn `draws`
    times; with `others` also run in other ways. Raises StudyError, ScenarioError."""
    if not 1 <= draws <= MOST_DRAWS:
        raise StudyError(f"{draws} draws of broken cables: expected 1 to {MOST_DRAWS}")
    variants: dict[str, dict[str, Any]] = {}
    points: list[Point] = []
    breaks = any(numbers)
    notes = list(_table_notes(scenario)) if breaks else []
    for way, (always, broken) in _ways(scenario, others).items():
        own: dict[Point, dict[str, Any]] = {}
        for number in sorted({0, *numbers}):
            for draw in range(draws if number else 1):
                point = Point(way, number, draw)
                own[point] = {**always, "faults.cables": number}
                if number:
                    own[point] |= {**broken, "faults.seed": scenario.faults.seed + draw}
        if way in (AROUND, REORDERED) and not breaks:
            continue
        if way == AROUND and (reason := _unroutable(scenario, own.values())):
            notes.append(f'"{way}" is left out, as some of the draws have no such tables: {reason}')
            continue
        points += own
        for point, changes in own.items():
            variants[f"{way}, {point.broken} broken, draw {point.draw + 1}"] = changes
    file = StudyFile(
        scenario=scenario.name, variants=variants, repeat={"seeds": [scenario.run.seed]}
    )
    study = study_of(scenario, file, f"broken cables in {scenario.name}")
    return BrokenStudy(study, tuple(points), tuple(notes))


def usual_numbers(most: int) -> tuple[int, ...]:
    """Return the numbers of broken cables to simulate for a maximum `most`: those of 1, 3 and 5 up
    to it, and `most` itself if below 5."""
    return tuple(sorted({*(n for n in USUAL_NUMBERS if n <= most), min(most, USUAL_NUMBERS[-1])}))


def _ways(
    scenario: Scenario, others: bool
) -> dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Return for each way its changed keys: those changed always, and only with broken cables."""
    tables = {"network.routing": MINHOP} if _falls_back(scenario) else {}
    ways: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {AS_IT_IS: ({}, tables)}
    if not others:
        return ways
    if scenario.protocol.has_phases and scenario.building.change == "count":
        own = scenario.building
        for name, changes in WAYS.items():
            if any(getattr(own, key.partition(".")[2]) != value for key, value in changes.items()):
                ways[name] = (changes, tables)
    if _falls_back(scenario):
        ways[AROUND] = ({}, {"network.routing": D_MOD_K})
    if can_mend(scenario) and scenario.network.routing != MENDED:
        ways[REORDERED] = ({}, {"network.routing": MENDED})
    return ways


def _table_notes(scenario: Scenario) -> Iterator[str]:
    if _falls_back(scenario):
        yield f"{WHILE_BROKEN}, to which its ftree falls back"
    elif scenario.network.shape == "imported" and scenario.network.routing in ("", IMPORTED):
        yield f"{WHILE_BROKEN}: imported tables do not account for broken cables"


def _falls_back(scenario: Scenario) -> bool:
    """Return whether the tables of the intact network are D-mod-K, like OpenSM's ftree."""
    network = scenario.network
    by_default = not network.routing and network.shape == "fat-tree"
    return network.technology == "infiniband" and (network.routing == D_MOD_K or by_default)


def _unroutable(scenario: Scenario, changes: Iterable[Mapping[str, Any]]) -> str:
    """Return why one of the changed systems has no forwarding tables, "" if all have tables."""
    try:
        for each in changes:
            cable_network(override(scenario, each))
    except TopologyError as error:
        return str(error)
    return ""


def _rates(metrics: Mapping[str, Any]) -> tuple[float, float]:
    """Return throughput and event rate, counted by written fragments if the protocol has this
    metric, which is more accurate in short runs."""
    prefix = "written_" if "written_throughput_bps" in metrics else ""
    rate_hz = metrics.get(f"{prefix}event_rate_hz", 0.0)
    return float(metrics[f"{prefix}throughput_bps"]), float(rate_hz)


def throughputs(
    scenario: Scenario,
    numbers: Sequence[int] = USUAL_NUMBERS,
    draws: int = 3,
    *,
    others: bool = True,
    workers: int = 1,
    store: str | PathLike[str] | None = None,
    report: Report = lambda _: None,
) -> tuple[dict[str, Throughput], list[str]]:
    """Simulate a system with 0 and with each of `numbers` broken cables, unchanged and, with
    `others`, run in other ways. Returns the throughput by way, and sentences on ways without
    throughput. Results are reused from the folder `store`; without it they are not kept. `workers`
    is the number of processes on this machine; 0: one for each core. Raises StudyError."""
    planned = broken_study(scenario, numbers, draws, others=others)
    with compute(planned.study, store, workers, report) as (outcomes, done):
        found, notes = planned.throughputs(outcomes, dict(done.failures))
    return found, [*planned.notes, *notes]
