"""Processes that a process has started."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HUNG_S = 60.0
"""Ends a test that hangs; no test waits for it."""


def children(parent: int | None = None) -> list[int]:
    """Return the children of a process, by default this one, that it has not yet waited for."""
    pid = parent or os.getpid()
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def killed_and_living(code: str, *arguments: str) -> Iterator[list[str]]:
    """Run a program twice, kill the first one, and yield the line that each printed before."""
    names = ("killed", "living")
    commands = [[sys.executable, "-c", code, *arguments, name] for name in names]
    programs = [subprocess.Popen(each, stdout=subprocess.PIPE, text=True) for each in commands]
    try:
        lines = [program.stdout.readline().strip() for program in programs]
        programs[0].kill()
        programs[0].wait(HUNG_S)
        yield lines
    finally:
        for program in programs:
            program.kill()
            program.communicate()
