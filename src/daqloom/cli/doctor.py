"""`daqloom doctor`: what this machine lacks for event building."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from daqloom.cli import complete
from daqloom.cli.console.terminal import FAILED, print_json
from daqloom.cli.options import Set, argument, flag

if TYPE_CHECKING:
    from daqloom.machine.doctor import Finding


def doctor(
    scenario: Annotated[
        str | None,
        argument(
            "[SCENARIO]",
            "Scenario whose needs are checked, too; a name or a file.",
            autocompletion=complete.scenarios,
        ),
    ] = None,
    set_: Set = None,
    json: Annotated[
        bool, flag("Print the findings as a JSON list and nothing else.", "--json")
    ] = False,
) -> None:
    """Check this machine for event building, and say how to fix what is missing.

    Reads /proc and /sys, changes nothing. Exit code 1: a requirement of event building is not met.

    \b
    Examples:
      daqloom doctor
      daqloom doctor laptop --set readout.units=16
    """
    from daqloom.machine.doctor import examine, transports_here
    from daqloom.machine.machine import Machine
    from daqloom.measure.needs import needs_of
    from daqloom.measure.run import of_a_fabric
    from daqloom.topology.system.scenarios import load

    needs = needs_of(of_a_fabric(load(scenario, set_ or ()))) if scenario else None
    found = examine(Machine(), transports_here(), needs)
    print_json([asdict(finding) for finding in found]) if json else _print(found)
    if any(finding.state == "fail" for finding in found):
        raise typer.Exit(FAILED)


def _print(found: list[Finding]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    colours = {"ok": "green", "warn": "yellow", "fail": "red"}
    for finding in found:
        state = Text(f"{finding.state:<5}", style=colours[finding.state])
        console.print(state + Text(f"{finding.check}: ", style="bold") + Text(finding.means))
        if finding.fix:
            console.print(Text(f"     → {finding.fix}"))
