"""A run as a table for terminals of 80 columns or more."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from daqloom.base import lazy
from daqloom.base.words import plural, printable
from daqloom.control.protocol.states import Phase
from daqloom.results.metrics import for_people, with_unit

with lazy.imports():
    from rich import box, console, table
    from rich import text as rich_text

    from daqloom.control import status as control_status


EVENTS_SHOWN = 8
MOST_ROWS = 40
WORST = 10
"""Rows of a run with more units than `MOST_ROWS`."""
COLUMNS = {
    "unit": "",
    "state": "",
    "rate": "event_rate_hz",
    "source": "wait_source",
    "peer": "wait_peer",
    "barrier": "wait_barrier",
    "consumer": "wait_consumer",
    "in": "source_fill",
    "out": "output_fill",
    "lost/s": "lost_hz",
    "disk": "disk_free_bytes",
}
"""Columns and their rates: shares of time in waits, fills of source and output buffers."""


def headline(status: control_status.Status) -> str:
    """Return the state of a run, and its rates, in a few lines."""
    members = sum(unit.member for unit in status.units)
    number = "" if status.number is None else f" {status.number}"
    line = (
        f"{status.scenario}, run{number} {status.run}: {status.phase}, "
        f"{members} of {len(status.units)} units, epoch {status.epoch}, from MEP {status.first_mep}"
    )
    if status.pending:
        line = f"{line}, {status.pending} waits for its hooks or new values"
    return f"{line}: {status.failure}" if status.phase is Phase.ERROR else line


def overview(status: control_status.Status) -> list[str]:
    """Return further lines on a run: times, rates, latency, losses, buffers and disk."""
    rates = status.rates
    elapsed = timedelta(seconds=int(status.time_s))
    lines = []
    if status.began_s:
        began = datetime.fromtimestamp(status.began_s)
        now = began + timedelta(seconds=status.time_s)
        lines.append(f"{now:%Y-%m-%d %H:%M:%S}, {elapsed} since {began:%Y-%m-%d %H:%M:%S}")
    if rates:
        latency = [
            f"{for_people('collection_latency_s.' + name, rates[f'latency_{name}_s'])} {label}"
            for name, label in (("p50", "median"), ("p99", "99 %"), ("max", "most"))
            if f"latency_{name}_s" in rates
        ]
        lines.append(
            f"{for_people('event_rate_hz', rates['event_rate_hz'])}, "
            f"{for_people('throughput_bps', rates['throughput_bps'])}"
            + (f", latency {', '.join(latency)}" if latency else "")
        )
    if status.lost:
        causes = (f"{n:,} {cause.replace('_', ' ')}" for cause, n in status.lost.items())
        lines.append(f"lost until now: {', '.join(causes)}")
    if (free := rates.get("disk_free_bytes")) is not None:
        lines.append(f"least disk space left: {with_unit(free, 'B')}")
    return lines


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return ""
    if name == "event_rate_hz":
        return with_unit(float(f"{value:.3g}"), "Hz")
    if name == "disk_free_bytes":
        return with_unit(float(f"{value:.3g}"), "B")
    if name == "lost_hz":
        return with_unit(float(f"{value:.2g}"), "Hz").removesuffix("Hz").strip() if value else "0"
    return f"{value:.0%}"


def cells_of(unit: control_status.UnitStatus) -> list[str]:
    """Return the texts of a unit's row, as `COLUMNS`."""
    state = str(unit.state) if unit.member else str(unit.standing)
    if unit.is_excluded or unit.is_source_excluded:
        state = "excluded" if unit.is_excluded else f"{state}, no source"
    names = list(COLUMNS.values())[2:]
    return [str(unit.unit), state, *(_cell(name, unit.rates.get(name)) for name in names)]


def unit_table(status: control_status.Status, width: int, most: int = MOST_ROWS) -> console.Group:
    """Return a table with a row per unit, those with trouble first; of many units the worst ones
    and the number of units in each state. Reasons of losses are below it."""
    units = sorted(status.units, key=control_status.trouble)
    rows = units if len(units) <= most else units[: min(WORST, most)]
    cells = [cells_of(unit) for unit in rows]
    kept = [place for place in range(len(COLUMNS)) if place < 3 or any(row[place] for row in cells)]
    widths = [max(map(len, column)) for column in zip(COLUMNS, *cells, strict=True)]
    while len(kept) > 3 and sum(widths[place] + 1 for place in kept) > width:
        kept.pop()
    gap = int(sum(widths[place] + 2 for place in kept) <= width)
    shown = table.Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap, 0, 0)
    )
    for place in kept:
        name = list(COLUMNS)[place]
        justify = "left" if name == "state" else "right"
        shown.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for unit, row in zip(rows, cells, strict=True):
        style = "yellow" if not unit.member or unit.rates.get("lost_hz") else ""
        shown.add_row(*(rich_text.Text(row[place]) for place in kept), style=style)
    parts: list[console.RenderableType] = []
    if len(rows) < len(units):
        states = Counter(cells_of(unit)[1] for unit in units)
        groups = ", ".join(f"{count} {state}" for state, count in states.most_common())
        parts.append(rich_text.Text(f"{groups}; the worst {len(rows)}:"))
    parts.append(shown)
    parts += [
        rich_text.Text(
            f"unit {unit.unit} ({printable(unit.host) or 'no process'}): {printable(unit.reason)}",
            style="yellow",
        )
        for unit in rows
        if unit.reason and not unit.member
    ]
    if left := len(units) - len(rows):
        parts.append(rich_text.Text(f"and {plural(left, 'more unit')}"))
    return console.Group(*parts)


def live_table(
    status: control_status.Status, size: console.ConsoleDimensions, typed: str = "", reply: str = ""
) -> console.Group:
    """Return headline, table of as many units as fit the height of a terminal, last log entries,
    and the command being typed."""
    others = 7 + len(overview(status)) + min(EVENTS_SHOWN, len(status.events)) + 2 * bool(typed)
    most = max(3, min(MOST_ROWS, size.height - others))
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
        *(rich_text.Text(line) for line in overview(status)),
        unit_table(status, size.width, most),
        *(rich_text.Text(line, style="dim") for line in lines),
        *foot,
        *prompt,
    )
