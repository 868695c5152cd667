"""`daqloom faults cost`: a scenario and a log in, tables, JSON, a figure and a page out."""

import json
from pathlib import Path

import pytest

from daqloom.deployment.scenarios import load
from daqloom.faults.costs.loss import cost
from daqloom.faults.costs.network import network_of
from daqloom.faults.costs.throughput import Throughput
from daqloom.faults.logs.read import read_logs
from daqloom.faults.statistics.failure import failures_of
from daqloom.faults.statistics.summary import MERGED, variants
from daqloom.report.faults import cost_figure
from daqloom.report.figure import Line
from daqloom.study.run.cable_failures import throughputs
from daqloom.study.store.store import Store
from support.command import commands
from support.figures import marks

run = commands("faults", "cost").run
SCENARIO = """
[event]
fragment_size = "100 B"
packing = 2048
fragment_sizes = "fixed"
rate = "0 Hz"
[building]
protocol = "shift"
[readout]
units = 8
streams = 1
[network]
technology = "infiniband"
shape = "fat-tree"
leaves = 2
spines = 2
spine_links = 2
hosts_per_leaf = 4
routing = "d-mod-k"
switch.radix = 8
[run]
duration = "300 us"
warmup = "100 us"
"""
LOG = """begin,end,link
2024-03-01T00:00,2024-03-01T06:00,leaf00 port 5
2024-03-01T03:00,2024-03-01T09:00,spine01 port 1
2024-03-01T12:00,2024-03-01T18:00,H01-00
2024-03-02T00:00,2024-03-02T01:00,leaf07 port 5
2024-03-03T00:00,2024-03-03T12:00,leaf01 port 6
2024-03-10T23:00,2024-03-11T00:00,leaf01 port 6
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cost")
    (path / "tree.toml").write_text(SCENARIO)
    (path / "log.csv").write_text(LOG)
    return path


@pytest.fixture
def usual(folder: Path) -> list[str]:
    """All tests share a store."""
    return [
        str(folder / "tree.toml"), "--log", str(folder / "log.csv"), "--draws", "2",
        "--store", str(folder / "store"), "--workers", "1",
    ]  # fmt: skip


def test_tables_list_broken_links_losses_and_remedies(usual: list[str]) -> None:
    told = run(*usual)
    rows = {" ".join(line[:58].split("  ")[0].split()): line for line in told.splitlines()}
    # leaf - spine 6 + 6 + 12 + 1 h in 10 days; a month has 30.
    assert rows["leaf - spine"].split()[3:] == ["8", "4", "12", "6.25", "h", "1.04", "d"]
    assert rows["host link"].split()[2:6] == ["8", "1", "3", "6"]
    assert rows["0"].split()[1:3] == ["90.8", "%"]  # all but 6 + 3 + 12 + 1 of 240 h
    assert rows["1"].split()[1:3] == ["7.92", "%"]
    assert "mean of 2 draws" in rows["1"]
    assert rows["2"].split()[1:3] == ["1.25", "%"]
    for name in ("as it is", "no barrier", "builder-paced, no barrier", "D-mod-K around broken"):
        assert any(line.startswith(name) for line in told.splitlines()), name
    assert "repaired within 6 h (the median)" in rows
    assert any(line.startswith("network.routing = mended ") for line in told.splitlines())
    assert "the 4 worst links without failures" in rows
    assert "leaf01 port 6 - spine00 port 4" in told
    assert "1 change was of ports that the network does not have" in told
    assert "note: while a cable is broken, tables are those of minimal:balanced" in told


def test_json_is_one_object_equal_to_the_python_record(usual: list[str], folder: Path) -> None:
    told = json.loads(run(*usual, "--repair", "30 min", "--json", "-q"))
    assert told["schema"] == 1
    assert told["scenario"] == "tree"
    assert told["unpaired"] == {"unknown port": 1}
    assert [each["broken"] for each in told["broken_at_once"]] == [0, 1, 2]
    assert sum(each["time"]["value"] for each in told["broken_at_once"]) == pytest.approx(1)
    lost = told["lost"]["hours"]
    assert lost["low"] <= lost["value"] <= lost["high"]
    assert sum(each["hours_lost"] for each in told["kinds"]) == pytest.approx(lost["value"])
    assert sum(each["hours_lost"] for each in told["worst_links"]) == pytest.approx(lost["value"])
    assert told["mended"]["hours_lost"]["value"] == pytest.approx(0)
    assert (
        told["repaired_within"][0]["time_s"] == 600 or told["repaired_within"][0]["time_s"] == 1800
    )
    system = load(folder / "tree.toml")
    network = network_of(system)
    found = failures_of(read_logs([folder / "log.csv"]), network.links)
    month = variants(found, [], 60, len(network.links.names))[MERGED]
    reached, _ = throughputs(system, (1, 2), 2, store=folder / "store")
    assert cost(month, network, reached).ways[0].hours_lost.value == lost["value"]


@pytest.mark.parametrize("command", ["cost", "draw"])
def test_a_log_of_another_network_is_refused(folder: Path, command: str) -> None:
    """Two networks number their leaves alike, so some ports of the log exist in both."""
    rows = [f"2024-03-0{day}T00:00,2024-03-0{day}T06:00,leaf07 port {day}" for day in range(1, 6)]
    other = folder / f"{command}.csv"
    other.write_text("\n".join([*LOG.splitlines(), *rows]) + "\n")
    # leaf00, spine01, H01-00 and leaf01 are known; leaf07 with ports 1 to 5 is not.
    output = ["--compress", "10", "-o", str(folder / "drawn.toml")] if command == "draw" else []
    system = str(folder / "tree.toml")
    said = commands("faults").refused(command, system, "--log", other, *output)
    assert "only 4 of the 9 ports of the logs, and no leaf07 port 5;" in said


def test_stored_results_are_not_simulated_again(usual: list[str], folder: Path) -> None:
    run(*usual, "-q")
    with Store.open(folder / "store", create=False) as store:
        before = len(store)
    run(*usual, "-q", "--seed", "2", "--gap", "5 min")
    with Store.open(folder / "store", create=False) as store:
        assert len(store) == before


def test_test_periods_do_not_count_and_larger_numbers_are_reported(usual: list[str]) -> None:
    both = "2024-03-01T00:00/2024-03-01T10:00"
    told = json.loads(run(*usual, "--test", both, "--as-it-is", "--json", "-q"))
    assert [each["broken"] for each in told["broken_at_once"]] == [0, 1]
    assert told["days"] == pytest.approx(10 - 10 / 24)
    assert list(told["throughput"]) == ["as it is"]
    told = run(*usual, "--failures", "1", "--as-it-is", "-q")
    assert "more than 1" in told
    assert "as with 1" in told
    assert "throughput with more than 1 broken (1.25% of the time, 2 at most)" in told
    told = run(*usual, "--failures", "2", "--as-it-is", "-q")
    assert "interpolated" in told


def test_figures_and_pages_are_written(usual: list[str], tmp_path: Path) -> None:
    for ending in (".png", ".html"):
        run(*usual, "-q", "--figure", str(tmp_path / f"cost{ending}"))
    assert (tmp_path / "cost.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "cost.html").read_text()
    assert page.count('class="figure"') == 5  # panels to zoom and hover
    assert "What would help" in page
    assert "leaf01 port 6 - spine00 port 4" in page


def test_the_figure_has_a_line_for_each_way(folder: Path) -> None:
    system = load(folder / "tree.toml")
    network = network_of(system)
    found = failures_of(read_logs([folder / "log.csv"]), network.links)
    month = variants(found, [], 60, len(network.links.names))[MERGED]
    names = ["as it is", *(f"way {number}" for number in range(7))]
    ways = {name: Throughput({0: (1e12,), 2: (9e11,)}) for name in names}
    panel = cost_figure.figure("tree", cost(month, network, ways)).panels[1]
    assert panel.title == "Throughput left, simulated"
    assert [line.name for line in marks(panel, Line, marker="")] == names


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["small-rack", "--log", "LOG"], 'small-rack has network.shape = "rack", whose cables'),
        (["ib-uniform-64", "--log", "LOG"], 'ib-uniform-64 has building.protocol = "none"'),
        (["nowhere", "--log", "LOG"], 'there is no scenario "nowhere"'),
        (["SCENARIO", "--log", "missing.csv"], "cannot read missing.csv: no such file"),
        (["SCENARIO", "--log", "EMPTY"], "have no failure of a link of this network (16 links)"),
        (["SCENARIO", "--log", "OTHER"], "the network has none of the ports of the logs"),
        (["SCENARIO", "--log", "ONE"], "cover no time outside test periods"),
        (["SCENARIO", "--log", "LOG", "--failures", "9"], "--failures 9: expected numbers"),
        (["SCENARIO", "--log", "LOG", "--failures", "1,x"], "switches, from 1 to 8, such"),
        (["SCENARIO", "--log", "LOG", "--repair", "soon"], "--repair soon is not a time"),
        (["SCENARIO", "--log", "LOG", "--sweep", "3"], "--sweep 3 is not a time"),
        (["SCENARIO", "--log", "LOG", "--figure", "a.jpg"], "--figure a.jpg: the name must end"),
        (["SCENARIO"], "Missing option '--log'"),
    ],
)
def test_mistakes_are_reported_in_one_sentence(arguments, sentence, folder, tmp_path) -> None:
    (tmp_path / "empty.csv").write_text("begin,end,link\n")
    (tmp_path / "other.csv").write_text("begin,end,link\n10,20,rack7 port 1\n")
    (tmp_path / "one.csv").write_text("time,port,state\n10,leaf00 port 5,down\n")
    files = {
        "SCENARIO": folder / "tree.toml",
        "LOG": folder / "log.csv",
        "EMPTY": tmp_path / "empty.csv",
        "OTHER": tmp_path / "other.csv",
        "ONE": tmp_path / "one.csv",
    }
    words = [str(files.get(word, word)) for word in arguments]
    told = run(*words, "--store", str(tmp_path / "store"), code=2)
    assert sentence in told
    assert "Traceback" not in told
    assert not (tmp_path / "store").exists()


def test_a_scenario_file_names_a_network(folder: Path) -> None:
    log = folder / "drawn.csv"
    commands("faults").run("generate", folder / "tree.toml", "-o", log, "--days", "9")
    assert "spine01 port" in log.read_text()
