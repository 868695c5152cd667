"""A run as a table for terminals."""

from __future__ import annotations

from daqloom.base import lazy
from daqloom.cli.console.columns import tables
from daqloom.control.protocol.states import Phase, Standing

with lazy.imports():
    from rich import console
    from rich import text as rich_text

    from daqloom.control import status as control_status


EVENTS_SHOWN = 8
MOST_ROWS = 40


def headline(status: control_status.Status) -> str:
    """Return the state of a run in one line."""
    members = sum(unit.member for unit in status.units)
    line = (
        f"{status.scenario}, run {status.run}: {status.phase}, "
        f"{members} of {len(status.units)} units, epoch {status.epoch}, from MEP {status.first_mep}"
    )
    return f"{line}: {status.failure}" if status.phase is Phase.ERROR else line


def unit_table(status: control_status.Status, width: int) -> console.Group:
    """Return a table with a row per unit; if there are too many, non-members have priority."""
    head = [
        "unit",
        "state",
        "member",
        "host",
        "pid",
        "MEPs",
        "incomplete",
        "discarded",
        "last loss",
    ]
    cells, styles = [], []
    rows = sorted(status.units, key=lambda unit: (unit.member, unit.unit))[:MOST_ROWS]
    for unit in sorted(rows, key=lambda unit: unit.unit):
        counted = unit.engine_counters
        counts = (counted.meps_built, counted.meps_incomplete, counted.meps_discarded)
        cells.append(
            [
                str(unit.unit),
                str(unit.state) if unit.standing is not Standing.ABSENT else "-",
                "yes" if unit.member else str(unit.standing),
                unit.host,
                str(unit.pid or "-"),
                *("-" if count is None else f"{count:,}" for count in counts),
                unit.reason,
            ]
        )
        styles.append("" if unit.member else "yellow")
    words = [1, 2, 3, len(head) - 1]
    shown = tables(head, cells, width, words=words, framed=True, styles=styles)
    left = len(status.units) - len(rows)
    return console.Group(
        *shown, *([rich_text.Text(f"{left} more units, all in order")] if left else [])
    )


def live_table(
    status: control_status.Status, width: int, typed: str = "", reply: str = ""
) -> console.Group:
    """Return headline, table of units, last log entries, and the command being typed."""
    lines = [f"{time_s:9.2f} s  {text}" for time_s, text in status.events[-EVENTS_SHOWN:]]
    refused = [f"{name}: {count}" for name, count in status.counts.items() if "." in name]
    foot = [rich_text.Text("  ".join(refused), style="red")] if refused else []
    prompt = (
        [rich_text.Text(reply, style="dim"), rich_text.Text(f"> {typed}", style="bold")]
        if typed
        else []
    )
    return console.Group(
        rich_text.Text(headline(status), style="bold"),
        unit_table(status, width),
        *(rich_text.Text(line, style="dim") for line in lines),
        *foot,
        *prompt,
    )
