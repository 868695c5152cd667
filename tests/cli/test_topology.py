"""`daqloom topology`: what it prints, what it writes, and what it says when something is wrong."""

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import get_args

import pytest

from daqloom.scenario.dumps import shipped_fabrics
from daqloom.topology.fabric.anomalies import Kind as AnomalyKind
from daqloom.topology.formats.load import load_fabric
from daqloom.topology.routing.routes import Kind as DefectKind
from support.command import commands
from support.repository import DATA, ROOT

invoke, _, printed, record, refused = commands("topology")
LHCB = ["clos", "--leaves", "18", "--spines", "10", "--links", "2", "--hosts-per-leaf", "20"]

BIG = ["clos", "--leaves", "100", "--spines", "10"]
DEEP = ["clos", "--pods", "40", "--leaves", "20", "--spines", "20", "--cores", "20"]


def test_shipped_fabrics_are_listed_and_their_capacity_is_judged():
    assert printed("list").splitlines() == [
        "cluster64: 64 hosts, 6 switches, 134 cables",
        "fattree72: 72 hosts, 6 switches, 144 cables",
        "lhcb: 360 hosts, 28 switches, 720 cables",
    ]
    for folder in shipped_fabrics().values():
        assert {path.name for path in Path(folder).iterdir()} >= {
            "ibnetdiscover.txt",
            "opensm-lfts.dump",
        }
    shown = record("show", "lhcb")
    assert shown["switches"] == {"leaf": 18, "spine": 10}
    assert [(c["from"], c["to"], c["count"]) for c in shown["cables"]] == [
        ("host", "leaf", 360),
        ("leaf", "spine", 360),
    ]
    assert (shown["full_bisection"], shown["non_blocking"]) == (True, True)
    assert shown["anomalies"] == []
    assert "Cabling: regular" in printed("show", "lhcb")


def test_show_names_irregular_cabling_by_switch_and_port():
    # Damage of the sample: 2 dead links, 3 cable pairs swapped, 8 hosts missing.
    text = printed("show", "cluster64")
    assert "Cabling: 2 missing links, 3 swaps of cables, 8 missing hosts" in text
    assert text.count("swapped") == 3
    assert "leaf00 port 29 has no cable" in text
    assert "leaf00 ports 3, 16 have no host" in text
    assert "leaf01 ports 8-9, 17 have no host" in text
    assert "leaf02 port 16 has no host" in text
    assert "flows may still share a cable" in text
    kinds = [anomaly["kind"] for anomaly in record("show", "cluster64")["anomalies"]]
    assert kinds == ["missing link"] * 2 + ["swapped cables"] * 3 + ["missing host"] * 8


@pytest.mark.parametrize("command", ["show", "check"])
def test_the_lines_of_each_file_are_counted(tmp_path, command):
    """Devices and ports are used, comments ignored, and what is neither is malformed."""
    source = shipped_fabrics()["fattree72"]
    shutil.copytree(source, tmp_path / "mine")
    cabling = tmp_path / "mine" / "ibnetdiscover.txt"
    lines = cabling.read_text().splitlines()
    used = sum(line.startswith(("[", "Switch", "Ca")) for line in lines)
    cabling.write_text("\n".join([*lines, "not a line of it"]))
    text = printed(command, tmp_path / "mine")
    told = f"ibnetdiscover.txt: {used:,} lines used, {len(lines) - used:,} ignored, 1 malformed\n"
    assert told in text
    assert ("opensm-lfts.dump: " in text) == (command == "check")
    counts = record(command, tmp_path / "mine")["lines"]["ibnetdiscover.txt"]
    assert counts == {"used": used, "ignored": len(lines) - used, "malformed": 1}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("leaf-spine-lldp", "10 files: 33 lines used, 20 ignored, 0 malformed"),
        ("cluster64-opensm-subnet.lst", "cluster64-opensm-subnet.lst: 268 lines used, 0 ignored"),
    ],
)
def test_tables_of_neighbours_and_lists_are_counted(name, said):
    assert said in printed("show", DATA / name)


def test_entries_of_a_list_by_hand_are_counted(tmp_path):
    file = tmp_path / "mine.json"
    printed("draw", *LHCB, "-o", file)
    # 360 hosts, 28 switches, 720 cables.
    assert "mine.json: 1,108 entries used, 0 ignored, 0 malformed\n" in printed("show", file)
    assert "used" not in printed("show", *LHCB)


def test_show_needs_no_tables(tmp_path):
    folder = tmp_path / "mine"
    shutil.copytree(shipped_fabrics()["cluster64"], folder)
    (folder / "opensm-lfts.dump").write_text("nonsense\n")
    assert record("show", folder)["hosts"] == 64
    assert "line 1: cannot read" in refused("check", folder)
    assert record("check", folder, "--routing", "d-mod-k")["pairs_lost"] == 0


def test_show_names_the_switches_that_block():
    shown = record("show", "clos", "--leaves", 3, "--spines", 1, "--hosts-per-leaf", 4)
    assert (shown["full_bisection"], shown["non_blocking"]) == (False, False)
    rate = 200 * 10**9
    assert shown["blocking_switches"][0] == {
        "switch": "leaf00",
        "down_bps": 4 * rate,
        "up_bps": rate,
    }
    text = printed("show", "clos", "--leaves", 3, "--spines", 1, "--hosts-per-leaf", 4)
    assert "leaf00: 800 Gb/s from below, 200 Gb/s to other switches" in text


def test_check_prints_routes_cabling_schedule_suggestions_in_this_order():
    text = printed("check", "cluster64")
    parts = [text.index(part) for part in ("Routes:", "Cabling:", "Schedule:", "Suggestions:")]
    assert parts == sorted(parts)
    assert "leaf00 port 29 has no cable" in text
    assert "… and 1 more; `daqloom topology show` has all" in text
    found, shown = record("check", "cluster64"), record("show", "cluster64")
    assert found["anomalies"] == shown["anomalies"]


def test_check_reports_that_no_order_clears_all_conflicts():
    text = printed("check", "clos", "--leaves", 3, "--spines", 1, "--hosts-per-leaf", 4)
    assert "the fabric has no full bisection" in text
    assert "the fabric has no full bisection" not in printed("check", "cluster64")
    assert "no other node order is better" in printed("check", "cluster64")
    assert "none clears all conflicts" in printed("check", "cluster64", "--order", "shuffle:0")
    text = printed("check", "lhcb")
    assert "all 129,240 pairs connected, no loop" in text  # 360 · 359
    assert "phases in conflict    0 of 360" in text
    assert "Suggestions" not in text


def test_check_finds_conflicts_and_an_order_without_them(tmp_path):
    arguments = ["check", "lhcb", "--order", "shuffle:1"]
    found = record(*arguments)
    schedule = found["schedule"]
    assert (schedule["phases"], schedule["conflicting_phases"]) == (360, 359)
    assert len(schedule["worst_flows_per_phase"]) == 360
    assert max(schedule["worst_flows_per_phase"]) == schedule["worst_flows"]
    assert sum(schedule["links_per_flows"][2:]) == sum(c["phases"] for c in schedule["conflicts"])
    [first, *_] = found["suggestions"]
    assert (first["conflicting_phases"], first["dummies"], first["rate_share"]) == (0, 0, 1.0)

    better = tmp_path / "better.txt"
    text = printed(*arguments, "-o", better)
    assert "359 of 360" in text
    assert "1. leaf after leaf, by port: no conflict, 0 dummies" in text
    assert better.read_text().split() == first["order"]
    assert record("check", "lhcb", "--order", better)["schedule"]["conflicting_phases"] == 0


def test_dummies_take_the_slots_of_missing_hosts():
    without = record("check", *LHCB, "--hosts", 342)["schedule"]
    assert (without["phases"], without["dummies"]) == (342, 0)
    assert without["conflicting_phases"] > 0
    filled = record("check", *LHCB, "--hosts", 342, "--dummies")["schedule"]
    assert (filled["phases"], filled["dummies"]) == (360, 18)
    assert filled["conflicting_phases"] == 0
    assert filled["rate_share"] == pytest.approx(342 / 360)
    assert filled["order"].count(None) == 18


@pytest.mark.parametrize("routing", ["imported", "d-mod-k", "minimal", "minimal:modulo"])
def test_the_routing_can_be_chosen(routing):
    found = record("check", "lhcb", "--routing", routing)
    assert found["routing"] == routing
    assert found["pairs_lost"] == 0
    assert found["schedule"]["conflicting_phases"] == 0


def test_check_names_lost_pairs_and_where(tmp_path):
    folder = tmp_path / "damaged"
    shutil.copytree(shipped_fabrics()["fattree72"], folder)
    tables = folder / "opensm-lfts.dump"
    lines = tables.read_text().splitlines(keepends=True)
    # The first switch of the dump forgets a host that is on another leaf.
    lines.remove(next(line for line in lines if "'H03-05'" in line))
    tables.write_text("".join(lines))
    found = record("check", folder)
    [defect] = found["defects"]
    assert (defect["kind"], defect["destinations"]) == ("no route", ["H03-05"])
    assert defect["sentence"] == (
        f"opensm-lfts.dump, line 1: {defect['switch']} has no route to H03-05"
    )
    assert found["pairs_lost"] == defect["pairs"] == 18  # the hosts of that leaf
    assert found["schedule"]["flows_lost"] == 18
    assert found["schedule"]["rate_share"] is None
    text = printed("check", folder)
    assert "18 of 5,112 pairs lost" in text
    assert "unknown: some flows have no route" in text


def test_check_names_the_line_of_a_table_that_loops(tmp_path):
    folder = tmp_path / "looping"
    shutil.copytree(shipped_fabrics()["fattree72"], folder)
    tables = folder / "opensm-lfts.dump"
    fabric, _, _ = load_fabric(folder)
    leaf, spine = (
        next(place for place, node in enumerate(fabric.nodes) if node.name == name)
        for name in ("leaf00", "spine00")
    )
    up, back = (
        next(end.port for end, peer in fabric.peers.items() if (end.node, peer.node) == way)
        for way in ((leaf, spine), (spine, leaf))
    )
    # leaf00 sends packets for H03-05 to spine00, and that one sends them back.
    lines, switch, at = tables.read_text().splitlines(), "", {}
    for number, line in enumerate(lines):
        switch = line.split("'")[1] if line.startswith("Unicast") else switch
        if "'H03-05'" in line:
            at[switch] = number
    for name, port in (("leaf00", up), ("spine00", back)):
        words = lines[at[name]].split(" ")
        lines[at[name]] = " ".join([words[0], f"{port:03d}", *words[2:]])
    tables.write_text("\n".join(lines) + "\n")
    defects = record("check", folder)["defects"]
    assert [defect["kind"] for defect in defects] == ["loop"]
    assert defects[0]["sentence"] == (
        f"opensm-lfts.dump, line {at['leaf00'] + 1}: packets to H03-05 loop: "
        f"leaf00 port {up}, spine00 port {back}"
    )
    assert record("check", folder, "--routing", "minimal")["defects"] == []


def test_route_names_each_node_and_its_ports():
    lines = printed("route", *LHCB, "H00-00", "H05-07").splitlines()
    # p = 7: spine 7, link 0. leaf00 port 20 + 2·7 + 1 = 35, spine07 port 2·5 + 1 = 11.
    assert lines[0] == "H00-00 → H05-07: 4 cables; routing d-mod-k"
    assert [line.split() for line in lines[3:]] == [
        ["H00-00", "1"],
        ["leaf00", "1", "35"],
        ["spine07", "1", "11"],
        ["leaf05", "35", "8"],
        ["H05-07", "1"],
    ]
    found = record("route", *LHCB, "H00-00", "H05-07")
    assert found["hops"][1] == {"node": "leaf00", "in_port": 1, "out_port": 35}
    assert found["hops"][0]["in_port"] is None


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "dot", "json"])
def test_draw_writes_the_format_of_the_file_ending(tmp_path, ending):
    file = tmp_path / "new" / f"fabric.{ending}"
    assert printed("draw", "cluster64", "-o", file) == f"{file}\n"
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "dot": b"graph", "json": b"{"}
    assert file.read_bytes().startswith(begins[ending])
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_drawing_is_dot_or_a_fabric_again_as_json(tmp_path):
    file = tmp_path / "mine.json"
    printed("draw", *LHCB, "-o", file)
    assert record("show", file)["switches"] == {"leaf": 18, "spine": 10}
    assert record("check", file)["schedule"]["conflicting_phases"] == 0
    text = printed("draw", "fattree72", "--each-host")
    assert text.startswith('graph "fattree72" {')
    assert "H03-17" in text


def test_networks_are_described_by_options_or_the_name_of_a_scenario():
    shape = ["--pods", 2, "--leaves", 2, "--spines", 2, "--cores", 2, "--hosts-per-leaf", 2]
    shown = record("show", "clos", *shape, "--rate", "EDR")
    assert shown["switches"] == {"leaf": 4, "spine": 4, "core": 4}
    assert shown["cables"][0]["rate_bps"] == 100 * 10**9
    assert "696 hosts" in printed("show", "atlas-farm")
    assert "0 of 342" in printed("check", "lhcb-ethernet")
    hops = printed("route", "atlas-farm", "readout.1", "builder.40")
    assert "core.1" in hops
    assert "tor.1" in hops


@pytest.mark.parametrize("command", ["list", "show", "check", "draw", "route"])
def test_help_explains_every_command(command):
    text = printed(command, "--help")
    assert command in text
    if command != "list":
        assert f"daqloom topology {command} " in text  # an example


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["show", "lhcp"], 'did you mean "lhcb"?'),
        (["show", "/"], "has none of ibnetdiscover.txt"),
        (["show", "/dev/null"], "/dev/null"),
        (["show", "lhcb", "--leaves", 4], "--leaves describes a parametric fabric"),
        (["show", "clos", "--leaves", 4], "clos needs --spines"),
        (["show", "clos", "--leaves", 0, "--spines", 1, "--hosts-per-leaf", 1], "0 leaves"),
        (["show", *LHCB, "--radix", 36], "a leaf needs 40 ports, and its radix is 36"),
        (
            ["show", *LHCB, "--rate", "fast"],
            "--rate fast is not a quantity; write it as a rate such as",
        ),
        (["show", *LHCB, "--cores", 2], "three levels require both pods and cores"),
        (["check", "lhcb", "--routing", "ftree"], 'routing "ftree" is not known'),
        (["check", *LHCB, "--routing", "imported"], "comes without forwarding tables"),
        (["check", "lhcb", "--order", "shuffle:x"], "expected a whole number, such as shuffle:1"),
        (["check", "lhcb", "--order", "missing.txt"], "missing.txt cannot be read"),
        (["check", "lhcb", "--order", __file__], ", line 1: there is no host"),
        (["check", *LHCB, "--hosts", 0], "has no hosts, which a schedule requires"),
        (["check", *BIG, "--hosts-per-leaf", 100], "a schedule of 10000 slots; at most 8192"),
        (["check", *DEEP, "--hosts-per-leaf", 20], "2000 switches × 16000 hosts, are larger than"),
        (["check", "lhcb", "-o", "/proc/x"], "--output /proc/x cannot be written"),
        (["route", "lhcb", "H00-0", "H00-01"], 'no host "H00-0" in lhcb; did you mean "H'),
        (["draw", "lhcb", "-o", "fabric.txt"], "the name must end in .dot or .json"),
    ],
)
def test_bad_input_is_one_sentence(arguments, reason):
    assert reason in refused(*arguments)


def test_parts_that_the_import_leaves_out_are_noted_on_standard_error(tmp_path):
    folder = tmp_path / "with-router"
    shutil.copytree(shipped_fabrics()["cluster64"], folder)
    with (folder / "ibnetdiscover.txt").open("a") as file:
        file.write(
            "\nvendid=0x0\ndevid=0x0\nsysimgguid=0x300000\nrtguid=0x300000\n"
            'Rt\t1 "R-0000000000300000"\t\t# "router"\n'
        )
    done = invoke("show", folder, "--json")
    assert done.exit_code == 0
    assert "router" in done.stderr
    assert json.loads(done.stdout)["hosts"] == 64


def test_neighbour_tables_are_a_fabric_at_the_rate_that_is_given():
    folder = str(DATA / "leaf-spine-lldp")
    shown = record("show", folder, "--rate", "400 Gb/s")
    assert shown["switches"] == {"leaf": 4, "spine": 2}
    assert {cables["rate_bps"] for cables in shown["cables"]} == {400 * 10**9}
    # leaf1's first host, by either spine to leaf3's first.
    hops = record("route", folder, "ru1", "ru3", "--routing", "minimal")["hops"]
    assert [hop["node"] for hop in hops[::2]] == ["ru1", hops[2]["node"], "ru3"]
    assert [hops[1]["node"], hops[3]["node"]] == ["leaf1", "leaf3"]
    assert record("check", folder, "--routing", "minimal")["pairs_lost"] == 0
    # Ports by the names that the switches have for them.
    spine, port = (0, 48) if hops[2]["node"] == "spine0" else (1, 52)
    lines = printed("route", folder, "ru1", "ru3", "--routing", "minimal").splitlines()[3:]
    assert [line.split() for line in lines] == [
        ["ru1", "1"],
        ["leaf1", "Ethernet0", f"Ethernet{port}"],
        [f"spine{spine}", "Ethernet8", "Ethernet24"],
        ["leaf3", f"swp{31 + spine}", "swp1"],
        ["ru3", "1"],
    ]


def test_the_tutorial_shows_the_printed_output(tmp_path, monkeypatch):
    page = ROOT / "docs" / "tutorial" / "check-your-fabric.md"
    monkeypatch.chdir(tmp_path)
    commands = 0
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
        for step in re.findall(r"^\$ (.*\n(?:[^$].*\n|\n)*)", block, re.MULTILINE):
            line, _, shown = step.partition("\n")
            if line == "cat > down.txt":
                Path("down.txt").write_text(shown)
            elif line == "grep -v -x -f down.txt better.txt > up.txt":
                down = set(Path("down.txt").read_text().split())
                up = [name for name in Path("better.txt").read_text().split() if name not in down]
                Path("up.txt").write_text("\n".join(up))
            else:
                assert printed(*shlex.split(line)[2:]) == shown, line
                commands += 1
    assert commands == 10
    # Further values of the text.
    shuffled = record("check", "lhcb", "--order", "shuffle:1")["schedule"]
    assert 360 / shuffled["rate_share"] == pytest.approx(1579)
    other = record("check", "cluster64", "--routing", "d-mod-k")["schedule"]
    assert other["conflicting_phases"] == 36


def keys(record: object) -> set[str]:
    """All keys of a record, at any depth; levels are named by what is there."""
    if isinstance(record, dict):
        return {*record} | {key for name, inner in record.items() for key in keys(inner)}
    return {key for inner in record for key in keys(inner)} if isinstance(record, list) else set()


def test_the_reference_names_every_key_and_kind():
    page = ROOT / "docs" / "reference" / "topology.md"
    told = set(re.findall("`([a-z_ -]+)`", page.read_text()))
    blocking = ["show", "clos", "--leaves", 3, "--spines", 1, "--hosts-per-leaf", 4]
    shown = keys(record("show", "cluster64")) | keys(record(*blocking))
    shown |= keys(record("check", "lhcb", "--order", "shuffle:1"))
    shown |= keys(record("route", "lhcb", "H00-00", "H05-07"))
    assert shown - told <= {"schema", "fabric", "ibnetdiscover.txt", "opensm-lfts.dump"}
    assert {*get_args(AnomalyKind), *get_args(DefectKind)} <= told


def test_slow_uplinks_show_in_the_bound_of_a_check(tmp_path):
    # Two leaves with two hosts each, one spine: in phase 2 an uplink carries two flows.
    fabric = ["clos", "--leaves", 2, "--spines", 1, "--hosts-per-leaf", 2, "--links", 1]
    shared = record("show", *fabric)
    assert [level["rate_bps"] for level in shared["cables"]] == [200e9, 200e9]
    folder = tmp_path / "slow"
    folder.mkdir()
    printed("draw", *fabric, "-o", folder / "fabric.json")
    text = json.loads((folder / "fabric.json").read_text())
    for cable in text["cables"][4:]:
        cable["rate_bps"] = 50_000_000_000
    (folder / "fabric.json").write_text(json.dumps(text))
    # Phases of 1, 4, 2 × 4, 4 transfers by the hosts' cables: 4 events in the time of 17.
    slow = record("check", folder, "--routing", "d-mod-k")["schedule"]
    assert slow["transfers_per_phase"] == [0, 4, 8, 4]
    assert slow["rate_share"] == pytest.approx(4 / 17)
    said = printed("check", folder, "--routing", "d-mod-k")
    assert "longest phase         2: 8 transfers by a host's\n" in said
    assert said.count("at 50 Gb/s") == 1
    assert "at most 23.5% of the conflict-free rate" in said


def test_tables_are_written_for_opensm(tmp_path):
    folder = tmp_path / "mine"
    shutil.copytree(shipped_fabrics()["fattree72"], folder)
    path = folder / "opensm-lfts.dump"
    printed("write-tables", "fattree72", "--routing", "minimal:modulo", "-o", path)
    written, other = (load_fabric(each)[1] for each in (folder, shipped_fabrics()["fattree72"]))
    assert (written != other).any()
    for imported in (), ("--routing", "imported"):
        printed("write-tables", folder, *imported, "-o", tmp_path / "again.lft")
        assert (tmp_path / "again.lft").read_text() == path.read_text()
    printed("write-tables", "lhcb", "--routing", "mended", "-o", path)
    assert path.read_text().count("Unicast lids") == 28


@pytest.mark.parametrize(
    ("fabric", "why"),
    [
        (LHCB, "clos: H00-00 has no GUID, by which OpenSM's tables name it; import"),
        (["atlas-lab"], "has no GUID, by which OpenSM's tables name it; import the InfiniBand"),
    ],
)
def test_tables_without_guids_or_on_ethernet_are_refused(tmp_path, fabric, why):
    assert why in refused("write-tables", *fabric, "-o", tmp_path / "tables.lft")
