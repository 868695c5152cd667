"""A run as a table for terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daqloom.cli.console.columns import tables
from daqloom.control.states import Phase, Standing

if TYPE_CHECKING:
    from rich.console import Group

    from daqloom.control.status import Status, UnitStatus

EVENTS_SHOWN = 8
MOST_ROWS = 40


def headline(status: Status) -> str:
    """Return the state of a run in one line."""
    members = sum(unit.member for unit in status.units)
    line = (
        f"{status.scenario}, run {status.run}: {status.phase}, "
        f"{members} of {len(status.units)} units, epoch {status.epoch}, from MEP {status.first_mep}"
    )
    return f"{line}: {status.failure}" if status.phase is Phase.ERROR else line


def unit_table(status: Status, width: int) -> Group:
    """A row per unit: those that are not well first, if there are too many."""
    from rich.console import Group
    from rich.text import Text

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
    rows = sorted(status.units, key=lambda unit: (_is_well(unit), unit.unit))[:MOST_ROWS]
    for unit in sorted(rows, key=lambda unit: unit.unit):
        counted = unit.counted
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
        styles.append("" if _is_well(unit) else "yellow")
    words = [1, 2, 3, len(head) - 1]
    shown = tables(head, cells, width, words=words, framed=True, styles=styles)
    left = len(status.units) - len(rows)
    return Group(*shown, *([Text(f"{left} more units, all in order")] if left else []))


def live_table(status: Status, width: int, typed: str = "", said: str = "") -> Group:
    """Headline, units, the last entries of the log; what is being typed."""
    from rich.console import Group
    from rich.text import Text

    lines = [f"{time_s:9.2f} s  {text}" for time_s, text in status.events[-EVENTS_SHOWN:]]
    refused = [f"{name}: {count}" for name, count in status.counts.items() if "." in name]
    foot = [Text("  ".join(refused), style="red")] if refused else []
    prompt = [Text(said, style="dim"), Text(f"> {typed}", style="bold")] if typed else []
    return Group(
        Text(headline(status), style="bold"),
        unit_table(status, width),
        *(Text(line, style="dim") for line in lines),
        *foot,
        *prompt,
    )


def _is_well(unit: UnitStatus) -> bool:
    return unit.member
