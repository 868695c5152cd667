"""Stores of studies whose results identify their cell."""

import errno
import functools
from collections.abc import Callable, Iterable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from daqloom.results.result import Result
from daqloom.scenario import Scenario
from daqloom.study.file.cell import SEEDED, Cell
from daqloom.study.store.store import Store

SCENARIO = Scenario(name="small")
HASH = SCENARIO.hash()
"""Computed once: a hash takes a millisecond, and some tests read ten thousand results."""


@functools.cache
def cell(seed: int, method: str = "simulate") -> Cell:
    drawn = seed if method in SEEDED else None
    return Cell(SCENARIO, {}, method, drawn, HASH)


def result(seed: int, method: str = "simulate", **more: Any) -> Result:
    """Return a result whose numbers identify its cell."""
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


def files(path: Path) -> list[Path]:
    """Return the files of results, and any others."""
    return sorted(each for each in (path / "cells").rglob("*") if each.is_file())


def file_of(path: Path, seed: int) -> Path:
    """Return the file of a cell's result."""
    [found] = (path / "cells").rglob(f"{cell(seed).key}.json.gz")
    return found


def rewrite(file: Path, change: Callable[[bytes], bytes]) -> None:
    """Change a file in place."""
    file.write_bytes(change(file.read_bytes()))


def with_flipped_bit(content: bytes, at: int = -5, bit: int = 0) -> bytes:
    """Flip a bit, by default in the checksum of a gzip file."""
    at %= len(content)
    return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]


def right_ones(store: Store, seeds: Iterable[int]) -> int:
    """Return the number of stored cells; none may have the numbers of another."""
    found = 0
    for seed in seeds:
        kept = store.get(cell(seed).key)
        if kept is not None:
            assert kept == result(seed)
            found += 1
    return found


def refuse(*_: object) -> None:
    raise OSError(errno.EIO, "no")
