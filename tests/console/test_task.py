from pathlib import Path
from typing import get_args

import pytest

from daqloom.console import server, task
from daqloom.scenario.errors import ScenarioError
from daqloom.topology.formats.load import load_cabling
from support.repository import ROOT
from support.study_stores import fill


def test_the_server_knows_the_names_of_all_tasks() -> None:
    assert {*get_args(server.TaskName)} == {*task.TASKS}


def test_a_scenario_is_drawn_with_the_hosts_of_its_units() -> None:
    drawn = task.topology("laptop", ["readout.units=3"])
    names = [box["name"] for box in drawn["boxes"]]
    assert [names[index] for index in drawn["units"]] == ["H00-00", "H00-01", "H00-02"]
    ends = sorted((names[each["a"]], names[each["b"]], each["count"]) for each in drawn["cables"])
    hosts = [(f"H00-0{host}", "leaf00", 1) for host in range(4)]
    assert ends == [*hosts, ("leaf00", "spine00", 2)]
    assert all(0 <= box["y"] <= drawn["height"] for box in drawn["boxes"])


def test_a_fabric_with_irregular_cabling_has_its_sentences() -> None:
    drawn = task.topology("cluster64", ())
    assert "leaf00 port 29 has no cable; the pattern leads to spine01 port 2" in drawn["about"]
    assert "swapped cables" in {each["kind"] for each in drawn["cables"]}
    fabric = load_cabling(ROOT / "scenarios/fabrics/cluster64")[0]
    assert sum(each["count"] for each in drawn["cables"]) == len(fabric.cables)


def test_a_simulation_has_loads_and_moments_that_follow_the_schedule() -> None:
    found = task.simulate("laptop", ["run.duration=1 ms", "run.warmup=0 s"])
    drawn = found["drawing"]
    names = [box["name"] for box in drawn["boxes"]]
    hosts = [each for each in drawn["cables"] if names[each["a"]].startswith("H")]
    shares = [each["busy"] for each in hosts]
    # Each host writes three quarters of its fragments to others, and receives as much.
    assert all(0.5 < share <= 1 for share in shares)
    moments = drawn["moments"]
    assert len(moments["times_s"]) == len(moments["hosts"]) == len(moments["cables"])
    for activity, writes in zip(moments["hosts"], moments["cables"], strict=True):
        sending = sum(what == "sending" for what in activity.values())
        # One writer at a time for each receiver: linear shift has no conflicts.
        assert max(writes) <= 1
        assert sum(writes) <= 2 * sending
    assert "series" not in found["result"]


def test_studies_show_their_progress_in_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fill(tmp_path / "store", range(2))
    listed = task.list_studies()["studies"]
    assert {"lhcb-scaling", "atlas-min-buffer"} & {each["name"] for each in listed}
    shown = task.study("atlas-min-buffer", "store", True)
    assert shown["done"] == 0
    assert shown["tasks"] > 0
    missing = task.study("atlas-min-buffer", "nothing", True)
    assert (missing["done"], missing["tasks"]) == (0, shown["tasks"])


def test_an_unknown_scenario_is_refused() -> None:
    with pytest.raises(ScenarioError, match="there is no scenario"):
        task.show("laptopp")
