"""`daqloom doctor`: checks of this machine's requirements for event building."""

from __future__ import annotations

import json as json_format
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from daqloom.base import lazy
from daqloom.cli import complete
from daqloom.cli.console.columns import print_table
from daqloom.cli.console.terminal import FAILED, print_json
from daqloom.cli.options import Set, argument, flag

with lazy.imports():
    from rich import console as rich_console
    from rich import text

    from daqloom.cli.console import installation
    from daqloom.deployment import scenarios
    from daqloom.machine import doctor as machine_doctor
    from daqloom.machine import findings, machine
    from daqloom.measure import check, hosts
    from daqloom.scenario.schema import models


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
    of_units: Annotated[str | None, typer.Option("--of-units", hidden=True)] = None,
) -> None:
    """Check this machine for event building. List each problem with its fix.

    Reads /proc and /sys, and changes nothing. With a scenario that starts units by ssh or Slurm,
    checks each of its hosts over them. Exit code 1: a requirement of event building is not met.

    \b
    Examples:
      daqloom doctor
      daqloom doctor laptop --set readout.units=16
    """
    if of_units is not None:  # on a host of another machine's scenario
        given = models.Scenario.model_validate(json_format.load(sys.stdin))
        units = [int(unit) for unit in of_units.split(",") if unit]
        found = installation.findings() + hosts.examine_here(given, units)
    elif scenario:
        given = check.check_measurable(scenarios.load(scenario, set_ or ()))
        found = hosts.examine_scenario(given, installation.findings)
    else:
        found = installation.findings(builds=False) + machine_doctor.examine(
            machine.Machine(), machine_doctor.transports_here()
        )
    if json:
        print_json([asdict(finding) for finding in found])
    else:
        _print_hosts(found) if any(finding.host for finding in found) else _print(found)
    if any(finding.state == "fail" for finding in found):
        raise typer.Exit(FAILED)


def _print_hosts(found: list[findings.Finding]) -> None:
    """Print what is wrong, the worst first, with all hosts of equal findings in one row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for each in sorted(found, key=lambda each: (each.state != "fail", each.check)):
        if each.state != "ok":
            row = (each.state, each.check, f"{each.means} {each.fix}")
            rows.setdefault(row, []).append(each.host)
    if rows:
        head = ("state", "hosts", "check", "finding")
        print_table(head, [(row[0], ", ".join(names), *row[1:]) for row, names in rows.items()])
    well = sum(finding.state == "ok" for finding in found)
    print(f"{well} checks of {len({finding.host for finding in found})} hosts found no problem.")


def _print(found: list[findings.Finding]) -> None:
    console = rich_console.Console(highlight=False, soft_wrap=True)
    colours = {"ok": "green", "warn": "yellow", "fail": "red"}
    for finding in found:
        state = text.Text(f"{finding.state:<5}", style=colours[finding.state])
        console.print(
            state + text.Text(f"{finding.check}: ", style="bold") + text.Text(finding.means)
        )
        if finding.fix:
            console.print(text.Text(f"     → {finding.fix}"))
