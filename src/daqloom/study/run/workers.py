"""Workers of Dask that compute cells: processes of this machine, or of a site's cluster.

A worker writes each result to the store and returns only the key, so that killing it costs
the time of its cell and nothing else, and no result ever waits in the scheduler's memory.
"""

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
"""Cells that travel together: one of a millisecond is not worth a message of its own. Timed cells
do not travel."""
CONNECT_S = "10 s"
DEATHS_ALLOWED = 3
"""Workers that may die during a cell before it is given up."""
LOST = "the Dask scheduler has gone; computed results are in the store, the same command continues"


class DaskExecutor:
    """Computes cells by `workers` processes of this machine, or by the workers of the scheduler at
    `address`."""

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
        """Return enough cells for every worker to have a batch under way and one waiting."""
        return 2 * max(BATCH.values()) * max(1, self.workers)

    @property
    def workers(self) -> int:
        """Return the number of workers now; a site's cluster may begin with none."""
        with self._connected():
            return len(self._client.scheduler_info(n_workers=-1)["workers"])

    def submit(self, cell: Cell) -> None:
        """Add a cell to the next batch of its method."""
        batch = self._batches.setdefault(cell.method, [])
        batch.append(cell)
        if len(batch) >= BATCH[cell.method]:
            with self._connected():
                self._send(cell.method)

    def completed(self) -> Iterator[tuple[str, str | None]]:
        """Wait until a batch is done."""
        with self._connected():
            for method in list(self._batches):
                self._send(method)
            future = next(self._done)
            keys = self._futures.pop(future)
            if future.cancelled():
                raise SchedulerFailure(LOST)
            error = future.exception()
            if isinstance(error, StudyError | StudyFailure):
                raise error  # of the store, so that no other cell could be kept either
            answers = dict.fromkeys(keys, _sentence(error)) if error else future.result()
            future.release()
        yield from answers.items()

    def close(self) -> None:
        """End workers that were started here; those of a site's cluster only lose their work."""
        with _ctrl_c_later():
            # Where the scheduler is gone, distributed may stumble over its own reconnecting.
            with suppress(SchedulerFailure), self._connected():
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
    def _connected(self) -> Iterator[None]:
        """Raise SchedulerFailure for any error while there is no connection."""
        try:
            yield
        except Exception as error:
            # A connection that closes under way is reported before the client's status changes.
            if self._client.status == "running" and not isinstance(error, core.CommClosedError):
                raise
            raise SchedulerFailure(LOST) from None


def compute(cell: Cell, store: Store) -> str | None:
    """Compute a cell and store it; returns the sentence on why that was not possible."""
    try:
        result = cell.compute()
    except (ScenarioError, SimulationError, MeasureError) as error:
        return str(error)
    except MemoryError:
        return "out of memory"
    except StoppedError:  # the part of a run before Ctrl-C is no result of its cell
        raise KeyboardInterrupt from None
    store.put(cell, result)
    return None


def compute_batch(cells: list[Cell], store: Path, command: str) -> dict[str, str | None]:
    """Compute cells and store them, in a worker: key → None, or why there is no result."""
    opened = _open(store, command, threading.get_ident())
    answers = {cell.key: compute(cell, opened) for cell in cells}
    opened.sync()  # other nodes read it now
    return answers


@functools.cache
def _open(path: Path, command: str, thread: int) -> Store:
    """Return a store for each thread: a site's workers may have several."""
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
    """Start processes of this machine, and a scheduler in this one that only they can reach."""
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
        dashboard_address="127.0.0.1:0",  # None would listen on all interfaces, on a usual port
        silence_logs=logging.CRITICAL,
    )
    return distributed.Client(cluster), cluster


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back until the body is done.

    Processes that the body begins never receive Ctrl-C: a terminal sends it to all at once, and
    Dask's would die with tracebacks of their own. Only threads that the body begins, and through
    them their processes, inherit the mask.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    resource_tracker.ensure_running()  # would lift the mask of the thread that needs it first
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
    """Switch off Dask's logs, which are for its developers; failures come back through futures."""
    import_module("distributed")  # creates them
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _sentence(error: BaseException) -> str:
    if isinstance(error, scheduler.KilledWorker):
        return f"{DEATHS_ALLOWED + 1} workers died over it; it may need more memory than they have"
    return f"{type(error).__name__}: {error}"
