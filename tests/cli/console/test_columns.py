"""Tables for terminals: whatever the width, no number is cut."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from daqloom.cli.console.columns import UNLIMITED, print_list, print_table, tables, width_of
from daqloom.cli.console.terminal import fail
from support.command import invoke

HEAD = ["event rate", "load", "formula (kB)", "simulation (kB)", "verdict"]
ROWS = [
    ["12 kHz", "37 %", "1,234.5", "2,345.6", "the methods agree within ten per cent"],
    ["120 kHz", "–", "12,345.6", "–", "saturated"],
]


def drawn(head: list[str], rows: list[list[str]], width: int, **more: object) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    for table in tables(head, rows, width, **more):  # type: ignore[arg-type]
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def has(cell: str, lines: list[str]) -> bool:
    return any(re.search(rf"(?<!\S){re.escape(cell)}(?!\S)", line) for line in lines)


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("width", [24, 40, 60, 80, 200])
def test_a_table_keeps_its_width_and_every_number_whole(width: int, framed: bool) -> None:
    lines = drawn(HEAD, ROWS, width, words=[4], framed=framed)
    assert max(map(len, lines)) <= width
    for row in ROWS:
        for cell in row[:4]:
            assert has(cell, lines)
        for word in row[4].split():
            assert any(word in line for line in lines)


def test_columns_that_fit_are_one_table() -> None:
    wide = len(tables(HEAD, ROWS, 100, words=[4]))
    narrow = drawn(HEAD, ROWS, 40, words=[4])
    assert wide == 1
    # The name of a row stands in each of the tables that the columns are spread over.
    assert sum("120 kHz" in line for line in narrow) == len(tables(HEAD, ROWS, 40, words=[4])) > 1


NUMBERS = st.integers(0, 10**9).map("{:,}".format)


@given(
    st.lists(st.lists(NUMBERS, min_size=6, max_size=6), min_size=1, max_size=4), st.integers(34, 99)
)
def test_numbers_of_any_length_stay_whole(numbers: list[list[str]], width: int) -> None:
    rows = [[f"row {place}", *row] for place, row in enumerate(numbers)]
    lines = drawn(["", *"abcdef"], rows, width)
    assert max(map(len, lines)) <= width
    assert all(has(cell, lines) for row in rows for cell in row)


def test_the_width_is_of_the_environment_or_unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    assert width_of(Console(file=io.StringIO())) == UNLIMITED
    assert len(drawn(HEAD, ROWS, UNLIMITED, words=[4])) == 2 + len(ROWS)
    monkeypatch.delenv("COLUMNS", raising=False)
    assert width_of(Console(file=io.StringIO())) == UNLIMITED
    monkeypatch.setenv("COLUMNS", "120")
    assert width_of(Console(file=io.StringIO())) == 120


@pytest.mark.parametrize("columns", ["60", "80"])
@pytest.mark.parametrize(
    "command",
    [
        ["analyse", "atlas-lab"],
        ["analyse", "lhcb-10-percent"],
        ["simulate", "small-rack", "--duration", "200 ms"],
        ["compare", "laptop", "--methods", "analyse, simulate"],
        ["scenarios"],
        ["study", "list"],
        ["topology", "list"],
    ],
    ids=" ".join,
)
def test_no_command_cuts_a_number(
    command: list[str], columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("FORCE_COLOR", "1")  # which rich takes for a terminal
    narrow = re.sub(r"\x1b\[[0-9;]*m", "", invoke(*command).stdout)
    monkeypatch.delenv("FORCE_COLOR")
    wide = invoke(*command).stdout
    assert max(map(len, narrow.splitlines())) <= int(columns)
    numbers = re.compile(r"[0-9][0-9.,]*(?= |$)", re.MULTILINE)
    volatile = re.compile(r".*(CPU time|peak memory).*\n")
    assert sorted(numbers.findall(volatile.sub("", narrow))) == sorted(
        numbers.findall(volatile.sub("", wide))
    )
    assert "…" not in narrow


def test_no_control_character_reaches_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    red = "\x1b[31mswp1\x07\x9b2J"
    print_table([red, "b"], [[red, "1"]])
    print_list({red: red})
    with pytest.raises(SystemExit):
        fail(f"{red}: no such port\nsecond line", 2)
    told = capsys.readouterr()
    for text in (told.out, told.err):
        assert "\\x1b[31mswp1\\x07\\x9b2J" in text
        assert not {"\x1b", "\x07", "\x9b"} & set(text)
    assert told.err.splitlines()[1] == "second line"
