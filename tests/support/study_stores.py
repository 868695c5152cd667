"""Stores of studies whose results tell which cell they belong to."""

import errno
import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from daqloom.result import Result
from daqloom.scenario import Scenario
from daqloom.study.cell import SEEDED, Cell
from daqloom.study.store import Store

SCENARIO = Scenario(name="small")
HASH = SCENARIO.hash()
"""Computed once: a hash takes a millisecond, and some tests look at ten thousand results."""


@functools.cache
def cell(seed: int, method: str = "simulate") -> Cell:
    drawn = seed if method in SEEDED else None
    return Cell(SCENARIO, {}, method, drawn, HASH)


def result(seed: int, method: str = "simulate", **more: Any) -> Result:
    """A result whose numbers tell which cell it belongs to."""
    more.setdefault("warnings", [])  # as they come back; a tuple would not be equal
    return Result(
        scenario=SCENARIO.name,
        scenario_hash=HASH,
        method=method,
        seed=seed,
        version="1.2.3",
        metrics={"events_built": seed, "collection_latency_s": {"mean": 1 / (seed + 3)}},
        **more,
    )


def fill(path: Path, seeds: range) -> None:
    with Store.open(path, create=True) as store:
        for seed in seeds:
            store.put(cell(seed), result(seed))


def fill_at_once(path: Path, seeds: range, start: Barrier) -> None:
    """`fill`, in a process that waits for the others."""
    start.wait()
    fill(path, seeds)


def segments(path: Path) -> list[Path]:
    return sorted((path / "segments").iterdir())


@contextmanager
def changed(segment: Path, at: int, to: int) -> Iterator[None]:
    """Another byte at one place of a file; in place, since a disk takes a tenth of the time."""
    file = os.open(segment, os.O_RDWR)
    try:
        before = os.pread(file, 1, at)
        os.pwrite(file, bytes([to]), at)
        yield
        os.pwrite(file, before, at)
    finally:
        os.close(file)


def right_ones(store: Store, seeds: range) -> int:
    """How many of the cells are there; none may be there with another's numbers."""
    found = 0
    for seed in seeds:
        kept = store.get(cell(seed).key)
        if kept is not None:
            assert kept == result(seed)
            found += 1
    return found


def told(store: Store) -> int:
    """How many results the store says are lost."""
    return sum(damage.results_lost or 0 for damage in store.damages)


def refuse(*_: object) -> None:
    raise OSError(errno.EIO, "no")
