"""Studies run: resumed, repeated, interrupted, spread over workers, searched."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import xarray

from daqloom.cli.console.study import line
from daqloom.results.result import Result
from daqloom.study.file import points
from daqloom.study.file.cell import Cell
from daqloom.study.file.study import Study
from daqloom.study.run import runner
from daqloom.study.run.dataset import open_study, to_parquet
from daqloom.study.run.executor import InProcess, TimedApart
from daqloom.study.run.plan import plan, searched_cells
from daqloom.study.run.runner import Progress, replay, run
from daqloom.study.run.workers import DaskExecutor
from daqloom.study.store.store import Store
from support.small_studies import GRID, POINTS, complete, written


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return written(tmp_path, GRID)


def dataset_of(study: Study, folder: Path, file: Path) -> dict[str, bytes]:
    """Return every number of the dataset, bit for bit."""
    opened = open_study(file, store=folder)
    return {str(name): opened[name].values.tobytes() for name in opened.data_vars}


def test_every_cell_is_computed_once_as_planned(study: Study, tmp_path: Path) -> None:
    first = complete(study, tmp_path / "store")
    assert (first.finished, first.computed, first.reused) == (18, 18, 0)
    again = complete(study, tmp_path / "store")
    assert (again.finished, again.computed, again.reused) == (18, 0, 18)
    before = plan(study, None)
    assert (before.tasks, before.tasks_done, before.cells_left) == (18, 0, 18)
    complete(study, tmp_path / "store")
    with Store.open(tmp_path / "store", create=False) as store:
        after = plan(study, store)
    assert (after.tasks_done, after.cells_done, after.cells_left, after.cpu_s) == (18, 18, 0, 0)


def test_cells_in_the_store_start_no_worker_in_any_study(study: Study, tmp_path: Path) -> None:
    complete(study, tmp_path / "store")
    with Store.open(tmp_path / "store", create=False) as store:
        executor = TimedApart(lambda: pytest.fail("began"), store)
        assert run(study, store, executor).reused == 18
        executor.close()
    with Store.open(tmp_path / "other", create=True) as store:
        assert run(study, store, TimedApart(lambda: InProcess(store), store)).computed == 18
    complete(study, tmp_path / "store")
    text = GRID.replace('"0.2 kHz", "0.4 kHz"', '"400 Hz"').replace("small-rack", "./copy.toml")
    from daqloom.deployment.scenarios import load
    from daqloom.scenario import to_toml

    (tmp_path / "copy.toml").write_text(to_toml(load("small-rack")))  # same system, other text
    other = complete(written(tmp_path, text), tmp_path / "store")
    assert (other.finished, other.computed) == (12, 0)


def test_progress_shows_its_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 120.0)
    few, many = (Progress(tasks=9000, computed=n, started_s=0.0) for n in (3, 7778))
    assert few.per_minute == 1.5
    assert "3 runs computed (1.5 a minute)" in line(few)
    assert "7778 runs computed (3,889 a minute)" in line(many)
    assert Progress(tasks=9).per_minute is None


class StopsAfter(InProcess):
    """Is interrupted after some cells, as by Ctrl-C."""

    def __init__(self, store: Store, cells: int) -> None:
        super().__init__(store)
        self.left = cells

    def outcomes(self) -> Iterator[tuple[str, str | None]]:
        for answer in super().outcomes():
            if self.left == 0:
                raise KeyboardInterrupt
            self.left -= 1
            yield answer


def test_an_interrupted_study_resumes_to_the_same_numbers(tmp_path: Path) -> None:
    """At the first cell, among the formulas, at the first simulation, among these, at the last."""
    file = tmp_path / "mine.toml"
    study = written(tmp_path, POINTS + "[repeat]\nseeds = 2\n")
    whole = complete(study, tmp_path / "whole")
    assert whole.computed == 4 + 8
    numbers = dataset_of(study, tmp_path / "whole", file)
    for cells in (0, 2, 4, 7, 11):
        folder = tmp_path / f"cut{cells}"
        with Store.open(folder, create=True) as store, pytest.raises(KeyboardInterrupt):
            run(study, store, StopsAfter(store, cells))
        # A cell is stored before it is reported; and what was cut off is not computed again.
        assert complete(study, folder).computed == whole.computed - cells - 1
        assert dataset_of(study, folder, file) == numbers


KILLED = """
import os, signal, sys
from pathlib import Path
from daqloom.study.run.executor import InProcess
from daqloom.study.file.load import load_study
from daqloom.study.run.runner import run
from daqloom.study.store.store import Store
from daqloom.study.run.workers import DaskExecutor

cells = int(sys.argv[3])

class Killed(InProcess):
    left = cells
    def outcomes(self):
        for answer in super().outcomes():
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self.left -= 1
            yield answer

store = Store.open(Path(sys.argv[2]), create=True)
run(load_study(Path(sys.argv[1])), store, Killed(store))
"""


@pytest.mark.process
def test_a_killed_process_loses_no_cell(study: Study, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    command = [sys.executable, "-c", KILLED, str(tmp_path / "mine.toml"), str(folder), "7"]
    killed = subprocess.run(command, check=False)
    assert killed.returncode == -signal.SIGKILL
    resumed = complete(study, folder)
    assert (resumed.computed, resumed.reused) == (18 - 8, 8)  # the eighth was stored, not reported


def test_parts_make_the_whole(study: Study, tmp_path: Path) -> None:
    computed = []
    for part in range(3):
        with Store.open(tmp_path / "store", create=True) as store:
            computed.append(run(study, store, InProcess(store), part=(part, 3)).computed)
    assert computed == [6, 6, 6]
    assert complete(study, tmp_path / "store").computed == 0


@dataclass
class Workers:
    """Two processes, and the store that they fill."""

    store: Path
    executor: DaskExecutor


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    store = tmp_path_factory.mktemp("workers") / "store"
    executor = DaskExecutor(store, workers=2)
    yield Workers(store, executor)
    executor.close()


@pytest.mark.process
def test_two_workers_give_the_same_numbers(
    study: Study, tmp_path: Path, workers: Workers, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    complete(study, tmp_path / "one")
    with Store.open(workers.store, create=True) as store:
        progress = run(study, store, workers.executor)
    assert (progress.finished, progress.computed, progress.failures) == (18, 18, [])
    assert dataset_of(study, workers.store, file) == dataset_of(study, tmp_path / "one", file)
    assert capfd.readouterr() == ("", "")


@pytest.mark.process
def test_workers_listen_to_this_machine_only(workers: Workers) -> None:
    import psutil

    me = psutil.Process()
    listening = [
        connection.laddr.ip
        for process in (me, *me.children(recursive=True))
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) > workers.executor.workers
    assert set(listening) == {"127.0.0.1"}


@pytest.mark.process
def test_a_worker_that_is_killed_costs_its_cell_only(tmp_path: Path, workers: Workers) -> None:
    study = written(tmp_path, GRID.replace("seeds = 2", "seeds = [3, 4]"))
    with Store.open(workers.store, create=True) as store:
        pids = workers.executor._client.run(os.getpid)
        os.kill(next(iter(pids.values())), signal.SIGKILL)
        progress = run(study, store, workers.executor)
    assert (progress.finished, progress.failures) == (18, [])


class Elsewhere(InProcess):
    """Puts cells to the store as another node does."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Store.open(folder, create=False))

    def close(self) -> None:
        self._store.close()


class Late(Store):
    """Shows each result after the third look for it only, as NFS does with what it has cached."""

    def __init__(self, path: Path, command: str | None = None) -> None:
        super().__init__(path, command)
        self.looks: Counter[str] = Counter()

    def __contains__(self, key: str) -> bool:
        self.looks[key] += 1
        return self.looks[key] >= 3 and super().__contains__(key)

    def get(self, key: str) -> Result | None:
        return super().get(key) if self.looks[key] >= 3 else None


@pytest.mark.parametrize(("patience", "failed"), [(3, 0), (2, 6)])
def test_a_result_that_appears_late_is_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: int, failed: int
) -> None:
    monkeypatch.setattr(runner, "LATE_S", (0,) * patience)
    study = written(tmp_path, GRID.replace('["analyse", "simulate"]', '["analyse"]'))
    with Late.open(tmp_path / "store", create=True) as store:
        executor = Elsewhere(tmp_path / "store")
        progress = run(study, store, executor)
        executor.close()
    assert (progress.finished, len(progress.failures)) == (6, failed)


def test_a_point_that_is_no_system_fails_alone(tmp_path: Path) -> None:
    text = GRID.replace('["500 kB", "1 MB"]', '["500 kB", "1 B", "1 MB"]')
    progress = complete(written(tmp_path, text), tmp_path / "store")
    assert (progress.finished, progress.computed) == (27, 18)
    assert len(progress.failures) == 9
    assert all("event.size" in sentence for _, sentence in progress.failures)


SEARCH = """
scenario = "small-rack"
[search]
key = "network.switch.tor.buffer"
find = "smallest"
where = "packets_dropped == 0"
bounds = ["0 B", "64 MB"]
tolerance = "1 MB"
[repeat]
seeds = 3
"""


class Known(InProcess):
    """Answers with a boundary that depends on the seed: 20 MB and 1 MB more for each."""

    count = 0

    def outcomes(self) -> Iterator[tuple[str, str | None]]:
        waiting, self._waiting = self._waiting, []
        for cell in waiting:
            self.count += 1
            self._store.put(cell, self.answer(cell))
            yield cell.key, None

    def answer(self, cell: Cell) -> Result:
        needed = 20_000_000 + 1_000_000 * (cell.seed or 0)
        drops = int(cell.scenario.network.switch.tor.buffer < needed)
        return Result(
            scenario="small-rack",
            scenario_hash=cell.scenario_hash,
            method="simulate",
            seed=cell.seed,
            metrics={"packets_dropped": drops},
        )


def test_a_search_finds_the_boundary_of_every_seed(tmp_path: Path) -> None:
    text = SEARCH.replace("[search]", '[set]\n"network.switch.tor.model" = "drop-tail"\n[search]')
    text = text.replace('"0 B"', '"10 kB"')
    study = written(tmp_path, text)
    with Store.open(tmp_path / "store", create=True) as store:
        executor = Known(store)
        progress = run(study, store, executor)
        assert progress.failures == []
        assert executor.count <= 3 * searched_cells(study)
        for task, outcome in replay(study, store):
            assert outcome is not None
            assert outcome.boundary is not None
            needed = 20e6 + 1e6 * task.seed
            assert outcome.boundary.status == "found"
            assert needed <= outcome.boundary.value <= needed + 1e6
    found = open_study(tmp_path / "mine.toml", store=tmp_path / "store")
    assert found["boundary"].attrs["units"] == "B"
    assert np.all(np.diff(found["boundary"].values.ravel()) > 0)


def test_the_dataset_has_units_and_a_table(study: Study, tmp_path: Path) -> None:
    complete(study, tmp_path / "store")
    opened = open_study(tmp_path / "mine.toml", store=tmp_path / "store")
    assert opened["buffer_peak_bytes.tor"].dims == ("by", "event.rate", "event.size", "seed")
    assert opened["event.rate"].attrs["units"] == "Hz"
    assert not np.isnan(opened["buffer_peak_bytes.tor"]).any()
    analysed = opened["buffer_peak_bytes.tor"].sel(by="analyse")
    assert np.all(analysed.sel(seed=1) == analysed.sel(seed=2))
    to_parquet(opened, tmp_path / "rows.parquet")
    import pyarrow.parquet as pq

    rows = pq.read_table(tmp_path / "rows.parquet")
    assert rows.num_rows == 2 * 3 * 2 * 2
    assert rows.schema.field("buffer_peak_bytes.tor").metadata[b"units"] == b"B"
    opened.to_netcdf(tmp_path / "study.nc")
    with xarray.open_dataset(tmp_path / "study.nc") as read:
        assert read.attrs == opened.attrs
        assert points.operating_point(read) == points.operating_point(opened)
        name = "buffer_peak_bytes.tor"
        assert np.array_equal(read[name].values, opened[name].values)
        assert read[name].attrs["units"] == "B"


SWITCH = """
scenario = "small-rack"
methods = ["simulate"]
[set]
"run.duration" = "20 ms"
"run.warmup" = "5 ms"
[variants]
"none for ports" = { "network.switch.tor.model" = "shared-memory" }
"shallow" = { "network.switch.tor.model" = "qfx5120-48y" }
[search]
key = "network.switch.tor.buffer"
find = "smallest"
where = "packets_dropped == 0"
bounds = ["6 MB", "40 MB"]
tolerance = "20 MB"
"""


def test_a_searched_buffer_is_given_whole_and_as_its_shared_part(tmp_path: Path) -> None:
    complete(written(tmp_path, SWITCH), tmp_path / "store")
    dataset = open_study(tmp_path / "mine.toml", store=tmp_path / "store")
    assert np.isfinite(dataset["boundary"].values).all()
    dedicated = (dataset["boundary"] - dataset["boundary_shared"]).values[0, :, 0]
    assert list(dedicated) == [0, 5_000_000]
    assert dataset["boundary_shared"].attrs["units"] == "B"


def test_a_rate_beyond_the_capacity_is_never_the_largest_rate(tmp_path: Path) -> None:
    """The shortened runs drop nothing: an infinite buffer takes their few events. The capacity is
    that of 4 access links of 10 Gb/s: 400 kB in 278 frames of at most 1538 B, 11.7 kHz."""
    text = """
scenario = "small-rack"
[set]
"run.duration" = "30 ms"
"run.warmup" = "10 ms"
[search]
key = "event.rate"
find = "largest"
where = "packets_dropped == 0"
bounds = ["1 kHz", "40 kHz"]
tolerance = 0.5
spacing = "log"
"""
    [boundary] = complete(written(tmp_path, text), tmp_path / "store").boundaries.values()
    assert boundary.status == "found"
    assert boundary.value is not None
    assert boundary.value < 12e3
