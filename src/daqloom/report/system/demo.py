"""Demonstration: the buffer that the ATLAS rack needs, by formula and by simulation.

A first simulation has a few milliseconds of regular events, for which the formula is exact. Others
have the scenario's own arrivals with three switches, of which one is also run with an older TCP.
They run in parallel threads, one per core at most, as the engine releases the interpreter's lock.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING

from daqloom.analyse.system import System
from daqloom.base import extras, lazy
from daqloom.base.output import write_text
from daqloom.deployment.scenarios import load, override
from daqloom.report import matplotlib_renderer
from daqloom.report.system import buffer_figure
from daqloom.report.system import buffer_table as comparison
from daqloom.report.system.buffer_answer import answer
from daqloom.report.system.buffer_question import (
    DEEP,
    SHALLOW,
    SHALLOW_PLAIN_TCP,
    UNLIMITED,
    BufferQuestion,
    Regular,
    Run,
    Switch,
    regular_events,
)
from daqloom.results.errors import MeasureError
from daqloom.results.result import Result
from daqloom.scenario.errors import ScenarioError
from daqloom.study.methods import methods

with lazy.imports():
    from rich import progress as bars

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from daqloom.scenario import Scenario

SCENARIO = "atlas-lab"
OPERATING_POINT = {
    "event.size": "5 MB",
    "event.rate": "12 kHz",
    # The run has 4 200 events after the warm-up, which reach the saturated peak many times. The
    # warm-up is longer than the first timeouts of 200 ms.
    "run.duration": "0.6 s",
    "run.warmup": "0.25 s",
}
SWITCHES = (UNLIMITED, SHALLOW, SHALLOW_PLAIN_TCP, DEEP)
MEASURED_S = 2.0
"""Duration of the measurement (s)."""
PICTURE_S = 3e-3
"""Duration (s) of the regular run; its occupancy repeats after event size / link rate = 1.7 ms."""


class StoppedError(Exception):
    """Signal to a simulation's thread to end, after Ctrl-C."""


def run(
    output: Path,
    console: Console,
    overrides: Mapping[str, str] | None = None,
    *,
    measured: str = "laptop",
) -> BufferQuestion:
    """Run all methods, print a table and the answer, and write figures and results into the
    directory `output`. `overrides` change scenario keys, such as `{"run.duration": "1 s"}` for a
    shorter run. `measured` is the scenario that real processes build. Raises `OutputError` if files
    cannot be written."""
    scenario = load(SCENARIO, OPERATING_POINT | dict(overrides or {}))
    analysis = methods.analyse(scenario)
    with _progress(console) as progress:
        regular = _regular(scenario, progress)
        longest_first = (SHALLOW, DEEP, UNLIMITED, SHALLOW_PLAIN_TCP)
        runs = _simulate_all(scenario, longest_first, progress)
        built = _measure(measured, _bar(progress, "real event builder"))
    question = BufferQuestion(
        scenario, analysis, regular, tuple(runs[switch] for switch in SWITCHES), built
    )
    _write(question, output)
    _print(question, output, console)
    return question


def _measure(name: str, progress: Callable[[float], None]) -> Result | str:
    """Build events with real processes on this machine for MEASURED_S. Return the reason if they
    cannot run."""
    scenario = load(name, {"measure.duration": f"{MEASURED_S:g} s"})
    try:
        extras.require("live")
        return methods.measure(scenario, progress=lambda how: progress(how.share))
    except (extras.MissingExtraError, MeasureError, ScenarioError) as error:
        return str(error)


def _regular(scenario: Scenario, progress: Progress) -> Regular:
    """Simulate periodic events with TCP windows of a whole reply, as the formula assumes."""
    system = System(scenario)
    reply = max(max(system.fragments_bytes), scenario.mss)
    periodic = override(
        scenario,
        {
            "event.arrivals": "deterministic",
            "transport.congestion": "static",
            "transport.static_window": f"{reply} B",
            "run.duration": f"{PICTURE_S} s",
            "run.warmup": "0 s",
        },
    )
    simulated = methods.simulate(periodic, progress=_bar(progress, "regular events"))
    return regular_events(periodic, PICTURE_S, simulated)


def _simulate_all(
    scenario: Scenario, switches: tuple[Switch, ...], progress: Progress
) -> dict[Switch, Run]:
    """Simulate all switches with the scenario's own arrivals, in parallel on several cores."""
    stop = threading.Event()

    def simulate(switch: Switch, report: Callable[[float], None]) -> Run:
        def report_or_end(share: float) -> None:
            if stop.is_set():
                raise StoppedError
            report(share)

        model = {"network.switch.tor.model": switch.model}
        system = override(scenario, model | dict(switch.transport))
        return Run(switch, methods.simulate(system, progress=report_or_end))

    workers = min(len(switches), cores())
    with ThreadPoolExecutor(workers) as pool:
        try:
            jobs = [
                pool.submit(simulate, switch, _bar(progress, switch.label)) for switch in switches
            ]
            runs = [job.result() for job in as_completed(jobs)]
            return {run.switch: run for run in runs}
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def _progress(console: Console) -> Progress:
    return bars.Progress(
        bars.TextColumn("{task.description:<29}"),
        bars.BarColumn(),
        bars.TextColumn("{task.percentage:>3.0f} %"),
        bars.TimeElapsedColumn(),
        console=console,
    )


def _bar(progress: Progress, name: str) -> Callable[[float], None]:
    """Return a progress callback: it moves a bar on a terminal, else prints a line per quarter."""
    if progress.console.is_terminal:
        bar = progress.add_task(name, total=1.0, start=False)

        def advance(share: float) -> None:
            if not progress.tasks[bar].started:
                progress.start_task(bar)
            progress.update(bar, completed=share)

        return advance
    quarters = 0

    def print_quarter(share: float) -> None:
        nonlocal quarters
        if int(4 * share) > quarters:
            progress.console.print(f"{name}: {share:.0%} done")
            quarters = int(4 * share)

    return print_quarter


def _write(question: BufferQuestion, output: Path) -> None:
    if extras.is_installed("figures"):
        matplotlib_renderer.save(buffer_figure.figure(question), output / "figure.png")
        write_text(output / "figure.html", buffer_figure.render(question))
    of_runs = (run.result for run in question.runs)
    results = [question.analysis, question.regular.result, *of_runs, question.measured]
    records = [result.to_dict(series=True) for result in results if isinstance(result, Result)]
    write_text(output / "results.json", json.dumps(records, default=lambda array: array.tolist()))


def _print(question: BufferQuestion, output: Path, console: Console) -> None:
    console.print(comparison.table(question))
    for sentence in comparison.verdict(question):
        console.print(sentence)
    console.print()
    for sentence in answer(question):
        console.print(sentence, highlight=False, markup=False)
    console.print()
    figures = [
        ("figure.png", "the figure"),
        ("figure.html", "the answer and the figures as a page; opens in any browser, offline"),
    ]
    drawn = extras.is_installed("figures")
    if not drawn:
        sentence = f"No figures were drawn: {extras.MissingExtraError('matplotlib')}"
        console.print(sentence, highlight=False, markup=False, soft_wrap=True)
    for name, meaning in (*figures * drawn, ("results.json", "all numbers and curves")):
        line = f"{output / name!s:<28} {meaning}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)
