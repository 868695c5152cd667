"""`daqloom topology follow`."""

import json
import shutil
from types import SimpleNamespace

import pytest

from daqloom.cli.console import follow as console_follow
from daqloom.control import status as status_module
from daqloom.deployment.scenarios import load
from daqloom.results.errors import MeasureError
from daqloom.scenario.dumps import shipped_fabrics
from daqloom.topology.formats.load import load_fabric
from support.command import commands
from support.ibsim import entries
from support.repository import DATA

_, _, printed, _, refused = commands("topology", "follow")
STATE = "[1] 0x02 -> osm_spst_rcv_process: Switch {} port {} changed state from {} to {}"
DOWN, UP = ("ACTIVE", "DOWN"), ("DOWN", "ACTIVE")
LOGS = DATA / "faults"
LEAF = "0x0000000000200000"
"""GUID of leaf00 in the shipped fabric fattree72, whose port 19 leads to spine00 port 1."""
DUMPS = """
name = "imported"
[building]
protocol = "shift"
[network]
technology = "infiniband"
shape = "imported"
dumps = "fattree72"
"""
TREE = """
name = "tree"
[building]
protocol = "shift"
dummies = "none"
[readout]
units = 12
[network]
technology = "infiniband"
shape = "fat-tree"
leaves = 2
spines = 2
spine_links = 3
hosts_per_leaf = 6
switch.radix = 12
links.rate = "25 Gb/s"
"""
"""Twelve nodes on two leaves, with six cables up from each: ports 7 to 12."""


def line(second, port, states, switch="leaf00"):
    return f"Nov 25 18:54:{second:02} 250000 " + STATE.format(switch, port, *states)


@pytest.fixture
def files(tmp_path):
    """A scenario and a log in which a cable fails and comes back, and another one fails."""
    (tmp_path / "mine.toml").write_text(TREE)
    lines = [line(1, 7, DOWN), line(2, 7, UP), line(3, 8, DOWN), line(4, 99, DOWN)]
    (tmp_path / "opensm.log").write_text("\n".join([*lines, line(5, 9, DOWN)]))
    return tmp_path / "mine.toml", tmp_path / "opensm.log"


@pytest.fixture
def requests(monkeypatch):
    """Requests to a run, and the refusals of the next ones."""
    found, refusals = [], []

    def steer(request, address, certificates=None):
        found.append((request, address))
        if refusals:
            raise MeasureError(refusals.pop())
        return SimpleNamespace(refusal="")

    monkeypatch.setattr(status_module, "steer", steer)
    return found, refusals


def test_changes_and_costs_are_printed(files):
    """The last line is not complete. Twelve hosts receive at most at the
    rate of their cables, also by the mended schedule (tests/faults/costs/test_present.py)."""
    text = printed(*files, "--once")
    head, *_ = text.splitlines()
    assert head == "Nov 25 18:54:01  leaf00 port 7 - spine00 port 1 is down"
    assert "leaf00 port 7 - spine00 port 1 is up" in text
    assert "  1 link down\n  before  at most 300 Gb/s, 0 conflicting phases\n" in text
    assert text.endswith("  mended  at most 300 Gb/s, 0 conflicting phases\n")
    found = json.loads(printed(*files, "--once", "--json"))
    assert [each["is_up"] for each in found["changes"]] == [False, True, False]
    assert found["down"] == ["leaf00 port 8 - spine00 port 2"]
    assert found["before"]["throughput_bps"] == pytest.approx(12 * 25e9)
    assert found["usual"]["conflicting_phases"] > 0
    assert found["mended"]["conflicting_phases"] == 0


def test_a_growing_log_mends_a_run_at_each_change(files, requests, monkeypatch):
    """The third look ends the command, as Ctrl-C does."""
    scenario, log = files
    sent, refusals = requests
    refusals.append("no run")
    grown = iter(["\n" + line(6, 8, UP) + "\n" + line(7, 9, UP), "\n"])

    def grow(_):
        with log.open("a") as file:
            if (more := next(grown, "")) == "":
                raise KeyboardInterrupt
            file.write(more)

    monkeypatch.setattr(console_follow.time, "sleep", grow)
    with pytest.raises(KeyboardInterrupt):
        console_follow.follow(load(str(scenario)), log, mend=True, address="host:1")
    orders = [request for request, address in sent if address == "host:1"]
    assert [each.command for each in orders] == ["reschedule"] * len(sent)
    assert len(orders) == 3
    assert sorted(each for each in orders[0].builders if each >= 0) == list(range(12))
    assert orders[0].builders != orders[0].readouts
    assert orders[2].builders == orders[2].readouts == tuple(range(12))


def test_an_unreadable_log_or_another_protocol_is_one_sentence(files, tmp_path):
    scenario, log = files
    assert "cannot read" in refused(scenario, tmp_path / "absent", "--once")
    assert "has no schedule to mend" in refused("atlas-lab", log, "--once")
    log.write_text("no log of OpenSM\n")
    assert "1 of 1 line were not understood" in refused(scenario, log, "--once")


def test_mended_tables_have_no_entry_over_the_broken_cable(files):
    scenario, log = files
    scenario.write_text(DUMPS)
    log.write_text(line(1, 20, DOWN, LEAF) + "\n")
    tables = log.with_name("mended.lft")
    printed(scenario, log, "--once", "--tables", tables)
    fabric = load_fabric(shipped_fabrics()["fattree72"])[0]
    ours = entries(tables.read_text())
    assert len(ours) == 6 * (72 + 6)
    assert 20 not in {port for (guid, _), port in ours.items() if guid == LEAF}
    assert f"{fabric.switches[0].guid:#018x}" == LEAF


def test_the_log_of_a_real_opensm_names_links_of_the_network(tmp_path):
    """tests/support/data/faults/README.md lists the cables that were taken out and put back. The
    log names a host by the GUID of its adapter, and the network by that of its port."""
    (tmp_path / "dumps").mkdir()
    shutil.copy(LOGS / "ibnetdiscover.txt", tmp_path / "dumps")
    scenario = tmp_path / "mine.toml"
    scenario.write_text(DUMPS.replace('"fattree72"', json.dumps(str(tmp_path / "dumps"))))
    text = printed(scenario, LOGS / "opensm-debug.log", "--once")
    changes = [each.split("  ")[1] for each in text.splitlines() if each[0] == "N"]
    assert changes[:4] == [
        "leaf1 port 3 - spine0 port 3 is down",
        "leaf1 port 3 - spine0 port 3 is up",
        "leaf1 port 2 - host3 is down",
        "leaf1 port 2 - host3 is up",
    ]
    states = [each.rpartition(" ")[2] for each in changes[4:]]
    assert states == ["down", "down", "up", "up", "down", "up"]
    assert text.splitlines()[-4] == "  0 links down"
