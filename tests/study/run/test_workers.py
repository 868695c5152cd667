"""Workers: how little they load, and one store for each thread."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from threading import Barrier, Thread
from types import SimpleNamespace

import pytest

from daqloom.study.file.cell import Cell
from daqloom.study.file.load import load_study
from daqloom.study.run import workers
from daqloom.study.run.executor import compute
from daqloom.study.run.plan import survey
from daqloom.study.run.runner import run
from daqloom.study.run.workers import DaskExecutor
from daqloom.study.store.store import Store
from support.small_studies import BRIEF as STUDY


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[DaskExecutor]:
    executor = DaskExecutor(tmp_path / "store", workers=1)
    yield executor
    executor.close()


@pytest.mark.process
def test_a_worker_loads_nothing_that_draws_or_tabulates(
    tmp_path: Path, worker: DaskExecutor
) -> None:
    (tmp_path / "mine.toml").write_text(STUDY)
    with Store.open(tmp_path / "store", create=True) as store:
        assert run(load_study(tmp_path / "mine.toml"), store, worker).computed == 2
    (modules,) = worker._client.run(eval, "list(__import__('sys').modules)").values()
    loaded = {name.partition(".")[0] for name in modules}
    assert {"daqloom", "distributed", "numpy"} <= loaded
    assert loaded.isdisjoint({"xarray", "pandas", "pyarrow", "scipy", "matplotlib", "plotly"})
    assert "daqloom.report" not in modules


def test_threads_of_a_worker_have_stores_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site's workers have several threads; had these one store, they would tear its lines."""
    (tmp_path / "mine.toml").write_text(STUDY)
    cells = [cell for _, _, cell in survey(load_study(tmp_path / "mine.toml"), None)]
    folder = tmp_path / "store"
    Store.open(folder, create=True).close()
    stores: list[Store] = []
    both = Barrier(2)

    def computed(cell: Cell, store: Store) -> None:
        stores.append(store)
        both.wait()
        assert compute(cell, store) is None

    monkeypatch.setattr(workers, "compute", computed)
    with ThreadPoolExecutor(2) as threads:
        work = partial(workers.compute_batch, store=folder, command="test")
        for answers in threads.map(work, [cells[:1], cells[1:]]):
            assert set(answers.values()) == {None}
    assert stores[0] is not stores[1]
    with Store.open(folder, create=False) as store:
        assert (len(store), store.damage) == (2, [])


MASK = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"


@pytest.mark.process
def test_ctrl_c_waits_until_the_workers_have_started_and_never_reaches_them() -> None:
    """Processes are begun by a thread of Dask's, hence from a thread here."""
    came: list[str] = []

    def begin() -> None:
        came.append(subprocess.check_output([sys.executable, "-c", MASK], text=True))

    def interrupted() -> None:
        with workers._ctrl_c_later():
            os.kill(os.getpid(), signal.SIGINT)
            thread = Thread(target=begin)
            thread.start()
            thread.join()
            came.append("the end")

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert came == ["True\n", "the end"]
    assert signal.getsignal(signal.SIGINT) is handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.parametrize("status", ["connecting", "running"])
def test_a_client_that_stumbles_over_a_lost_scheduler_hides_nothing(status: str) -> None:
    def close() -> None:
        raise RuntimeError("dictionary changed size during iteration")

    client = SimpleNamespace(status=status, close=close, cancel=lambda *_, **__: None)
    executor = object.__new__(DaskExecutor)
    vars(executor).update(_client=client, _cluster=None, _futures={})
    with pytest.raises(RuntimeError) if status == "running" else nullcontext():
        executor.close()
