"""The `daqloom compare` command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from daqloom import load
from daqloom.base import lazy
from daqloom.cli.console.columns import print_table
from daqloom.cli.console.terminal import (
    assumptions,
    check_figures,
    end_if_failed,
    print_json,
    progress,
)
from daqloom.cli.options import (
    Json,
    Name,
    Quiet,
    Set,
    figures,
    load_with,
    option,
    with_options,
)
from daqloom.results.result import SCHEMA
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.parts import Parts

with lazy.imports():
    from rich import console as rich_console

    from daqloom import system as daqloom_system
    from daqloom.analyse import resonance
    from daqloom.report.system import methods_figure, methods_table, result_figure
    from daqloom.scenario import quantities
    from daqloom.study.methods import all_methods, same_events


FIGURES = (".png", ".pdf", ".svg")
BESIDE_FIGURES = (*FIGURES, ".html")
DURATION = "20 ms"
"""Default simulated time for a rack; the network is empty at first."""


def compare(
    scenario: Name,
    set_: Set = None,
    duration: Annotated[
        str | None,
        option(
            "TIME",
            f'Rack: simulated time, from an empty network, "{DURATION}" by default. Fabric: '
            "wall-clock time of the measurement, warm-up included.",
        ),
    ] = None,
    methods: Annotated[
        str | None,
        option(
            "LIST",
            'Methods to show side by side: some of "analyse, simulate, measure"; by default '
            "all, except for a rack.",
        ),
    ] = None,
    seed: Annotated[int | None, option("N", "Seed, in place of run.seed.")] = None,
    quiet: Quiet = False,
    figure: Annotated[
        list[Path] | None,
        figures(f"Write a figure: {', '.join(FIGURES)}; for a fabric also .html, with the table"),
    ] = None,
    json: Json = False,
) -> None:
    """Compare the methods and explain why they disagree.

    For pull building over TCP in a rack, prints the peaks by formula and by simulation of the same
    events. Their ratio is divided into the effects of random event spacing and of the network. For
    other systems, and for racks with `measure.lab` or `--methods`, prints one table: the closed
    form, if there is one, the simulation, and the measurement if this machine can run the
    processes.

    \b
    Examples:
      daqloom compare atlas-lab --figure compare.png
      daqloom compare atlas-lab --set event.rate="3 kHz" --duration "100 ms"
      daqloom compare laptop --duration "10 s" --figure laptop.html
      daqloom compare lab-rack
      daqloom compare lhcb-10-percent --methods "analyse, simulate"
      daqloom compare laptop-pull --methods "simulate, measure"
    """
    system = _system(scenario, set_ or (), duration)
    is_incast = Parts.INCAST in system.scenario.parts
    if is_incast and methods is None and not system.scenario.measure.has_lab:
        _rack(system, duration or DURATION, seed, figure or [], quiet=quiet, json=json)
    else:
        _fabric(system, duration, methods, seed, figure or [], quiet=quiet, json=json)


def _system(scenario: str, set_: Sequence[str], duration: str | None) -> daqloom_system.System:
    """Return the system to compare. One that is invalid by itself may be valid with --duration."""
    try:
        return load(scenario, set_)
    except ScenarioError:
        return load_with(scenario, set_, {"measure.duration": duration})


def _fabric(
    system: daqloom_system.System,
    duration: str | None,
    methods: str | None,
    seed: int | None,
    drawn: Sequence[Path],
    *,
    quiet: bool,
    json: bool,
) -> None:
    check_figures(drawn, BESIDE_FIGURES)
    system = with_options(system, {"run.seed": seed, "measure.duration": duration})
    chosen = (
        all_methods.usual_methods(system.scenario)
        if methods is None
        else all_methods.chosen_methods(methods)
    )
    with progress(f"simulating {system.name}", quiet=quiet) as simulating:  # noqa: SIM117
        with progress(f"measuring {system.name}", quiet=quiet) as measuring:
            comparison = system.run_methods(
                chosen, simulated=simulating, measured=lambda how: measuring(how.share)
            )
    if json:
        record = {"schema": SCHEMA, "results": [result.to_dict() for result in comparison.results]}
        print_json(record | ({"failure": str(comparison.failure)} if comparison.failure else {}))
    else:
        _print_methods(comparison)
        if methods is None and len(chosen) < len(all_methods.METHODS):
            left = ", ".join(sorted(set(all_methods.METHODS) - set(chosen)))
            print(f"Left out: {left}; --methods selects the methods to run.")
    for figure in drawn:
        methods_figure.write(figure, comparison)
        if not json:
            print(f"\n{figure}  the methods side by side")
    if comparison.failure:
        raise comparison.failure
    end_if_failed(*comparison.results)


def _print_methods(found: all_methods.MethodResults) -> None:
    console = rich_console.Console(highlight=False)
    console.print(methods_table.title(found), style="bold", markup=False)
    print_table(methods_table.head(found), methods_table.rows(found))
    for sentence in methods_table.verdict(found):
        console.print(sentence, markup=False)
    for result in found.results:
        for warning in result.warnings:
            console.print(f"note, {result.method}: {warning}", markup=False)
    if found.results[0].assumed:
        console.print(assumptions(found.results[0]), markup=False)


def _rack(
    system: daqloom_system.System,
    duration: str,
    seed: int | None,
    drawn: Sequence[Path],
    *,
    quiet: bool,
    json: bool,
) -> None:
    check_figures(drawn, FIGURES)
    try:
        duration_s = float(quantities.TIME.parse(duration))
    except ValueError as error:
        raise ScenarioError(f'--duration = "{duration}" {error}') from None
    chosen = system.scenario.run.seed if seed is None else seed
    with progress(f"simulating {system.name}", quiet=quiet) as show:
        found = system.on_same_events(duration_s, seed=chosen, progress=show)
    if json:
        print_json(_record(found, system, duration_s))
    else:
        _print_peaks(found.regular_peak, found.formula_peak, found.simulated_peak)
        for sentence in resonance.resonating(system.scenario, found.simulated):
            print(f"note: {sentence}")
    for figure in drawn:
        event = (
            f"{system.scenario.event.size / 1e6:g} MB at {system.scenario.event.rate / 1e3:g} kHz"
        )
        result_figure.write_comparison(figure, f"{system.name}: {event}", found)


def _record(
    comparison: same_events.Comparison, system: daqloom_system.System, duration_s: float
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "scenario": system.name,
        "scenario_hash": system.scenario.hash(),
        "seed": comparison.simulated.seed,
        "version": comparison.simulated.version,
        "commit": comparison.simulated.commit,
        "duration_s": duration_s,
        "formula_regular_peak_bytes": comparison.regular_peak,
        "formula_peak_bytes": comparison.formula_peak,
        "simulated_peak_bytes": comparison.simulated_peak,
        "arrivals_factor": comparison.arrivals_factor,
        "network_factor": comparison.network_factor,
        "warnings": resonance.resonating(system.scenario, comparison.simulated),
    }


def _print_peaks(regular: float, formula: float, simulated: float) -> None:
    rows = (
        ("formula, regular events", regular, None),
        ("formula, these events", formula, ("their spacing", formula / regular)),
        ("simulation, these events", simulated, ("the network", simulated / formula)),
    )
    print("peak buffer occupancy of the top-of-rack switch")
    for name, peak, factor in rows:
        why = "" if factor is None else f"   × {factor[1]:.3f} by {factor[0]}"
        print(f"  {name:<26}{peak / 1e6:9.3f} MB{why}")
