"""The methods beside each other: a table, and what parts them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from daqloom.measure.told import checked, fates
from daqloom.metrics import for_people
from daqloom.report import style
from daqloom.scenario.quantities import RATE
from daqloom.topology.system import fabric_system

if TYPE_CHECKING:
    from rich.table import Table

    from daqloom.result import Result
    from daqloom.study.beside import Beside

NOTHING = "–"
ROWS = {
    "event_rate_hz": "events built, per second",
    "event_rate_bound_hz": "  at most, with any barrier",
    "throughput_bps": "payload built",
    "node_throughput_bps": "payload pushed by a node",
    "phase_s": "length of a phase",
    "barrier_share": "time in barriers",
    "barrier_s": "one barrier",
    "barrier_s.waiting": "  until the slowest is there",
    "barrier_s.releasing": "  from then on",
    "idle_share": "time with a dummy's turn",
    "waiting_share.source": "asleep for the source",
    "waiting_share.builder": "asleep for a builder",
    "waiting_share.network": "asleep for writes",
    "collection_latency_s.mean": "an event takes, mean",
    "collection_latency_s.p50": "an event takes, median",
    "collection_latency_s.p99": "an event takes, 99 %",
    "write_latency_s.mean": "a write takes, mean",
    "link_utilisation.host.up": "host links busy",
    "events_built": "events built",
    "events_incomplete": "events incomplete",
    "events_discarded": "events discarded",
    "events_checked": "events checked, each byte",
    "events_wrong": "events wrong",
    "events_repeated": "events given out twice",
    "units_lost": "units lost",
}
"""Metrics that mean the same whichever method gives them, and their names for people."""


def head(found: Beside) -> list[str]:
    """Names of the columns."""
    return ["", *(result.method for result in found.results)]


def rows(found: Beside) -> list[list[str]]:
    """Cells as text; a dash where a method cannot give the number."""
    told = [["time counted", *(_counted(found, result) for result in found.results)]]
    for path, label in ROWS.items():
        values = [value_of(result, path) for result in found.results]
        known = [value for value in values if value is not None]
        if not known or (path.partition(".")[0].endswith("share") and not any(known)):
            continue
        cells = [NOTHING if value is None else for_people(path, value) for value in values]
        told.append([label, *cells])
    return told


def value_of(result: Result, path: str) -> float | None:
    """A metric of the table; a barrier is the sum of its parts where only these are known."""
    if path != "barrier_s":
        return result.metric(path)
    whole = result.metric("barrier_s.whole")
    if whole is not None:
        return whole
    parts = [result.metric(f"barrier_s.{part}") for part in ("waiting", "releasing")]
    return sum(part for part in parts if part is not None) if any(parts) else None


def table(found: Beside) -> Table:
    """The same for a terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    shown = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
    )
    for index, name in enumerate(head(found)):
        shown.add_column(name, justify="right" if index else "left", no_wrap=True)
    for row in rows(found):
        shown.add_row(*row)
    return shown


def title(found: Beside) -> str:
    """Of the table, the figure and the page."""
    scenario = found.scenario
    return scenario.title or scenario.name


def verdict(found: Beside) -> Iterator[str]:
    """What the numbers mean, one sentence each."""
    system = fabric_system(found.scenario)
    analysed, simulated, measured = (found.of(name) for name in ("analyse", "simulate", "measure"))
    links = f"{system.nodes} nodes at {RATE.format(found.scenario.fabric.rate)} each"
    if analysed and simulated:
        yield (
            f"Analysis and simulation speak of the links of the fabric, {links}, and of hosts that "
            "take no time to make and check data"
            f"{_ratio(simulated, 'simulation', analysed, 'closed form')}."
        )
    elif simulated or analysed:
        one = "Simulation speaks" if simulated else "Analysis speaks"
        yield (
            f"{one} of the links of the fabric, {links}, and of hosts that take no time to make "
            "and check data."
        )
    if measured is None:
        return
    reference, named = (simulated, "simulation") if simulated else (analysed, "closed form")
    units, cores = (int(measured.engine[name]) for name in ("units", "cores"))
    yield (
        f"The measurement speaks of {_machines(found)}: {_work(found, units, cores)}"
        f"{_ratio(measured, 'measurement', reference, named) if reference else ''}."
    )
    if (
        units > cores
        and found.scenario.measure.launch == "local"
        and value_of(measured, "barrier_s")
    ):
        yield (
            f"A measured barrier waits until each of the {units} units has had its turn on a core: "
            "it tells of the system's scheduler, not of the barrier."
        )
    yield from checked(measured)
    yield from fates(measured)


def _machines(found: Beside) -> str:
    measure = found.scenario.measure
    if measure.launch == "local":
        return "this machine, its memory and its cores"
    return "the machines that it ran on, and of what lies between them"


def _work(found: Beside, units: int, cores: int) -> str:
    measure = found.scenario.measure
    way = (
        "copy fragments from one process's memory into another's"
        if measure.transport == "shm"
        else f"send fragments over {measure.transport}"
    )
    works = [way]
    if measure.source == "generator" and measure.content == "every":
        works.insert(0, "make every fragment")
    if measure.sink == "check":
        works.append("check every byte")
    if measure.sink == "file":
        works.append("write files")
    listed = works[0] if len(works) == 1 else f"{', '.join(works[:-1])} and {works[-1]}"
    where = f" on {cores} cores" if measure.launch == "local" else ""
    return f"{units} units{where} {listed}"


def _ratio(one: Result, named: str, other: Result, other_named: str) -> str:
    mine, theirs = one.metric("event_rate_hz"), other.metric("event_rate_hz")
    if not mine or not theirs:
        return ""
    return f"; the {named} builds {mine / theirs:.3g} of what the {other_named} does"


def _counted(found: Beside, result: Result) -> str:
    """How long the events that a method counts took; a closed form holds for the long run."""
    run = found.scenario.run
    if result.method == "analyse":
        return NOTHING
    if result.method == "simulate":
        return f"{style.seconds(run.duration - run.warmup)}, virtual"
    rate, events = result.metric("event_rate_hz"), result.metric("events_built")
    return f"{style.seconds(events / rate)}, real" if rate and events else NOTHING
