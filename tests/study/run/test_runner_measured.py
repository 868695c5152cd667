"""Measured studies: one point at a time, apart from simulations."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from daqloom.cli.console.terminal import BAD_INPUT
from daqloom.results.result import Result
from daqloom.study import StudyError
from daqloom.study.file.cell import Cell
from daqloom.study.file.load import load_study
from daqloom.study.file.study import Study
from daqloom.study.run.dataset import open_study
from daqloom.study.run.executor import InProcess, TimedApart
from daqloom.study.run.plan import cost_s, plan
from daqloom.study.run.runner import run
from daqloom.study.store.store import Store
from support.command import invoke
from support.measure.controlled_runs import HUNG_S

STUDY = f"""
scenario = "daqpipe-laptop"
methods = ["simulate", "measure"]

[set]
"event.fragment_size" = "200 B"
"event.packing" = 20
"readout.units" = 2
"run.duration" = "1 ms"
"run.warmup" = "0.1 ms"
"measure.warmup" = "10 ms"
"measure.duration" = "{HUNG_S} s"
"measure.events" = 500
"measure.stream_buffer" = "1 MB"
"measure.output_buffer" = "1 MB"

[grid]
"building.credits" = [1, 2]

[repeat]
seeds = 2
"""


@pytest.fixture
def study(tmp_path: Path) -> Study:
    (tmp_path / "mine.toml").write_text(STUDY)
    return load_study(tmp_path / "mine.toml")


class Workers:
    """Computes nothing at once: what is submitted is done when the test says so."""

    slots = 2

    def __init__(self) -> None:
        self.cells: deque[Cell] = deque()
        self.most = 0

    def submit(self, cell: Cell) -> None:
        self.cells.append(cell)
        self.most = max(self.most, len(self.cells))

    def outcomes(self) -> Iterator[tuple[str, str | None]]:
        yield self.cells.popleft().key, "not computed"

    def close(self) -> None:
        pass


def test_measured_points_have_the_machine_to_themselves(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = Workers()
    seen = []

    def compute(cell: Cell, store: Store) -> str | None:
        seen.append((cell.method, cell.seed, len(workers.cells)))
        return "not computed"

    monkeypatch.setattr("daqloom.study.run.executor.compute", compute)
    with Store.open(tmp_path / "store", create=True) as store:
        progress = run(study, store, TimedApart(lambda: workers, store))
    assert len(progress.failures) == 2 * 2 * 2
    assert sorted(seen) == [("measure", 1, 0)] * 2 + [("measure", 2, 0)] * 2
    assert workers.most == 2


@pytest.mark.process
def test_measurements_and_simulations_are_in_one_dataset(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(STUDY.replace("seeds = 2", "seeds = [2]"))
    study = load_study(tmp_path / "mine.toml")
    with Store.open(tmp_path / "store", create=True) as store:
        first = run(study, store, TimedApart(lambda: InProcess(store), store))
        assert (first.computed, first.failures) == (4, [])
        assert run(study, store, InProcess(store)).reused == 4
    opened = open_study(tmp_path / "mine.toml", store=tmp_path / "store")
    throughput = opened["node_throughput_bps"]
    assert list(throughput["by"].values) == ["simulate", "measure"]
    assert (throughput > 0).all()
    assert throughput.sel(by="measure").shape == (2, 1)


def test_the_seed_of_a_measured_point_is_passed_and_changes_no_hash(study: Study) -> None:
    seeds = []

    def measured(scenario: object, *, seed: int | None, **_: object) -> Result:
        seeds.append(seed)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("daqloom.measure.run.measure", measured)
        for seed in (1, 2):
            changes = study.overrides((0,))
            cell = Cell(study.base, changes, "measure", seed, study.hasher.hash(changes))
            with pytest.raises(KeyboardInterrupt):
                cell.compute()
    assert seeds == [1, 2]


def test_a_measured_point_costs_its_length(study: Study) -> None:
    changes = study.overrides((0,)) | {"measure.duration": "7 s"}
    cell = Cell(study.base, changes, "measure", 1, "")
    assert cost_s(cell) == 7
    assert plan(study, None).cells_left == 8


def test_neither_jobs_of_an_array_nor_flows_are_measured(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(STUDY)
    words = ["study", "export-slurm", tmp_path / "mine.toml", "--output", tmp_path / "job"]
    assert invoke(*words).exit_code == BAD_INPUT
    assert not (tmp_path / "job").exists()
    (tmp_path / "mine.toml").write_text('scenario = "ib-uniform-64"\nmethods = ["measure"]\n')
    with pytest.raises(StudyError, match="does not describe an event builder that can be measured"):
        load_study(tmp_path / "mine.toml")


def test_the_shipped_study_is_the_grid_of_both_methods_in_both_modes() -> None:
    grid = load_study("daqpipe-laptop-grid")
    assert grid.methods == ("simulate", "measure")
    assert [axis.name for axis in grid.axes] == [
        "building.credits",
        "building.parallel_sends",
        "variant",
    ]
