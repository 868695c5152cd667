"""Processes that a process has started."""

import os
from pathlib import Path


def children(parent: int | None = None) -> list[int]:
    """Return the children of a process, by default this one, that it has not yet waited for."""
    pid = parent or os.getpid()
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
