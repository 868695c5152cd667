"""Reader of a site's logs in any of the known formats, as one log."""

from __future__ import annotations

import gzip
import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from daqloom.base.line_counts import IGNORED, USED, CountedLines, NotUnderstoodError
from daqloom.base.words import printable, reason_of
from daqloom.faults import FaultsError
from daqloom.faults.logs import counters, opensm_log, syslog, table_log
from daqloom.faults.logs.change import COUNTERS, LogContent
from daqloom.faults.logs.clock import MONTHS
from daqloom.scenario.files import open_regular, without_mark

LONGEST_LINE = 16_384
LONGEST_SKIPPED = 16 << 20
"""Limit on the skipped rest of a longer line (B); a file beyond it is not text."""
MOST_LINES = 100_000_000
MOST_CHANGES = 5_000_000
MOST_EXPANDED = 400
"""Limit on the ratio of unpacked to packed size of a `.gz`; not checked below `LARGE`."""
LARGE = 256 << 20
TABLE = "table"
TRIED = 1000
"""Number of first lines from which a file's format is recognised."""
KINDS = (
    "OpenSM's log, syslog and `show logging` of switches and hosts, `dmesg -T`, the output of "
    "ibqueryerrors and perfquery, and a table with a head such as time,port,state"
)


class _Format(NamedTuple):
    is_it: Callable[[str], bool]
    """Whether a line has the format."""
    read: Callable[[CountedLines, LogContent, int, str], None]
    """Reader of the format; its last two arguments are the first year of a log without years, and
    the order of day and month."""
    subject: str
    """Subject of the lines that the reader uses, for messages."""


FORMATS = {
    "opensm": _Format(opensm_log.is_it, opensm_log.read, opensm_log.SUBJECT),
    COUNTERS: _Format(counters.is_it, counters.read, counters.SUBJECT),
    "syslog": _Format(syslog.is_it, syslog.read, syslog.SUBJECT),
    TABLE: _Format(lambda _: False, table_log.read, table_log.SUBJECT),
}


def read_logs(
    paths: Sequence[Path],
    year: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    dates: str = "",
) -> LogContent:
    """Read files, with or without `.gz`, as one log. `year`: first year of logs without years
    (default: from the time of the file's last change). `dates`: see `table_log.read`. `progress` is
    called with the bytes read and the total. Raises FaultsError for an unreadable file, or if less
    than half of a file was understood."""
    log = LogContent()
    sizes = [path.stat().st_size if path.is_file() else 0 for path in paths]
    for path, before in zip(paths, itertools.accumulate([0, *sizes]), strict=False):
        with _open(path) as file:
            lines = _lines(path, file, log, before, sum(sizes), progress)
            first = list(itertools.islice(lines, TRIED))
            name = _format(path, first)
            all_lines = CountedLines(
                printable(str(path)), itertools.chain(first, lines), FORMATS[name].subject, KINDS
            )
            FORMATS[name].read(all_lines, log, year or _year(path, first), dates)
        log.formats[name] += 1
        log.lines.update(all_lines.counts)
        if all_lines.first_malformed and not log.first_malformed:
            where = f"{printable(path.name)}, " if len(paths) > 1 else ""
            log.first_malformed = where + all_lines.first_malformed
        try:
            all_lines.check()
        except NotUnderstoodError as error:
            raise FaultsError(str(error)) from None
    _add_repeated(log)
    return log


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    """Yield the open file, decompressed if it is a `.gz`. Raises FaultsError."""
    name = printable(str(path))
    try:
        with open_regular(path) as file:
            if path.suffix != ".gz":
                yield without_mark(file)
                return
            with gzip.open(file) as unpacked:
                yield without_mark(cast(BinaryIO, unpacked))
    except (zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise FaultsError(
            f"{name} cannot be unpacked: {str(error).lower()}; the file is damaged or no .gz"
        ) from None
    except (OSError, ValueError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else error
        raise FaultsError(f"cannot read {name}: {reason}") from None


def _format(path: Path, first: Sequence[str]) -> str:
    """Return the name of the format that matches most of the first lines."""
    if table_log.is_it(first):
        return TABLE
    hits = {name: sum(map(each.is_it, first)) for name, each in FORMATS.items()}
    best = max(hits, key=lambda name: hits[name])
    if not hits[best]:
        head = next((line for line in first if line.strip()), "")
        shown = f'; the first line is "{printable(head[:100])}"' if head else "; the file is empty"
        raise FaultsError(
            f"{printable(str(path))} is no supported log{shown}; supported are {KINDS}; "
            f"tables have {table_log.names_in_words()}"
        )
    return best


def _year(path: Path, first: Iterable[str]) -> int:
    """Return the first year of a log without years; its last line has the age of the file."""
    changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    months = (MONTHS.index(line[:3]) + 1 for line in first if line[:3] in MONTHS)
    return changed.year - (next(months, 1) > changed.month)


def _add_repeated(log: LogContent) -> None:
    """Add the changes from a second source for ports without changes from the first source."""
    known = {change.port for change in log.changes}
    added = [change for change in log.repeated if change.port not in known]
    if added:
        log.changes += added
        log.lines[USED] += len(added)
        log.lines[IGNORED] -= len(added)


def _lines(
    path: Path,
    file: BinaryIO,
    log: LogContent,
    before: int,
    size: int,
    progress: Callable[[int, int], None] | None,
) -> Iterator[str]:
    number = 0
    packed = path.stat().st_size if path.suffix == ".gz" else 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        if number > MOST_LINES or len(log.changes) + len(log.outages) > MOST_CHANGES:
            raise FaultsError(
                f"{printable(str(path))} has more than {MOST_LINES:,} lines, or all logs together "
                f"have more than {MOST_CHANGES:,} changes; read fewer at a time"
            )
        if not line.endswith(b"\n") and len(line) == LONGEST_LINE:
            log.lines["too long"] += 1
            _skip_rest(path, file)
        if number % 65536 == 0:
            at = file.tell()
            if packed and at > max(LARGE, MOST_EXPANDED * packed):
                raise FaultsError(
                    f"{printable(str(path))} unpacks to more than {MOST_EXPANDED} times its size, "
                    "as no log does; unpack it and read the part that is a log"
                )
            if progress:
                progress(min(size, before + at), size)
        yield line.decode("utf-8", "replace").rstrip("\r\n")


def _skip_rest(path: Path, file: BinaryIO) -> None:
    skipped = 0
    while (rest := file.readline(1 << 20)) and not rest.endswith(b"\n"):
        skipped += len(rest)
        if skipped > LONGEST_SKIPPED:
            raise FaultsError(
                f"{printable(str(path))} has a line of more than {LONGEST_SKIPPED >> 20} MiB; "
                "expected a log, which is text"
            )
