"""Commands and files of the how-to pages work."""

import re
from pathlib import Path

import pytest

from daqloom.study.file.load import load_study
from daqloom.study.run.executor import InProcess
from daqloom.study.run.runner import run
from daqloom.study.store.store import Store
from support.repository import ROOT

PAGES = ROOT / "docs" / "how-to"


def blocks(page: str, language: str) -> list[str]:
    """The code of one language, in the order of the page."""
    return re.findall(rf"```{language}\n(.*?)```", (PAGES / page).read_text(), re.DOTALL)


def test_your_own_metric_is_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = "add-your-own-metric-to-a-report.md"
    [study] = blocks(page, "toml")
    monkeypatch.chdir(tmp_path)
    Path("rack.toml").write_text(study)
    with Store.open(Path("daqloom-store"), create=True) as store:
        run(load_study("rack.toml"), store, InProcess(store))
    names: dict[str, object] = {}
    for code in blocks(page, "python"):
        exec(compile(code, page, "exec"), names)
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert written[0] == Path("rack-report/report.html")
    assert all(path.exists() for path in written)
    text = written[0].read_text()
    assert "events held at once, simulation (events)" in text
    assert "surface through the simulation gives" in text
    import pyarrow.parquet as pq

    assert {"events_held", "goodput"} <= set(pq.read_table(written[-1]).column_names)


def test_the_timeline_of_a_fabric_is_in_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "see-phases-and-link-loads.md"
    [code] = blocks(page, "python")
    monkeypatch.chdir(tmp_path)
    names: dict[str, float] = {}
    exec(compile(code, page, "exec"), names)
    assert Path("phases.pdf").stat().st_size > 1000
    # 40 nodes were in the barrier for a part of 7 ms.
    assert 0 < names["waited_s"] < 40 * 7e-3


def test_a_measured_wait_gives_the_size_of_a_buffer(capsys: pytest.CaptureFixture[str]) -> None:
    [code] = blocks("measure-a-switch-buffer.md", "python")
    exec(compile(code, "measure-a-switch-buffer.md", "exec"), {})
    # 82 520 B are 6.602 us; less 2.4 and plus 0.77 that is 4.972 us, 15.02 packets of 331 ns.
    assert capsys.readouterr().out == f"{15 * 65 / 16:.1f} to {(16 * 65 - 1) / 16:.1f} KiB\n"


def test_failures_of_a_log_are_a_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [code] = blocks("read-failure-logs.md", "python")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "read-failure-logs.md", "exec"), {})
    share, mean = capsys.readouterr().out.splitlines()
    assert share.startswith("(1.0, ")  # 100 s and 60 s are longer than 30 s
    assert mean == "50.0"  # of 60, 30 and 60 s


def test_the_cost_of_failures_is_the_sum_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [code] = blocks("find-what-failures-cost.md", "python")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "find-what-failures-cost.md", "exec"), {})
    share, at_once = capsys.readouterr().out.splitlines()
    # One cable of 222 h is down for 21 + 6 h, two for 3 h; 4.8 and 4.4 of 6.5 Tb/s are left.
    one, two = 27 / 222, 3 / 222
    assert share == f"{one * (1 - 4.8 / 6.5) + two * (1 - 4.4 / 6.5):.1%} of the throughput"
    assert at_once == str([f"{1 - one - two:.3f}", f"{one:.3f}", f"{two:.3f}"])
