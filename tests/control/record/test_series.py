"""Series of a run in Parquet files: parts that are merged with age, and survive anything."""

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from daqloom.control.protocol.states import Phase
from daqloom.control.record import series
from daqloom.control.record.series import RUN, UNITS, SeriesWriter, read_series
from support.recorded_runs import second


def names(folder):
    return sorted(path.name for path in (folder / series.FOLDER).iterdir())


def test_bins_come_back_as_they_were_written(tmp_path):
    writer = SeriesWriter(tmp_path)
    writer.add([second(0, 10), second(1, 20, phase=Phase.HALTING, incomplete=3.0)], 0.5)
    writer.add([second(2, 30)], 0.5)
    run, broken = read_series(tmp_path, RUN)
    assert broken == []
    assert run["time_s"].tolist() == [0.5, 1.5, 2.5]
    assert run["events"].tolist() == [10, 20, 30]
    assert run["incomplete"].tolist() == [0, 3, 0]
    assert run["phase"].tolist() == ["running", "halting", "running"]
    assert np.isnan(run["disk_free_bytes"]).all()
    units, _ = read_series(tmp_path, UNITS)
    assert units["unit"].tolist() == [0, 1, 2, 3] * 3
    assert units["events"][-4:].tolist() == [7.5] * 4


def test_a_new_writer_continues_the_part_of_the_present_minute(tmp_path):
    SeriesWriter(tmp_path).add([second(10), second(11)], 0.0)
    SeriesWriter(tmp_path).add([second(30)], 0.0)
    run, _ = read_series(tmp_path, RUN)
    assert run["time_s"].tolist() == [10, 11, 30]
    assert names(tmp_path) == ["run-0-0000000000.parquet", "units-0-0000000000.parquet"]


def filled(tmp_path, kind, until_s, begin_s=0):
    """Bins of a second as the parts of whole minutes, that were written as they ended."""
    folder = tmp_path / series.FOLDER
    folder.mkdir(exist_ok=True)
    for begin in range(begin_s, until_s, 60):
        bins = [second(at, 1 + at % 7, units=1) for at in range(begin, begin + 60)]
        rows = [row for each in bins for row in series.rows_of(kind, each, 0.0)]
        columns = series.columns_of(kind, rows)
        series.write_part(folder / series.part_name(kind, 0, begin), kind, columns)
        series.tidy(folder, kind, float(begin + 60))
    return folder


def test_minutes_become_hours_of_seconds_for_the_run(tmp_path):
    filled(tmp_path, RUN, 7260)
    assert names(tmp_path) == [
        "run-0-0000007200.parquet",
        "run-1-0000000000.parquet",
        "run-1-0000003600.parquet",
    ]
    run, _ = read_series(tmp_path, RUN)
    assert run["time_s"].tolist() == list(range(7260))
    assert run["events"].tolist() == [1 + at % 7 for at in range(7260)]


def test_units_keep_seconds_for_an_hour_and_then_tens(tmp_path):
    filled(tmp_path, UNITS, 3660)
    assert len(names(tmp_path)) == 61
    filled(tmp_path, UNITS, 7200, 3660)
    units, _ = read_series(tmp_path, UNITS)
    old = units["time_s"] < 3600
    assert units["time_s"][old].tolist() == list(range(0, 3600, 10))
    assert set(units["width_s"][old]) == {10.0}
    assert set(units["width_s"][~old]) == {1.0}
    sums = [sum(1 + at % 7 for at in range(begin, begin + 10)) for begin in range(0, 3600, 10)]
    assert units["events"][old].tolist() == sums


def test_days_become_coarser_with_age(tmp_path):
    folder = filled(tmp_path, RUN, 3600)
    for now_s, width_s in ((2 * 86_400.0 - 1, 1.0), (2 * 86_400.0, 10.0), (8 * 86_400.0, 60.0)):
        series.tidy(folder, RUN, now_s)
        run, _ = read_series(tmp_path, RUN)
        assert set(run["width_s"]) == {width_s}
        assert run["events"].sum() == sum(1 + at % 7 for at in range(3600))
    assert names(tmp_path) == ["run-3-0000000000.parquet"]


def test_merged_bins_keep_the_worst_and_weight_latencies_by_events():
    rows = [
        {"time_s": 0.0, "width_s": 1.0, "events": 1.0, "latency_p50_s": 1.0, "members": 4.0},
        {"time_s": 1.0, "width_s": 1.0, "events": 3.0, "latency_p50_s": 5.0, "members": 2.0},
        {"time_s": 2.0, "width_s": 1.0, "events": 0.0, "latency_max_s": 9.0, "epoch": 7.0},
        {"time_s": 10.0, "width_s": 1.0, "events": 2.0, "disk_free_bytes": 5.0},
    ]
    found = series.merge_bins(RUN, series.columns_of(RUN, rows), 10.0)
    assert found["time_s"].tolist() == [0, 10]
    assert found["width_s"].tolist() == [3, 1]
    assert found["latency_p50_s"][0] == pytest.approx((1 * 1 + 3 * 5) / 4)
    assert (found["latency_max_s"][0], found["members"][0], found["epoch"][0]) == (9, 2, 7)
    assert found["disk_free_bytes"][1] == 5
    assert np.isnan(found["disk_free_bytes"][0])
    assert np.isnan(found["incomplete"]).all()


def test_parts_outside_of_a_time_are_not_read(tmp_path):
    folder = filled(tmp_path, RUN, 3 * 3600)
    (folder / "run-1-0000000000.parquet").write_text("not read")
    run, broken = read_series(tmp_path, RUN, 3700.0, 3800.0)
    assert broken == []
    assert run["time_s"].tolist() == list(range(3600, 7200))
    assert len(read_series(tmp_path, RUN)[1]) == 1


def test_a_merge_that_was_killed_doubles_nothing(tmp_path):
    folder = filled(tmp_path, RUN, 3540)
    minutes = {path.name: path.read_bytes() for path in folder.iterdir()}
    filled(tmp_path, RUN, 3600, 3540)
    for name, content in minutes.items():  # the kill came before they were removed
        (folder / name).write_bytes(content)
    run, _ = read_series(tmp_path, RUN)
    assert run["time_s"].tolist() == list(range(3600))
    series.tidy(folder, RUN, 3660.0)
    assert names(tmp_path) == ["run-1-0000000000.parquet"]


def test_broken_and_foreign_parts_are_named_and_left_out(tmp_path):
    SeriesWriter(tmp_path).add([second(0)], 0.0)
    folder = tmp_path / series.FOLDER
    (folder / "run-0-0000000060.parquet").write_text("no parquet")
    whole = (folder / "run-0-0000000000.parquet").read_bytes()
    (folder / "run-0-0000000120.parquet").write_bytes(whole[: len(whole) // 2])
    parquet.write_table(pyarrow.table({"x": [1]}), folder / "run-0-0000000180.parquet")
    (folder / "run-0-0000000240.parquet").mkdir()
    (folder / "notes.txt").write_text("hello")
    run, broken = read_series(tmp_path, RUN)
    assert run["time_s"].tolist() == [0]
    assert len(broken) == 4
    assert "run-0-0000000180.parquet is no part of a series: it has no column" in broken[2]


def test_a_part_of_too_many_rows_is_refused(tmp_path, monkeypatch):
    SeriesWriter(tmp_path).add([second(0), second(1)], 0.0)
    monkeypatch.setattr(series, "MOST_ROWS", 1)
    run, (broken,) = read_series(tmp_path, RUN)
    assert len(run["time_s"]) == 0
    assert "it has 2 rows" in broken
    monkeypatch.setattr(series, "LARGEST_PART_BYTES", 10)
    assert "it is larger than" in read_series(tmp_path, RUN)[1][0]


def test_a_month_of_324_units_has_the_stated_size(tmp_path):
    """Hours of 10 s are the largest part by number; the sizes of the others follow from rows."""
    rng = np.random.default_rng(1)
    count = 324 * 360
    columns = {name: rng.random(count) for name in UNITS.columns}
    columns["disk_free_bytes"] = np.full(count, np.nan)
    columns["unit"] = np.tile(np.arange(324.0), 360)
    columns["time_s"], columns["width_s"] = (
        np.repeat(np.arange(0.0, 3600, 10), 324),
        np.full(count, 10.0),
    )
    path = tmp_path / "part"
    series.write_part(path, UNITS, columns)
    bytes_a_row = path.stat().st_size / count
    rows = 324 * (2 * 3600 + 2 * 8640 + 8 * 1440 + 22 * 144)
    assert rows * bytes_a_row < 400e6
