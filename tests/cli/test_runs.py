"""`daqloom runs`: what it lists, shows, compares, draws, tags, removes and explains."""

import pytest

from daqloom.control.record import folders
from daqloom.control.record.folders import locked_run_folder
from support.command import commands
from support.recorded_runs import entry, loss, record_of, second

runs = commands("runs")


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("DAQLOOM_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


SUMS = {
    "length_s": 400.0,
    "building_s": 380.0,
    "events": 38_000,
    "bytes": 38e6,
    "lost": {"discarded": 30, "incomplete": 1200},
    "units_lost": 1,
    "regroupings": 2,
}


def a_run(name="laptop", **more):
    bins = [second(begin, 100.0 if begin < 300 else 40.0) for begin in range(400)]
    events = [entry(0.0, "running"), loss(300.0, 2, "unit 2 is lost: silent for 1.0 s")]
    return record_of(name, bins, events, SUMS | more)


def test_a_list_has_the_sums_of_each_run_and_skips_broken_folders(root):
    assert runs.printed("list") == f"there are no runs in {root}\n"
    first, second_one = a_run("laptop"), a_run("rack", number=7)
    (root / "20000101-000000-broken").mkdir()
    done = runs.invoke("list")
    assert done.exit_code == 0
    assert "20000101-000000-broken" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert all(folder.name in done.stdout for folder in (first, second_one))
    assert {"38,000", "1,230", "ended", "400"} & set(done.stdout.split()) >= {"38,000", "1,230"}
    found = {each["scenario"]: each for each in runs.record("list")["runs"]}
    assert found["rack"]["number"] == 7
    assert found["laptop"]["event_rate_hz"] == 100
    assert found["laptop"]["throughput_bps"] == 800_000
    assert found["laptop"]["events_lost"] == SUMS["lost"]
    assert set(found["laptop"]) == {
        *("id", "number", "scenario", "method", "state", "began", "length_s", "units", "events"),
        *("event_rate_hz", "throughput_bps", "events_lost", "units_lost", "regroupings", "tags"),
    }


def test_a_run_is_shown_with_its_events():
    folder = a_run()
    shown = runs.printed("show", "last")
    assert "lost        1,200 incomplete, 30 discarded" in shown
    assert shown.splitlines()[-1].endswith("unit 2 is lost: silent for 1.0 s")
    found = runs.record("show", folder.name)
    assert found["id"] == folder.name
    assert [each["text"] for each in found["events_of_run"]] == [
        "running",
        "unit 2 is lost: silent for 1.0 s",
    ]


def test_two_runs_are_compared():
    first, second_one = a_run("laptop"), a_run("rack", events=19_000)
    shown = runs.printed("compare", first.name, second_one.name)
    assert "the second built 50.0% of the rate of the first" in shown
    both = runs.record("compare", first.name, second_one.name)["runs"]
    assert [each["events"] for each in both] == [38_000, 19_000]


def test_a_fall_is_explained_in_order():
    a_run()
    first, second_line, *_ = runs.printed("explain", "last", "--at", "310").splitlines()
    assert "the event rate went from 100 Hz to 40 Hz, -60 %" in first
    assert second_line.endswith("unit 2 is lost: silent for 1.0 s")
    found = runs.record("explain", "last", "--at", 310)
    assert [each["about"] for each in found["findings"][:2]] == ["rate", "units"]
    assert "is not within" in runs.refused("explain", "last", "--at", "4000", code=1)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_run_is_drawn(tmp_path, ending):
    a_run()
    runs.run("draw", "last", "--figure", tmp_path / f"run.{ending}")
    assert (tmp_path / f"run.{ending}").stat().st_size > 5000
    record_of("empty")
    empty = folders.run_folders()
    name = next(folder.name for folder in empty if "empty" in folder.name)
    assert "has no series" in runs.refused("draw", name, "--figure", tmp_path / "x.png", code=1)
    assert "must end in" in runs.refused("draw", name, "--figure", tmp_path / "x.gif")


def test_tags_select_runs():
    first, second_one = a_run("laptop"), a_run("rack")
    assert runs.printed("tag", first.name, "good", "shift 2") == "good, shift 2\n"
    assert runs.printed("tag", first.name, "--remove", "good") == "shift 2\n"
    listed = runs.printed("list", "--tag", "shift 2")
    assert first.name in listed
    assert second_one.name not in listed


def test_a_run_is_removed_after_a_question_and_never_a_live_one():
    first, second_one = a_run("laptop"), a_run("rack")
    assert "nothing was removed" in runs.run("remove", first.name, code=2)
    with locked_run_folder(second_one):
        refused = runs.refused("remove", first.name, second_one.name, "--yes", code=1)
        assert refused == (
            f"daqloom: {second_one.name} is going on; end it first: `daqloom control exit`"
        )
    assert first.exists()
    assert runs.printed("remove", first.name, second_one.name, "--yes").count("removed") == 2
    assert folders.run_folders() == []


def test_a_hostile_record_harms_nothing(root):
    folder = a_run()
    (folder / "summary.json").write_text('{"state": "\x1b[2J", "events": 5}')
    assert "\x1b" not in runs.run("list")
    (folder / "about.json").write_text("x" * (2 << 20))
    assert "larger than 1024 KiB" in runs.refused("show", "last", code=1)
    assert "there is no run" in runs.refused("show", "../../etc", code=1)
    outside = root.parent / "outside"
    outside.mkdir()
    (root / "20990101-000000-link").symlink_to(outside)
    assert "there is no run" in runs.refused("remove", "20990101", "--yes", code=1)
    assert outside.exists()
