"""The full-screen table of a run, driven by its keys."""

import pytest
from textual.widgets import DataTable, RichLog, Static

from daqloom.cli.console import full_screen
from daqloom.cli.console.full_screen import NAMES, Top
from daqloom.control.protocol.states import Goal, Phase, Standing, State
from daqloom.control.status import Status, UnitStatus
from daqloom.results.errors import MeasureError


@pytest.fixture(autouse=True)
def read_once(monkeypatch):
    monkeypatch.setattr(full_screen, "PERIOD_S", 1e6)


def status(*rates: float, lost: int = -1) -> Status:
    units = [
        UnitStatus(
            unit=number,
            standing=Standing.LOST if number == lost else Standing.AVAILABLE,
            state=State.RUNNING,
            member=number != lost,
            host=f"node{number}",
            pid=1000 + number,
            reason="silent for 1.0 s" if number == lost else "",
            rates={"event_rate_hz": rate, "wait_barrier": 0.5},
        )
        for number, rate in enumerate(rates)
    ]
    return Status(
        run="ab",
        scenario="laptop\x1b[2J",
        time_s=1.0,
        phase=Phase.RUNNING,
        goal=Goal.RUNNING,
        epoch=1,
        first_mep=0,
        failure="",
        units=tuple(units),
        events=((1.0, "unit 1 is lost: [b]x"),),
        counts={},
    )


def shown(app: Top, column: int = 0) -> list[str]:
    table = app.query_one(DataTable)
    return [str(table.get_row_at(row)[column]) for row in range(table.row_count)]


async def test_units_are_sorted_by_trouble_and_by_the_columns_that_keys_choose():
    app = Top(lambda: status(10.0, 30.0, 20.0, lost=2))
    async with app.run_test(size=(100, 30)) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert shown(app) == ["2", "0", "1"]
        await pilot.press("right", "right", "right")  # unit, state, rate
        assert NAMES[app.column] == "rate"
        assert shown(app) == ["1", "2", "0"]
        await pilot.press("r")
        assert shown(app) == ["0", "2", "1"]
        await pilot.press("left", "left")
        assert (NAMES[app.column], shown(app)) == ("unit", ["2", "1", "0"])
        await pilot.press("t")
        assert shown(app)[0] == "2"
        assert shown(app, NAMES.index("last loss"))[0] == "silent for 1.0 s"
        await pilot.press("left")
        assert NAMES[app.column] == "last loss"


async def test_the_log_opens_and_new_statuses_are_shown():
    readings = iter([status(10.0), status(20.0, 5.0)])
    app = Top(lambda: next(readings))
    async with app.run_test(size=(80, 24)) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert shown(app, NAMES.index("rate")) == ["10 Hz"]
        assert not app.query_one(RichLog).display
        await pilot.press("l")
        assert app.query_one(RichLog).display
        app.show(next(readings))
        await pilot.pause()
        assert sorted(shown(app)) == ["0", "1"]
        await pilot.press("q")
    assert app.return_code == 0


async def test_a_run_control_that_does_not_answer_is_named():
    def fails() -> Status:
        raise MeasureError("you have no run on this machine")

    app = Top(fails)
    async with app.run_test() as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "you have no run" in str(app.query_one("#head", Static).render())


async def test_a_large_run_is_a_table_to_scroll():
    app = Top(lambda: status(*range(324)))
    async with app.run_test(size=(80, 24)) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert len(shown(app)) == 324
