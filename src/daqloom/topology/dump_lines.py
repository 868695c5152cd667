"""The lines of a dump, bounded and fit for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from daqloom.topology.errors import TopologyError

LARGEST_DUMP_BYTES = 512 << 20
LONGEST_LINE = 4096


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of a dump without what ends them; raises TopologyError.

    Tabs come as spaces, and what a terminal would obey as `?`, wherever it stands.
    """
    size = 0
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            for number in count(1):
                line = file.readline(LONGEST_LINE + 1)
                size += len(line)
                if "\0" in line:
                    raise TopologyError(f"{path} is a binary file; expected text")
                if len(line) > LONGEST_LINE:
                    raise TopologyError(
                        f"{path}, line {number} is longer than the {LONGEST_LINE} characters of "
                        "any dump"
                    )
                if size > LARGEST_DUMP_BYTES:
                    raise TopologyError(
                        f"{path} is larger than the {LARGEST_DUMP_BYTES >> 20} MiB that are allowed"
                    )
                if not line:
                    return
                yield number, printable(line.rstrip("\r\n").replace("\t", " "))
    except UnicodeDecodeError:
        raise TopologyError(f"{path} is a binary file; expected text") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TopologyError(f"{path} cannot be read: {reason}") from None
    except ValueError:
        raise TopologyError("a file name cannot hold a null character") from None


def printable(text: str) -> str:
    """The text with `?` for what a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else "?" for c in text)
