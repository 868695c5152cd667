"""Records as readers see them: states, tags, times, and broken or foreign folders."""

from datetime import datetime

import pytest

from daqloom.control.record import past
from daqloom.control.record.folders import locked_run_folder
from daqloom.results.errors import MeasureError
from support.recorded_runs import BEGAN, entry, record_of


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("DAQLOOM_RUNS", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    return tmp_path


def test_a_run_without_end_is_abandoned_unless_its_run_control_lives():
    folder = record_of(summary={"state": "running", "events": 7})
    assert past.read_run(folder).state == "abandoned"
    with locked_run_folder(folder):
        assert past.read_run(folder).state == "running"
    assert past.read_run(record_of(summary={"state": "failed"})).state == "failed"


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("about.json", b"", r"about.json: the file: invalid json"),
        ("about.json", b"\0\1", r"about.json is a binary file"),
        ("about.json", b'{"schema": 2}', r"about.json: schema: input should be less than"),
        ("about.json", b"[" * 100_000, r"about.json: the file: invalid json"),
        ("about.json", b" " * (2 << 20), r"about.json is larger than 1024 KiB"),
        ("summary.json", b'{"state": "ended", "events": -1}', r"summary.json: events: input"),
        ("summary.json", b'{"state": "ended", "length_s": NaN}', r"summary.json: length_s: input"),
    ],
)
def test_a_broken_file_is_named_in_one_sentence(file, content, reason):
    folder = record_of()
    (folder / file).write_bytes(content)
    with pytest.raises(MeasureError, match=reason) as failed:
        past.read_run(folder)
    assert str(failed.value).endswith("; the folder has no whole record of a run")
    assert "\n" not in str(failed.value)


def test_a_foreign_folder_or_a_pipe_is_no_record(tmp_path):
    (tmp_path / "20260101-000000-x").mkdir()
    with pytest.raises(MeasureError, match=r"about.json cannot be read: no such file"):
        past.read_run(tmp_path / "20260101-000000-x")
    folder = record_of()
    (folder / "about.json").unlink()
    (folder / "about.json").mkdir()
    with pytest.raises(MeasureError, match=r"it is a folder|is a directory|a folder"):
        past.read_run(folder)


def test_lines_that_are_no_events_are_skipped():
    folder = record_of(events=[entry(1.0, "first")])
    with (folder / "events.jsonl").open("ab") as file:
        file.write(b'nonsense\n[1]\n{"time_s": "a", "text": "b"}\n{"text": "c"}\n')
        file.write(b'{"time_s": 5, "text": "' + b"x" * 70_000 + b'"}\n')
        file.write(b'{"time_s": 2, "text": "\\u001b[2Jlast"}\n')
    assert [each["text"] for each in past.read_events(folder)] == ["first", "\\x1b[2Jlast"]


def test_tags_are_added_once_removed_and_checked():
    folder = record_of()
    assert past.set_tags(past.read_run(folder), ["good", "shift 2", "good"], []) == (
        *("good", "shift 2"),
    )
    assert past.set_tags(past.read_run(folder), ["late"], ["good"]) == ("shift 2", "late")
    for bad in ("\x1b[2J", "", "a" * 61, "a,b"):
        with pytest.raises(MeasureError, match="has other characters than"):
            past.set_tags(past.read_run(folder), [bad], [])
    with pytest.raises(MeasureError, match="at most 40"):
        past.set_tags(past.read_run(folder), [str(number) for number in range(40)], [])
    (folder / "tags.json").write_text('{"not": "a list"}')
    assert past.read_run(folder).tags == ()


@pytest.mark.parametrize(
    ("at", "end_s", "time_s"),
    [
        ("90", 100.0, 90.0),
        ("90.5", 100.0, 90.5),
        ("2026-11-30T01:00:30+00:00", 100.0, 30.0),
        ("2026-11-30T02:00:30+01:00", 100.0, 30.0),
        ("100", 100.0, 100.0),
    ],
)
def test_times_as_seconds_and_iso(at, end_s, time_s):
    assert past.time_of(past.read_run(record_of()), at, end_s) == pytest.approx(time_s)


def test_a_time_of_day_is_its_last_occurrence_in_the_run():
    run = past.read_run(record_of())
    begin = datetime.fromtimestamp(BEGAN.timestamp())
    at = f"{begin.hour:02}:{begin.minute + 5:02}"
    assert past.time_of(run, at, 3600.0) == pytest.approx(300)
    assert past.time_of(run, f"{at}:07", 3600.0) == pytest.approx(307)
    assert past.time_of(run, at, 86_400.0 * 2) == pytest.approx(86_400 + 300)
    assert past.time_of(run, at, 86_400.0 * 2 + 400) == pytest.approx(2 * 86_400 + 300)


@pytest.mark.parametrize(
    "at", ["25:00", "3", "noon", "", "1:2:3:4", "9" * 30, "2026-13-01", "\x1b"]
)
def test_a_time_that_is_none_or_outside_is_one_sentence(at):
    with pytest.raises(MeasureError, match=r"is no time|is not within .*lasted from") as failed:
        past.time_of(past.read_run(record_of()), at, 2.0 if at != "3" else 1.0)
    assert "\x1b" not in str(failed.value)
