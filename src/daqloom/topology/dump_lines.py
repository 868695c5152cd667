"""Bounded reader of text dumps from network tools; control characters are escaped."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from daqloom.base.line_counts import CountedLines, NotUnderstoodError
from daqloom.base.words import printable, reason_of
from daqloom.scenario.files import open_text, read_text
from daqloom.topology import TopologyError

LARGEST_DUMP_BYTES = 512 << 20
LONGEST_LINE = 4096


def lines_of(
    path: Path, largest_bytes: int | None = None, *, in_columns: bool = False
) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a dump or of a list of hosts, without line ends; raises
    TopologyError. Tabs become spaces. Control characters are escaped, unless `in_columns` is set
    because the reader escapes each column. A line that is not UTF-8 is read as Latin-1, since
    descriptions of nodes may hold any bytes."""
    size, most = 0, largest_bytes or LARGEST_DUMP_BYTES
    try:
        with open_text(path) as file:
            for number in count(1):
                line = file.readline(LONGEST_LINE + 1)
                size += len(line)
                if b"\0" in line:
                    raise TopologyError(f"{path} is a binary file; expected text")
                if len(line) > LONGEST_LINE:
                    longest = f"the {LONGEST_LINE} bytes of any dump"
                    raise TopologyError(f"{path}, line {number} is longer than {longest}")
                if size > most:
                    raise TopologyError(f"{path} is larger than {most >> 20} MiB, the most allowed")
                if not line:
                    return
                text = _decode(line).rstrip("\r\n").replace("\t", " ")
                yield number, text if in_columns else printable(text)
    except OSError as error:
        raise TopologyError(f"{path} cannot be read: {reason_of(error)}") from None
    except ValueError:
        raise TopologyError("a file name cannot hold a null character") from None


def whole_text(path: Path, largest_bytes: int, expected: str) -> str:
    """Return the text of a file; raises TopologyError, with `expected` for an empty file."""
    try:
        text = read_text(path, largest_bytes)
    except ValueError as error:
        raise TopologyError(str(error)) from None
    if not text.strip():
        raise TopologyError(f"{path} is empty; {expected}")
    return text


def counted_lines(
    path: Path,
    subject: str,
    kinds: str,
    largest_bytes: int | None = None,
    *,
    in_columns: bool = False,
) -> CountedLines:
    """Return the lines of `lines_of` with counts of used, ignored and malformed lines."""
    lines = (line for _, line in lines_of(path, largest_bytes, in_columns=in_columns))
    return CountedLines(str(path), lines, subject, kinds)


def check_understood(lines: CountedLines) -> None:
    """Raise TopologyError if the reader understood less than half of the lines."""
    try:
        lines.check()
    except NotUnderstoodError as error:
        raise TopologyError(str(error)) from None


def _decode(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")
