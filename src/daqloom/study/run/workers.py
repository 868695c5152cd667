"""Dask workers that compute cells: processes on this machine, or on a site's cluster. A worker
writes each result to the store and returns only the key. A killed worker therefore loses only its
present cell, and results take no memory of the scheduler."""

from __future__ import annotations

import functools
import logging
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daqloom.base import lazy
from daqloom.results.errors import MeasureError
from daqloom.results.result import StoppedError
from daqloom.scenario import ScenarioError
from daqloom.simulate import SimulationError
from daqloom.study import SchedulerFailure, StudyError, StudyFailure
from daqloom.study.file.cell import Cell
from daqloom.study.store.store import Store

with lazy.imports():
    import dask
    import distributed
    from distributed import scheduler
    from distributed.comm import core

if TYPE_CHECKING:
    from distributed import Client, Future

BATCH = {"analyse": 64, "simulate": 1}
"""Number of cells per message to a worker, by method: a cell of a millisecond is too short for a
separate message. Timed cells are not sent to workers."""
CONNECT_S = "10 s"
DEATHS_ALLOWED = 3
"""Number of workers that may die during a cell before the cell counts as failed."""
LOST = "the Dask scheduler has gone; computed results are in the store, the same command continues"


class DaskExecutor:
    """Computes cells by `workers` processes on this machine, or by the workers of the Dask
    scheduler at `address`."""

    def __init__(self, store: Path, *, workers: int = 0, address: str | None = None) -> None:
        self._store = store.absolute()
        self._command = shlex.join(sys.argv)
        self._futures: dict[Future[Any], list[str]] = {}
        self._batches: dict[str, list[Cell]] = {}
        self._done: Any = None
        self._cluster: Any = None
        if address is not None:
            self._client = _client_of(address)
            return
        try:
            with _ctrl_c_later():
                self._client, self._cluster = _local(workers)
        except KeyboardInterrupt:
            self.close()
            raise

    @property
    def slots(self) -> int:
        """Number of cells with which every worker has one batch in progress and one waiting."""
        return 2 * max(BATCH.values()) * max(1, self.workers)

    @property
    def workers(self) -> int:
        """Present number of workers; a site's cluster may have none at first."""
        with self._connection():
            return len(self._client.scheduler_info(n_workers=-1)["workers"])

    def submit(self, cell: Cell) -> None:
        """Add a cell to the next batch of its method."""
        batch = self._batches.setdefault(cell.method, [])
        batch.append(cell)
        if len(batch) >= BATCH[cell.method]:
            with self._connection():
                self._send(cell.method)

    def outcomes(self) -> Iterator[tuple[str, str | None]]:
        """Wait until a batch is complete; yield the key of each cell and any failure."""
        with self._connection():
            for method in list(self._batches):
                self._send(method)
            future = next(self._done)
            keys = self._futures.pop(future)
            if future.cancelled():
                raise SchedulerFailure(LOST)
            error = future.exception()
            if isinstance(error, StudyError | StudyFailure):
                raise error  # a store error affects all cells
            answers = dict.fromkeys(keys, _sentence(error)) if error else future.result()
            future.release()
        yield from answers.items()

    def close(self) -> None:
        """End workers started here; on a site's cluster only the submitted cells are cancelled."""
        with _ctrl_c_later():
            # If the scheduler has ended, Dask's attempts to reconnect may raise errors.
            with suppress(SchedulerFailure), self._connection():
                if self._client.status == "running":
                    self._client.cancel(list(self._futures), force=True)
                self._client.close()
            if self._cluster is not None:
                self._cluster.close()

    def _send(self, method: str) -> None:
        cells = self._batches.pop(method, [])
        if not cells:
            return
        future = self._client.submit(compute_batch, cells, self._store, self._command, pure=False)
        self._futures[future] = [cell.key for cell in cells]
        if self._done is None:
            self._done = distributed.as_completed([future])
        else:
            self._done.add(future)

    @contextmanager
    def _connection(self) -> Iterator[None]:
        """Turn any error in the block into SchedulerFailure if the connection is lost."""
        try:
            yield
        except Exception as error:
            # A closed connection may raise an error before the client's status changes.
            if self._client.status == "running" and not isinstance(error, core.CommClosedError):
                raise
            raise SchedulerFailure(LOST) from None


def compute(cell: Cell, store: Store) -> str | None:
    """Compute a cell and store its result. Return None, or a sentence on why there is no result."""
    try:
        result = cell.compute()
    except (ScenarioError, SimulationError, MeasureError) as error:
        return str(error)
    except MemoryError:
        return "out of memory"
    except StoppedError:  # a partial result is not stored
        raise KeyboardInterrupt from None
    store.put(cell, result)
    return None


def compute_batch(cells: list[Cell], store: Path, command: str) -> dict[str, str | None]:
    """Compute and store cells in a worker. Return by key None, or why there is no result."""
    opened = _open(store, command, threading.get_ident())
    answers = {cell.key: compute(cell, opened) for cell in cells}
    opened.sync()  # other nodes may read the results now
    return answers


@functools.cache
def _open(path: Path, command: str, thread: int) -> Store:
    """Return the open store of a thread; a site's workers may have several threads."""
    return Store.open(path, create=False, command=command)


def _client_of(address: str) -> Client:
    """Connect to a site's scheduler. Raises StudyError."""
    _silence()
    try:
        return distributed.Client(address, timeout=CONNECT_S)
    except (OSError, ValueError) as error:
        raise StudyError(
            f"--scheduler {address}: there is no Dask scheduler ({type(error).__name__}); "
            'expected an address such as "tcp://node1:8786"'
        ) from None


def _local(workers: int) -> tuple[Client, Any]:
    """Start worker processes on this machine, and here a scheduler on the loopback address."""
    dask.config.set(
        {
            "distributed.scheduler.allowed-failures": DEATHS_ALLOWED,
            "distributed.worker.daemon": True,
            "distributed.admin.log-length": 0,
            "distributed.worker.profile.enabled": False,  # samples every thread 100 times a second
            "distributed.admin.tick.interval": "1 s",
        }
    )
    _silence()
    cluster = distributed.LocalCluster(
        n_workers=workers or os.cpu_count() or 1,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",  # None: all interfaces, a fixed port
        silence_logs=logging.CRITICAL,
    )
    return distributed.Client(cluster), cluster


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until the end of the `with` block. Processes started in the block
    never receive Ctrl-C: a terminal sends it to all processes, and Dask's would end with
    tracebacks. Only threads started in the block, and processes that these start, inherit the
    signal mask."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    resource_tracker.ensure_running()  # its later start would unblock SIGINT
    later = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.signal(each, lambda number, _: pressed.append(number)) for each in later]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for each, handler in zip(later, handlers, strict=True):
            signal.signal(each, handler)
    if pressed:
        raise KeyboardInterrupt


def _silence() -> None:
    """Switch off Dask's log messages; failures are reported through futures."""
    import_module("distributed")  # creates the loggers
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _sentence(error: BaseException) -> str:
    if isinstance(error, scheduler.KilledWorker):
        return f"{DEATHS_ALLOWED + 1} workers died over it; it may need more memory than they have"
    return f"{type(error).__name__}: {error}"
