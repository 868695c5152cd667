"""`daqloom faults`: a log in, a table, a figure, a page and files out."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from daqloom.faults.logs.read import read_logs
from daqloom.faults.statistics.dataset import failures_dataset
from daqloom.faults.statistics.failure import Period, failures_of
from daqloom.faults.statistics.links import Links
from daqloom.faults.statistics.summary import variants
from support.command import commands
from support.repository import DATA

run = commands().run
LOGS = DATA / "faults"
LOG = [
    "faults", "log", str(LOGS / "opensm-debug.log"), "--year", "2026", "--network",
    str(LOGS / "ibnetdiscover.txt"),
]  # fmt: skip


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("month") / "month.csv"
    told = run("faults", "generate", "lhcb", "-o", str(path))
    tests = path.with_suffix(".tests.txt")
    assert told == f"{path}: 1933 failures in 31 days; {tests}: test periods\n"
    return path


def test_a_month_is_counted_in_three_ways(month: Path) -> None:
    tests = str(month.with_suffix(".tests.txt"))
    told = run("faults", "log", str(month), "--network", "lhcb", "--tests", tests)
    rows = {line[:28].strip(): line[28:].split() for line in told.splitlines()}
    assert rows["number"][:2] == ["1,933", "1,384"]
    assert rows["cause: performance test"] == ["549", "0", "0"]
    assert "last longer than 10 min" in rows
    assert told.count(" port ") >= 10
    # 28 switches, 360 adapters, and both ends of 720 cables; the last line is that of the log.
    cabling, log = told.splitlines()[-2:]
    assert cabling.startswith("ibnetdiscover.txt: 1,828 lines used, ")
    assert " lines used, " in log


def test_json_is_one_object_that_agrees_with_itself(month: Path) -> None:
    tests = str(month.with_suffix(".tests.txt"))
    told = json.loads(
        run("faults", "log", str(month), "--tests", tests, "--time-out", "30 s", "--json", "-q")
    )
    assert told["schema"] == 1
    assert list(told["variants"]) == ["all", "outside_tests", "flapping_merged"]
    every = told["variants"]["all"]
    assert every["failures"] == sum(each["failures"] for each in every["by_link"]) == 1933
    assert sum(every["by_day"].values()) == sum(every["causes"].values()) == 1933
    assert list(every["outlasting_s"]) == ["30"]
    assert every["dispersion"] is None  # without a network, links that never fail are not known
    assert every["down_s"] == pytest.approx(sum(each["down_s"] for each in every["by_link"]))


def test_files_are_written(tmp_path: Path) -> None:
    made = {ending: tmp_path / f"failures{ending}" for ending in (".png", ".html", ".parquet")}
    run(*LOG, "--figure", str(made[".png"]), "--parquet", str(made[".parquet"]))
    run(*LOG, "--figure", str(made[".html"]))
    assert made[".png"].read_bytes().startswith(b"\x89PNG")
    page = made[".html"].read_text()
    assert "leaf1 port 3 - spine0 port 3" in page
    assert page.count('class="figure"') == 5  # panels to zoom and hover
    table = pd.read_parquet(made[".parquet"])
    assert table["duration"].round().tolist() == [3, 3, 6, 6, 3]
    assert table["link"][0] == "leaf1 port 3 - spine0 port 3"


def test_a_log_without_failures_counts_zero_and_failures_are_a_dataset(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("time,port,state\n")
    told = run("faults", "log", str(log), "--figure", str(tmp_path / "none.png"))
    assert told.split("number")[1].split()[:2] == ["0", "links"]  # and none a day
    assert "all = outside tests = flapping merged" in told
    log = tmp_path / "log.csv"
    log.write_text("begin,end,link,cause\n10,11,a,x\n12,13,a,x\n50,,b,\n100,101,a,x\n")
    kinds = variants(failures_of(read_logs([log]), Links()), [Period(90, 110)], 5)
    found = failures_dataset(kinds)
    assert found.sizes == {"failure": 4}
    assert found["duration"].values.tolist()[:2] == [1, 1]
    assert found["duration"].isnull().values.tolist() == [False, False, True, False]
    assert found["outside_tests"].values.tolist() == [True, True, True, False]
    assert found["flapping_merged"].values.tolist() == [True, False, True, False]
    assert str(found["begin"].values[0]) == "1970-01-01T00:00:10.000000000"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["missing.log"], "cannot read missing.log: no such file or directory"),
        ([str(LOGS / "ibnetdiscover.txt")], "is no supported log; the first line is"),
        ([*LOG[2:], "--gap", "soon"], '--gap soon is not a time; write it such as "30 s"'),
        ([*LOG[2:], "--gap", "5"], '--gap 5 is not a time; write it such as "30 s"'),
        ([*LOG[2:], "--test", "today"], '"today" is not a period; write it as begin/end'),
        ([*LOG[2:], "--figure", "a.jpg"], "--figure a.jpg: the name must end in .png or .pdf"),
        ([*LOG[2:-1], "nowhere"], "nowhere"),
    ],
)
def test_mistakes_are_reported_in_one_sentence(arguments: list[str], sentence: str) -> None:
    told = run("faults", "log", *arguments, code=2)
    assert sentence in told
    assert "Traceback" not in told


def test_ignored_lines_of_a_log_are_reported(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text(
        "time,port,state\n100,leaf9 port 1,down\n10,x,up\nnonsense\n11,leaf0 port 1,down\n"
    )
    told = run("faults", "log", str(log), "--network", str(LOGS / "ibnetdiscover.txt"))
    assert 'malformed and left out, the first is line 4: "nonsense"; expected a time' in told
    assert "2 changes were of ports that the network does not have" in told
    assert "a clock was set back 1 time;" in told
    nameless = run("faults", "log", str(LOGS / "opensm.log"), "--year", "2026")
    assert "host3" in nameless
    assert "count as two links" not in nameless
    twice = run(*LOG[:-2])
    assert "give --network to have them as one" in twice
    assert "count as two links" not in run(*LOG)


def test_links_with_errors_are_listed(tmp_path: Path) -> None:
    dump = tmp_path / "errors.txt"
    dump.write_text(
        'Errors for 0x11 "leaf17"\n'
        "   GUID 0x11 port 21: [SymbolErrorCounter == 1234] [LinkErrorRecoveryCounter == 5]\n"
    )
    shown = run("faults", "log", str(dump), "--quiet")
    assert re.search(r"leaf17 port 21 +1,234 +5\b", shown)
    assert "%" not in shown, "of no failure there is no share"
    recorded = json.loads(run("faults", "log", str(dump), "--quiet", "--json"))
    assert recorded["errors"] == [
        {
            "link": "leaf17 port 21",
            "symbol_errors": 1234,
            "link_error_recoveries": 5,
            "link_downed": 0,
            "counters": {"SymbolErrorCounter": 1234, "LinkErrorRecoveryCounter": 5},
        }
    ]
