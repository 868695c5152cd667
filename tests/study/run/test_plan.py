"""A study's plan, and how a run keeps count of what is left of it."""

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from daqloom.analyse.bounds import event_rate_bounds_hz
from daqloom.analyse.system import System
from daqloom.results.result import Result
from daqloom.study import StudyError
from daqloom.study.file import saturation
from daqloom.study.file.cell import Cell
from daqloom.study.file.load import load_study
from daqloom.study.run.executor import InProcess
from daqloom.study.run.plan import plan, share, task_count
from daqloom.study.run.program import Task, program, tasks
from daqloom.study.run.runner import Progress, run
from daqloom.study.store.store import Store
from support.small_studies import POINTS, complete, search, written

GRID = POINTS + "[repeat]\nseeds = 2\n"
SEARCH = search("10 kB", "8 MB", "1 MB") + "[repeat]\nseeds = 2\n"


@pytest.mark.parametrize("shares", [1, 2, 5, 8, 12, 13, 100])
def test_shares_make_the_whole_and_are_counted_without_being_made(
    tmp_path: Path, shares: int
) -> None:
    study = written(tmp_path, GRID)  # 4 points: 4 formulas and 8 simulations
    parts = [list(share(tasks(study), (i, shares))) for i in range(shares)]
    assert [len(part) for part in parts] == [task_count(study, (i, shares)) for i in range(shares)]
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert sorted(itertools.chain(*parts), key=str) == sorted(tasks(study), key=str)
    assert len(list(tasks(study))) == task_count(study) == 12


def test_a_seed_may_set_keys_of_the_scenario_for_every_method(tmp_path: Path) -> None:
    text = """scenario = "lhcb-10-percent"
methods = ["analyse", "simulate"]
[grid]
"faults.cables" = [1, 2]
[repeat]
seeds = [3, 5, 8]
sets = ["faults.seed"]
"""
    study = written(tmp_path, text)
    assert len(list(tasks(study))) == task_count(study) == 2 * 2 * 3
    cells = [next(program(study, task)) for task in tasks(study)]
    assert all(isinstance(cell, Cell) for cell in cells)
    drawn = {(cell.changes["faults.seed"], cell.seed, cell.method) for cell in cells}
    expected = {(seed, seed, "simulate") for seed in (3, 5, 8)}
    assert drawn == expected | {(seed, None, "analyse") for seed in (3, 5, 8)}
    assert len({cell.key for cell in cells}) == 12
    assert {cell.scenario.faults.seed for cell in cells} == {3, 5, 8}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[grid]\n"faults.seed" = [1]\n[repeat]\nsets = ["faults.seed"]', "is set by .repeat."),
        ('[repeat]\nsets = ["faults.sed"]', "repeat.sets: .*faults.seed"),
    ],
)
def test_keys_that_a_seed_cannot_set_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        written(tmp_path, f'scenario = "lhcb-10-percent"\n{text}\n')


@pytest.mark.parametrize("sizes", [2, 4, 8, 16])
def test_no_share_has_all_the_long_runs(sizes: int) -> None:
    """Four shares of a grid of 16 rates by so many sizes, the sizes fastest."""
    grid = [Task("simulate", index, 1) for index in itertools.product(range(16), range(sizes))]
    for i in range(4):
        for axis, steps in enumerate((16, sizes)):
            mean = np.mean([task.index[axis] for task in share(grid, (i, 4))])
            assert mean == pytest.approx((steps - 1) / 2, abs=0.5)


class Counted(Store):
    """Counts how often each key was read."""

    def __init__(self, path: Path, command: str | None = None) -> None:
        super().__init__(path, command)
        self.reads: Counter[str] = Counter()

    def get(self, key: str) -> Result | None:
        found = super().get(key)
        if found is not None:
            self.reads[key] += 1
        return found


def test_a_run_reads_each_stored_result_once(tmp_path: Path) -> None:
    study = written(tmp_path, GRID)
    complete(study, tmp_path / "store")
    with Counted.open(tmp_path / "store", create=True) as store:
        run(study, store, InProcess(store))
        assert sorted(store.reads) == sorted(store.keys())
        assert set(store.reads.values()) == {1}


@pytest.mark.parametrize("text", [GRID, SEARCH, GRID.replace('"1 MB"', '"1 B", "1 MB"')])
def test_the_remaining_time_begins_as_planned_and_ends_at_zero(tmp_path: Path, text: str) -> None:
    study = written(tmp_path, text)
    seen: list[tuple[int, float]] = []

    def report(progress: Progress) -> None:
        seen.append((progress.computed, progress.ahead_s))

    with Store.open(tmp_path / "store", create=True) as store:
        planned_s = plan(study, store).cpu_s
        progress = run(study, store, InProcess(store), report)
    assert progress.finished == progress.tasks == task_count(study)
    assert max(ahead_s for computed, ahead_s in seen if computed <= 1) <= planned_s
    assert progress.ahead_s == pytest.approx(0, abs=1e-9 * planned_s)
    assert progress.left_s == pytest.approx(0, abs=1e-3)


def test_the_quick_form_of_the_broken_cables_takes_a_minute() -> None:
    assert Progress(tasks=3, ahead_s=5.0).left_s is None
    assert plan(load_study("lhcb-link-failures", quick=True), None).cpu_s < 60


BOUNDED = """
scenario = "small-rack"
methods = ["analyse"]
[set]
"network.switch.tor.model" = "drop-tail"
"run.warmup" = "10 ms"
[grid]
"event.rate" = ["0.2 kHz", "0.4 kHz"]
"event.size" = ["500 kB", "1 MB", "2 MB"]
"network.switch.tor.buffer" = ["1 MB", "2 MB"]
"run.duration" = ["30 ms", "40 ms"]
"""


def test_the_bound_of_the_rate_is_found_once_for_all_rates_switches_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = written(tmp_path, BOUNDED)
    sizes: list[float] = []

    def bounds(system: System) -> dict[str, float]:
        sizes.append(system.scenario.event.size)
        return event_rate_bounds_hz(system)

    monkeypatch.setattr(saturation, "event_rate_bounds_hz", bounds)
    assert plan(study, None).tasks == 24
    assert sizes == [500_000, 1_000_000, 2_000_000]
    for index in study.indices():
        excess_hz = study.saturation.excess_hz(study.overrides(index))
        scenario = study.scenario(index)
        bound_hz = min(event_rate_bounds_hz(System(scenario)).values())
        assert excess_hz == pytest.approx(scenario.event.rate - bound_hz, rel=1e-12)
