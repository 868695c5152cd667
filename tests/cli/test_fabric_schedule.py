"""Schedules of `daqloom topology check`: a scenario's units, orders, mended tables."""

import json
from pathlib import Path
from typing import Any

import pytest

from daqloom.deployment.scenarios import load, override
from daqloom.scenario.file.show import to_toml
from daqloom.study.methods import methods
from support.command import commands
from support.small_fabrics import ring, small

invoke, _, printed, record, refused = commands("topology")
BROKEN = {
    "network.leaves": 4,
    "network.spines": 8,
    "network.spine_links": 2,
    "network.hosts_per_leaf": 20,
    "network.switch.radix": 40,
    "readout.units": 80,
}
"""Four leaves of 20 hosts, and 16 of 20 uplinks each."""


def file_of(folder: Path, scenario: Any) -> Path:
    path = folder / "own.toml"
    path.write_text(to_toml(scenario))
    return path


def test_a_scenario_is_checked_with_its_units_and_dummies_where_they_are(tmp_path: Path) -> None:
    found = record("check", "lhcb-run3-test-20")
    schedule = found["schedule"]
    # 321 units on leaves with 20 used ports each: 360 slots.
    assert (schedule["hosts"], schedule["dummies"]) == (321, 39)
    share = methods.analyse(load("lhcb-run3-test-20")).metrics["dummy_share"]
    assert 1 - schedule["rate_share"] == pytest.approx(share)
    assert "units of the scenario; 360 slots, 39 dummies" in printed("check", "lhcb-run3-test-20")
    path = file_of(tmp_path, small(builders__folded=False, readout__units=2))
    schedule = record("check", path)["schedule"]
    assert schedule["order"] == ["H00-00", "H01-00"]
    assert schedule["builders"] == ["H00-01", "H01-01"]
    assert (schedule["phases"], schedule["hosts"]) == (2, 4)


def test_a_scenario_is_checked_in_its_order_and_with_its_tables(tmp_path: Path) -> None:
    path = file_of(tmp_path, small(readout__units=3, hosts__order="shuffled", run__seed=3))
    plan = [each for each in record("check", path)["schedule"]["order"] if each]
    assert sorted(plan) != plan
    assert sorted(plan) == ["H00-00", "H00-01", "H01-00"]
    assert record("check", path, "--order", "natural")["schedule"]["order"] == sorted(plan)
    tables = override(small(), {"network.routing": "minimal:lowest-port"})
    path = file_of(tmp_path, tables)
    assert record("check", path)["routing"] == "minimal:lowest-port, of the scenario"
    # Both hosts of a leaf go by the first uplink.
    assert record("check", path)["schedule"]["worst_flows"] == 2
    assert record("check", path, "--routing", "d-mod-k")["schedule"]["worst_flows"] == 1


def test_a_unit_table_gives_the_roles(tmp_path: Path) -> None:
    units = [
        {"unit": 0, "host": "H01-00", "role": "readout"},
        {"unit": 1, "host": "H00-00", "role": "builder"},
        {"unit": 2, "host": "H01-01", "role": "readout"},
        {"unit": 3, "host": "H00-01", "role": "builder"},
    ]
    table = {"hosts.placement": "table", "hosts.units": units}
    tables = {"network.routing": "minimal:lowest-port"}
    path = file_of(tmp_path, override(override(small(), table), tables))
    found = record("check", path)
    assert found["schedule"]["order"] == ["H01-00", "H01-01"]
    assert found["schedule"]["builders"] == ["H00-00", "H00-01"]
    assert found["schedule"]["conflicting_phases"] == 2
    assert not any(each["routing"] == "mended" for each in found["suggestions"])
    assert "mended orders the folded units" in refused("check", path, "--routing", "mended")


@pytest.mark.parametrize("name", ["atlas-lab", "atlas-farm"])
def test_units_without_a_shift_are_all_in_the_schedule(name: str) -> None:
    found = record("check", name)
    assert found["schedule"]["hosts"] == found["hosts"]


def test_mended_tables_are_proposed_where_they_are_better(tmp_path: Path) -> None:
    clos = ["clos", "--leaves", 4, "--spines", 8, "--links", 2, "--hosts-per-leaf", 20]
    found = record("check", *clos)
    assert found["schedule"]["conflicting_phases"] > 0
    best = found["suggestions"][0]
    assert (best["routing"], best["conflicting_phases"], best["rate_share"]) == ("mended", 0, 1.0)
    assert best["builders"] is not None
    text = printed("check", *clos)
    assert "1. network.routing = mended, tables and an order of builder units of its own" in text
    assert "shared in any order" not in text

    mended = record("check", *clos, "--routing", "mended")
    assert mended["routing"] == "mended"
    assert mended["schedule"]["conflicting_phases"] == 0
    # A written order is one that --order can read: without tables of its own.
    better = tmp_path / "order.txt"
    printed("check", *clos, "-o", better)
    again = record("check", *clos, "--order", better)["schedule"]
    assert again["rate_share"] == found["schedule"]["rate_share"]


def test_a_scenario_gets_the_rate_that_the_check_proposes(tmp_path: Path) -> None:
    scenario = override(small(), BROKEN)
    path = file_of(tmp_path, scenario)
    [proposed, *_] = record("check", path)["suggestions"]
    assert proposed["routing"] == "mended"
    path = file_of(tmp_path, override(scenario, {"network.routing": "mended"}))
    own = record("check", path)
    assert own["routing"] == "mended, of the scenario"
    assert own["schedule"]["rate_share"] == proposed["rate_share"]
    assert own["schedule"]["builders"] == proposed["builders"]
    # A path is that of the mended tables, too.
    usual, mended = (
        record("route", file_of(tmp_path, each), "H00-00", "H03-07")["hops"]
        for each in (scenario, override(scenario, {"network.routing": "mended"}))
    )
    assert usual != mended
    said = [w for w in methods.analyse(scenario).warnings if "transfers share a link" in w]
    assert "network.routing = mended" in said[0]


def test_mended_that_changes_nothing_has_a_note(tmp_path: Path) -> None:
    done = invoke("check", "cluster64", "--routing", "mended")
    assert "network.routing = mended changes nothing" in done.stderr
    assert "nor is network.routing = mended" in printed("check", "cluster64")
    scenario = override(small(), {"network.routing": "mended"})
    [said] = [w for w in methods.analyse(scenario).warnings if "mended" in w]
    assert said.startswith("network.routing = mended changes nothing")


def test_routing_names_and_credit_loops_are_listed_without_contradiction(tmp_path: Path) -> None:
    said = refused("check", "lhcb", "--routing", "ftree")
    assert "mended, and in scenarios ecmp on Ethernet" in said
    said = refused("route", "lhcb", "H00-00", "H05-07", "--routing", "mended")
    assert "not known" not in said
    assert "needs a schedule: use `daqloom topology check --routing mended`" in said
    ring(tmp_path)
    text = printed("check", tmp_path)
    assert "no loop, 1 credit loop\n" in text
    assert "  credit loop: sw0 port 2 → sw1 port 2 → sw2 port 2 → sw0 port 2\n" in text
    assert record("check", tmp_path)["credit_loops"] == [[["sw0", 2], ["sw1", 2], ["sw2", 2]]]
    assert "no loop, no credit loop\n" in printed("check", "lhcb")


def test_a_fabric_that_is_no_tree_is_routed_by_shortest_paths(tmp_path: Path) -> None:
    names = [f"s{n}" for n in range(5)]
    cables = [{"from": f"h{n}", "to": [name, 1], "rate": "HDR"} for n, name in enumerate(names)]
    for n, name in enumerate(names):
        cables.append({"from": [name, 2], "to": [names[(n + 1) % 5], 3], "rate": "HDR"})
    document = {"hosts": [f"h{n}" for n in range(5)], "switches": names, "cables": cables}
    path = tmp_path / "ring.json"
    path.write_text(json.dumps(document))
    done = invoke("check", path)
    assert done.exit_code == 0
    assert "routed by minimal, as OpenSM falls back to minhop" in done.stderr
    assert "routing minimal\n" in done.stdout
    assert "no loop, 2 credit loops\n" in done.stdout
    assert "D-mod-K requires" in refused("check", path, "--routing", "d-mod-k")
    assert record("check", path, "--routing", "mended")["routing"] == "mended"
