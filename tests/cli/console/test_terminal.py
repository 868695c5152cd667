"""How numbers and progress are shown to a person."""

import sys
from typing import Annotated

import pytest
from pydantic import BaseModel, PlainSerializer

from daqloom.cli.console import terminal as console
from daqloom.results.result import Result


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    return now


def test_a_short_run_shows_no_progress_and_a_long_one_how_far_it_is(clock, capsys):
    with console.progress("simulating") as show:
        clock[0] = 1.9
        show(0.9)
    assert capsys.readouterr() == ("", "")
    clock[0] = 0.0
    with console.progress("simulating") as show:
        for clock[0], share in [(2.5, 0.1), (3.0, 0.2), (12.0, 0.4), (12.6, 0.5)]:
            show(share)
    output, log = capsys.readouterr()
    assert output == ""
    assert log.splitlines() == ["simulating: 10%", "simulating: 50%"]


def test_a_long_run_on_a_terminal_draws_a_bar_on_standard_error(clock, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with console.progress("simulating") as show:
        clock[0] = 2.5
        show(0.5)
        show(0.75)
    assert capsys.readouterr().out == ""


def test_a_table_shows_no_more_than_a_few_of_many_links(capsys):
    links = {f"access.{n}.down": 0.5 for n in range(32)} | {"access.down": 0.5}
    console.print_result(
        Result(
            scenario="rack",
            scenario_hash="",
            method="simulate",
            metrics={"link_utilisation": links, "drops_by_port": {"access.3.down": 7}},
        )
    )
    shown = capsys.readouterr().out
    assert "link_utilisation.access.down" in shown
    assert "link_utilisation.access.3.down" not in shown
    assert "drops_by_port.access.3.down" in shown


def test_ctrl_c_in_a_serializer_is_an_interruption(capsys):
    class Quantity(BaseModel):
        size: Annotated[int, PlainSerializer(interrupted)] = 5

    with pytest.raises(SystemExit) as ended, console.plain_failures("all is lost"):
        Quantity().model_dump()
    assert ended.value.code == console.INTERRUPTED
    assert capsys.readouterr().err == "daqloom: interrupted; all is lost\n"


def interrupted(_):
    raise KeyboardInterrupt


def test_a_mistake_of_ours_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError), console.plain_failures(""):
        divmod(1, 0)
