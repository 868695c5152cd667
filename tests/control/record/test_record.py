"""Record of a run: written as it goes, continued by the next run control, harmless when broken."""

import json
from datetime import UTC, datetime

import pytest

from daqloom.base.output import OutputError
from daqloom.control.protocol.states import Phase
from daqloom.control.record import record as record_module
from daqloom.control.record.past import read_events, read_run
from daqloom.control.record.record import About, Record, Summary, iso
from daqloom.control.record.series import RUN, SeriesWriter, read_series
from support.recorded_runs import BEGAN, entry, loss, second


def about(began=BEGAN):
    return About(method="control", scenario="laptop", began=began, units=4, packing=1)


def test_an_event_is_in_the_log_at_once_with_its_time_in_utc(tmp_path):
    record = Record(tmp_path, about())
    record.offset_s = 0.0
    record.event(vars(entry(7.25, "running: from MEP 0")), epoch=1)
    record.event(vars(loss(3600.5, 2, "unit 2 is lost: silent for 1.0 s")), epoch=2)
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    first, second_one = (json.loads(line) for line in lines)
    assert first["at"] == "2026-11-30T01:00:07.250+00:00"
    assert (first["text"], first["trouble"]) == ("running: from MEP 0", False)
    assert second_one["at"] == "2026-11-30T02:00:00.500+00:00"
    assert (second_one["lost"], second_one["epoch"], second_one["members"]) == (2, 2, 3)
    assert (tmp_path / "events.jsonl").stat().st_mode & 0o777 == 0o600
    record.close(Summary(state="ended"))


def test_bins_are_written_every_two_seconds_and_at_the_end(tmp_path):
    record = Record(tmp_path, about())
    record.offset_s = 0.0
    record.add(1.0, [second(0)], lambda: Summary(state="running"))
    assert read_series(tmp_path, RUN)[0]["time_s"].tolist() == []
    record.add(2.0, [second(1)], lambda: Summary(state="running"))
    record._under_way.result()
    assert read_series(tmp_path, RUN)[0]["time_s"].tolist() == [0, 1]
    record.add(4.0, [second(2, phase=Phase.HALTING)], lambda: Summary(state="running", events=5))
    record._under_way.result()
    assert read_run(tmp_path).summary.events == 5
    assert read_run(tmp_path).summary.recorded_s == 3.0
    record.add(4.5, [second(3)], lambda: Summary(state="running"))
    record.close(Summary(state="ended", building_s=record.building_s))
    assert read_series(tmp_path, RUN)[0]["time_s"].tolist() == [0, 1, 2, 3]
    assert read_run(tmp_path).summary.building_s == 3.0


def test_the_next_run_control_continues_files_and_times(tmp_path):
    began = datetime.fromtimestamp(datetime.now(UTC).timestamp() - 1000, UTC)
    before = Record(tmp_path, about(began))
    before.offset_s = 0.0
    before.event(vars(entry(1.0, "before")), epoch=1)
    before.add(1.0, [second(0)])
    before.close(Summary(state="running", building_s=900.0))
    record = Record(tmp_path, about(datetime.now(UTC)), now_s=3.0)
    assert record.about.began == began
    assert record.offset_s >= 1000 - 3.0
    assert record.building_s == 900
    record.event(vars(entry(4.0, "after")), epoch=1)
    record.add(5.0, [second(4)])
    record.close(Summary(state="ended"))
    assert [each["text"] for each in read_events(tmp_path)] == ["before", "after"]
    times = read_series(tmp_path, RUN)[0]["time_s"]
    assert times == pytest.approx([0, record.offset_s + 4])


def test_the_next_run_control_adds_only_bins_that_are_not_written(tmp_path):
    before = Record(tmp_path, about())
    before.offset_s = 0.0
    before.add(2.0, [second(0), second(1)], lambda: Summary(state="running", building_s=2.0))
    before._under_way.result()  # then it is killed
    record = Record(tmp_path, about())
    shift_s = record.offset_s  # time of the run at the start of the next run control
    record.offset_s, record._recorded_s = 0.0, record._recorded_s + shift_s
    record.add(9.0, [second(number) for number in range(5)])
    record.close(Summary(state="ended"))
    assert read_series(tmp_path, RUN)[0]["time_s"].tolist() == [0, 1, 2, 3, 4]
    assert record.building_s == 5.0


def test_a_line_that_a_kill_cut_off_costs_that_line_alone(tmp_path):
    (tmp_path / "events.jsonl").write_bytes(b'{"at": "x", "time_s": 1, "text": "whole"}\n{"at": "2')
    record = Record(tmp_path, about())
    record.note(2.0, "later")
    record.close(Summary(state="ended"))
    assert [each["text"] for each in read_events(tmp_path)] == ["whole", "later"]


def test_a_full_log_becomes_the_older_one(tmp_path, monkeypatch):
    monkeypatch.setattr(record_module, "LARGEST_LOG_BYTES", 300)
    record = Record(tmp_path, about())
    for number in range(12):
        record.note(float(number), f"entry {number}")
    record.close(Summary(state="ended"))
    sizes = [(tmp_path / name).stat().st_size for name in ("events.jsonl", "events-older.jsonl")]
    assert all(size <= 300 for size in sizes)
    kept = [each["text"] for each in read_events(tmp_path)]
    assert kept == [f"entry {number}" for number in range(12 - len(kept), 12)]
    assert len(kept) >= 4


def test_a_failure_of_the_record_is_noted_once_and_ends_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SeriesWriter, "add", full)
    record = Record(tmp_path, about())
    for now in (2.0, 4.0, 6.0):
        record.add(now, [second(now)])
    record.close(Summary(state="ended"))
    assert record.failure == "a part of the record is missing: no space left on device"
    assert [each["text"] for each in read_events(tmp_path)] == [record.failure]
    assert read_run(tmp_path).state == "ended"


def test_bins_wait_for_a_slow_disk_in_bounded_memory(tmp_path):
    record = Record(tmp_path, about())
    record._flush_s = float("inf")
    record.add(0.0, [second(begin, units=1) for begin in range(record_module.MOST_PENDING + 3)])
    record.close(Summary(state="ended"))
    times = read_series(tmp_path, RUN)[0]["time_s"]
    assert len(times) == record_module.MOST_PENDING


def test_the_log_is_no_link_to_another_file(tmp_path):
    (tmp_path / "target").write_text("keep")
    (tmp_path / "events.jsonl").symlink_to(tmp_path / "target")
    with pytest.raises(OutputError, match=r"cannot write the record in .*: too many levels"):
        Record(tmp_path, about())
    assert (tmp_path / "target").read_text() == "keep"


def test_a_broken_description_is_written_again(tmp_path):
    (tmp_path / "about.json").write_text("{")
    Record(tmp_path, about()).close(Summary(state="ended"))
    assert read_run(tmp_path).about.scenario == "laptop"


def test_times_are_iso_in_utc_with_offset():
    assert iso(BEGAN, 86_400.0015) == "2026-12-01T01:00:00.001+00:00"
