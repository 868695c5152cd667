"""Processes that a process has started."""

import os
from pathlib import Path


def children(of: int | None = None) -> list[int]:
    """Return those of a process, by default this one, that it has not yet waited for."""
    pid = of or os.getpid()
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
