"""`daqloom topology follow`: OpenSM's log as it grows, and a run that follows it."""

from __future__ import annotations

import json as json_
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from daqloom.base import lazy
from daqloom.base.line_counts import CountedLines, NotUnderstoodError
from daqloom.base.output import write_text
from daqloom.base.words import plural
from daqloom.cli.console.terminal import note
from daqloom.faults import FaultsError
from daqloom.faults.logs.change import Change
from daqloom.results.errors import MeasureError
from daqloom.results.metrics import for_people

with lazy.imports():
    from daqloom.control import status as control_status
    from daqloom.faults.costs import present
    from daqloom.faults.logs import change as logs_change
    from daqloom.faults.logs import opensm_log, tail
    from daqloom.scenario.schema import models
    from daqloom.topology.formats import lft_text

Found: TypeAlias = "Sequence[tuple[Change, str]]"
Costs: TypeAlias = "dict[str, present.ScheduleCost]"
POLL_S = 0.2
"""Time between two looks at the log (s)."""


def follow(
    scenario: models.Scenario,
    log: Path,
    *,
    mend: bool = False,
    tables: Path | None = None,
    once: bool = False,
    address: str | None = None,
    certificates: Path | None = None,
    json: bool = False,
) -> None:
    """Follow a log: see `daqloom topology follow`, whose options these are."""
    content = logs_change.LogContent()
    links = present.PresentLinks(scenario, content)

    def lines(growing: tail.LogTail) -> Iterator[str]:
        before, is_new = links.outage(), True
        while True:
            yield from growing.lines()
            if counted.number:
                counted.check()
            found = links.change(content.changes)
            content.changes.clear()
            if found or is_new:
                now = links.outage()
                costs = {"before": before.usual, "usual": now.usual, "mended": now.mended}
                if found:
                    _print_changes(found, links.down, costs, json=json)
                if tables:
                    write_text(tables, lft_text.lft_text(now.fabric, now.routes))
                if mend:
                    _reschedule(now, address, certificates)
                before, is_new = now, False
            if once:
                return
            time.sleep(POLL_S)

    with tail.LogTail(log) as growing:
        counted = CountedLines(str(log), lines(growing), opensm_log.SUBJECT, "OpenSM's log")
        try:
            opensm_log.read(counted, content, datetime.now(UTC).year)
        except NotUnderstoodError as error:
            raise FaultsError(str(error)) from None
        finally:
            omitted = {
                "changes without a port, which opensm -D 0x0f names": content.lines[
                    opensm_log.NAMELESS
                ],
                "changes of ports that the network does not have": links.unknown,
                "lines too long": growing.too_long,
            }
            for what, number in omitted.items():
                if number:
                    note(f"{what}: {number:,}")


def _print_changes(found: Found, down: set[str], costs: Costs, *, json: bool) -> None:
    if json:
        changes = [{"at_s": each.at_s, "link": link, "is_up": each.is_up} for each, link in found]
        record = {"schema": 1, "changes": changes, "down": sorted(down)}
        record |= {name: asdict(cost) for name, cost in costs.items()}
        print(json_.dumps(record), flush=True)
        return
    for change, link in found:
        at = datetime.fromtimestamp(change.at_s, UTC)
        print(f"{at:%b %d %H:%M:%S}  {link} is {'up' if change.is_up else 'down'}")
    lines = [f"  {name:6}  {_text(cost)}" for name, cost in costs.items()]
    print(f"  {plural(len(down), 'link')} down", *lines, sep="\n", flush=True)


def _text(cost: present.ScheduleCost) -> str:
    if cost.throughput_bps is None:
        return f"without a path for {plural(cost.flows_lost, 'flow')}"
    rate = for_people("throughput_bps", cost.throughput_bps)
    conflicts = plural(cost.conflicting_phases, "conflicting phase")
    return f"at most {rate}, {conflicts}"


def _reschedule(outage: present.Outage, address: str | None, certificates: Path | None) -> None:
    """Give the mended order to the run; a note has the reason of a refusal."""
    request = control_status.Request(
        command="reschedule", readouts=outage.readouts, builders=outage.builders
    )
    try:
        refusal = control_status.steer(request, address, certificates).refusal
    except MeasureError as error:
        refusal = str(error)
    note(f"the run keeps its schedule: {refusal}" if refusal else "the run takes the schedule")
