"""`daqloom doctor`: checks of this machine's requirements for event building."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from daqloom.base import lazy
from daqloom.cli import complete
from daqloom.cli.console.terminal import FAILED, print_json
from daqloom.cli.options import Set, argument, flag

with lazy.imports():
    from rich import console as rich_console
    from rich import text

    from daqloom.cli.console import installation
    from daqloom.deployment import scenarios
    from daqloom.machine import doctor as machine_doctor
    from daqloom.machine import machine
    from daqloom.measure import check, plan


def doctor(
    scenario: Annotated[
        str | None,
        argument(
            "[SCENARIO]",
            "Scenario whose requirements are also checked; a name or a file.",
            autocompletion=complete.scenarios,
        ),
    ] = None,
    set_: Set = None,
    json: Annotated[
        bool, flag("Print the findings as a JSON list and nothing else.", "--json")
    ] = False,
) -> None:
    """Check this machine for event building. List each problem with its fix.

    Reads /proc and /sys, and changes nothing. Exit code 1: a requirement of event building is not
    met.

    \b
    Examples:
      daqloom doctor
      daqloom doctor laptop --set readout.units=16
    """
    needs = (
        plan.needs_of(check.check_measurable(scenarios.load(scenario, set_ or ())))
        if scenario
        else None
    )
    found = installation.findings() + machine_doctor.examine(
        machine.Machine(), machine_doctor.transports_here(), needs
    )
    print_json([asdict(finding) for finding in found]) if json else _print(found)
    if any(finding.state == "fail" for finding in found):
        raise typer.Exit(FAILED)


def _print(found: list[machine_doctor.Finding]) -> None:
    console = rich_console.Console(highlight=False, soft_wrap=True)
    colours = {"ok": "green", "warn": "yellow", "fail": "red"}
    for finding in found:
        state = text.Text(f"{finding.state:<5}", style=colours[finding.state])
        console.print(
            state + text.Text(f"{finding.check}: ", style="bold") + text.Text(finding.means)
        )
        if finding.fix:
            console.print(text.Text(f"     → {finding.fix}"))
