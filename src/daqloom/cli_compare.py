"""The `daqloom compare` command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from daqloom.cli_options import Json, Name, Set
from daqloom.console import check_writable, plain_failures, progress

if TYPE_CHECKING:
    from daqloom.scenario import Scenario
    from daqloom.study.compare import Comparison

FIGURES = (".png", ".pdf", ".svg")


def compare(
    scenario: Name,
    set_: Set = None,
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="Virtual time, from an empty network on.")
    ] = "20 ms",
    seed: Annotated[int | None, typer.Option(metavar="N", help="In place of run.seed.")] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help=f"Both occupancies on one time axis: {', '.join(FIGURES)}."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Say where formula and simulation part, and why.

    Both methods on the very same events: what their random spacing does, and what the network does.

    \b
    Examples:
      daqloom compare atlas-lab --figure parted.png
      daqloom compare atlas-lab --set event.rate="3 kHz" --duration "100 ms"
    """
    with plain_failures():
        if figure:
            check_writable(figure, "--figure", FIGURES)
        from daqloom.scenario import ScenarioError, load
        from daqloom.scenario.quantities import TIME
        from daqloom.study.compare import compare as compare_methods

        system = load(scenario, set_ or ())
        try:
            duration_s = float(TIME.parse(duration))
        except ValueError as error:
            raise ScenarioError(f'--duration = "{duration}" {error}') from None
        chosen = system.run.seed if seed is None else seed
        with progress(f"simulating {system.name}") as show:
            found = compare_methods(system, duration_s, seed=chosen, progress=show)
        if json:
            print(_record(found, system, duration_s))
        else:
            _tell(found.regular_peak, found.formula_peak, found.simulated_peak)
        if figure:
            from daqloom.report.compare_figure import write

            event = f"{system.event.size / 1e6:g} MB at {system.event.rate / 1e3:g} kHz"
            write(figure, f"{system.name}: {event}", found)


def _record(found: Comparison, system: Scenario, duration_s: float) -> str:
    from json import dumps

    from daqloom.result import SCHEMA

    return dumps(
        {
            "schema": SCHEMA,
            "scenario": system.name,
            "scenario_hash": system.hash(),
            "seed": found.simulated.seed,
            "version": found.simulated.version,
            "duration_s": duration_s,
            "formula_regular_peak_bytes": found.regular_peak,
            "formula_peak_bytes": found.formula_peak,
            "simulated_peak_bytes": found.simulated_peak,
            "arrivals_factor": found.arrivals_factor,
            "network_factor": found.network_factor,
        },
        indent=2,
        allow_nan=False,
    )


def _tell(regular: float, formula: float, simulated: float) -> None:
    rows = (
        ("formula, regular events", regular, None),
        ("formula, these events", formula, ("their spacing", formula / regular)),
        ("simulation, these events", simulated, ("the network", simulated / formula)),
    )
    print("most held by the top-of-rack switch")
    for name, peak, factor in rows:
        why = "" if factor is None else f"   × {factor[1]:.3f} by {factor[0]}"
        print(f"  {name:<26}{peak / 1e6:9.3f} MB{why}")
