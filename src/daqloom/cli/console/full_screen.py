"""`daqloom control top`: a run in a full-screen table of the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, RichLog, Static

from daqloom.cli.console.run import COLUMNS, cells_of, headline, overview
from daqloom.control.status import Status, UnitStatus, trouble
from daqloom.results.errors import MeasureError

PERIOD_S = 1.0
NAMES = (*COLUMNS, "host", "pid", "last loss")


class Top(App[None]):
    """Table of the units of a run, whose status `read` returns."""

    CSS = "Static {height: auto; padding: 0 1} DataTable {height: 1fr} RichLog {height: 12}"
    BINDINGS: ClassVar[list[BindingType]] = [
        ("q", "quit", "Quit"),
        Binding("left", "sort(-1)", "Sort left", priority=True),
        Binding("right", "sort(1)", "Sort right", priority=True),
        ("r", "reverse", "Reverse"),
        ("t", "trouble", "Trouble first"),
        ("l", "log", "Log"),
    ]

    def __init__(self, read: Callable[[], Status]) -> None:
        super().__init__()
        self._read = read
        self.status: Status | None = None
        self.column = -1
        """Column to sort by; -1: trouble first."""
        self.is_reversed = False

    def compose(self) -> ComposeResult:
        """See `App`."""
        yield Static(id="head", markup=False)
        yield DataTable(cursor_type="row")
        yield RichLog(markup=False, wrap=True)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to follow the run."""
        self.query_one(RichLog).display = False
        self._follow()
        self.set_interval(PERIOD_S, self._follow)

    @work(thread=True, exclusive=True)
    def _follow(self) -> None:
        try:
            status = self._read()
        except MeasureError as error:
            self.call_from_thread(self._fail, str(error))
        else:
            self.call_from_thread(self.show, status)

    def _fail(self, reason: str) -> None:
        self.query_one("#head", Static).update(Text(reason, style="red"))

    def show(self, status: Status) -> None:
        """Show a status."""
        self.status = status
        self.query_one("#head", Static).update(
            Text("\n".join([headline(status), *overview(status)]))
        )
        table = self.query_one(DataTable)
        row, scroll = table.cursor_row, table.scroll_y
        table.clear(columns=True)
        for place, name in enumerate(NAMES):
            mark = (" ▲" if self.is_reversed else " ▼") if place == self.column else ""
            table.add_column(name + mark)
        for unit in self.sorted_units():
            cells = [*cells_of(unit), unit.host, str(unit.pid or ""), unit.reason]
            style = "" if unit.member else "yellow"
            table.add_row(*(Text(cell, style=style) for cell in cells))
        table.move_cursor(row=row)
        table.scroll_to(y=scroll, animate=False)
        log = self.query_one(RichLog)
        log.clear()
        for time_s, text in status.events:
            log.write(f"{time_s:9.2f} s  {text}")

    def sorted_units(self) -> list[UnitStatus]:
        """Return the units in the order of the table."""
        units = sorted(self.status.units if self.status else (), key=trouble)
        if self.column >= 0:
            units.sort(key=self._value, reverse=not self.is_reversed)
        return units

    def _value(self, unit: UnitStatus) -> tuple[float, str]:
        name = NAMES[self.column]
        if name == "unit":
            return float(-unit.unit), ""
        if rate := COLUMNS.get(name):
            return unit.rates.get(rate, -1.0), ""
        texts = {"state": cells_of(unit)[1], "host": unit.host, "last loss": unit.reason}
        return float(unit.pid if name == "pid" else 0), texts.get(name, "")

    def _again(self) -> None:
        if self.status:
            self.show(self.status)

    def action_sort(self, by: int) -> None:
        """Sort by the next column on a side."""
        self.column = (self.column + 1 + by) % (len(NAMES) + 1) - 1
        self._again()

    def action_reverse(self) -> None:
        """Reverse the order."""
        self.is_reversed = not self.is_reversed
        self._again()

    def action_trouble(self) -> None:
        """Sort units with trouble first."""
        self.column = -1
        self._again()

    def action_log(self) -> None:
        """Show or hide the log."""
        log = self.query_one(RichLog)
        log.display = not log.display
