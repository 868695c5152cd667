"""Logs of a site, in any format that daqloom reads."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, cast

from daqloom.faults import FaultsError, counters, opensm_log, syslog, table_log
from daqloom.faults.change import Told

LONGEST_LINE = 16_384
MOST_LINES = 100_000_000
MOST_CHANGES = 5_000_000
TRIED = 1000
"""Lines from which the format of a file is told."""

_Is = Callable[[str], bool]
_Read = Callable[[Iterable[str], Told, int], None]
FORMATS: dict[str, tuple[_Is, _Read]] = {
    "opensm": (opensm_log.is_it, opensm_log.read),
    "counters": (counters.is_it, counters.read),
    "syslog": (syslog.is_it, syslog.read),
    "table": (table_log.is_it, table_log.read),
}


def read_logs(
    paths: Sequence[Path],
    year: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Told:
    """Read files, `.gz` or not. `year`: that in which logs without years begin; by default that of
    a file's last change. `progress` is told bytes read and in all. Raises FaultsError for a file
    that cannot be read or is none of the formats; lines that make no sense are counted."""
    told = Told()
    sizes = [path.stat().st_size if path.is_file() else 0 for path in paths]
    for path, before in zip(paths, itertools.accumulate([0, *sizes]), strict=False):
        try:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
                lines = _lines(cast(BinaryIO, file), told, before, sum(sizes), progress)
                first = list(itertools.islice(lines, TRIED))
                own = year or datetime.fromtimestamp(path.stat().st_mtime, UTC).year
                _reader(path, first)(itertools.chain(first, lines), told, own)
        except (OSError, EOFError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise FaultsError(f"cannot read {path}: {str(reason).lower()}") from None
    return told


def _reader(path: Path, first: Sequence[str]) -> _Read:
    """Return the reader of the format that most of the first lines are in."""
    hits = {name: sum(map(is_it, first)) for name, (is_it, _) in FORMATS.items()}
    if first and table_log.is_it(first[0]):
        return table_log.read
    best = max(hits, key=lambda name: hits[name])
    if not hits[best]:
        raise FaultsError(
            f"{path} is no log that daqloom knows; expected OpenSM's log, syslog, a table with a "
            "head such as time,port,state, or the output of ibqueryerrors or perfquery"
        )
    return FORMATS[best][1]


def _lines(
    file: BinaryIO,
    told: Told,
    before: int,
    size: int,
    progress: Callable[[int, int], None] | None,
) -> Iterator[str]:
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        if number > MOST_LINES or len(told.changes) + len(told.outages) > MOST_CHANGES:
            raise FaultsError(
                f"{file.name} has more than {MOST_LINES:,} lines, or all logs together tell more "
                f"than {MOST_CHANGES:,} changes; read fewer at a time"
            )
        if not line.endswith(b"\n") and len(line) == LONGEST_LINE:
            told.lines["too long"] += 1
            while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
        if progress and number % 65536 == 0:
            progress(min(size, before + file.tell()), size)
        yield line.decode("utf-8", "replace").rstrip("\r\n")
