"""Processes of another parent: found again by number and start, watched by pidfd."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path


def began_of(pid: int) -> int:
    """Return the start of a process in clock ticks since the start of the machine; 0: it has
    ended."""
    with suppress(OSError, ValueError, IndexError):
        text = Path(f"/proc/{pid}/stat").read_bytes()
        state, *rest = text.rpartition(b")")[2].split()  # the name may contain anything
        return 0 if state in (b"Z", b"X") else int(rest[18])
    return 0


class Foreign:
    """A running process that another process has started."""

    def __init__(self, pid: int, began: int) -> None:
        """Raise ProcessLookupError if the process with this number and start has ended."""
        self.pid = pid
        self.returncode: int | None = None
        try:
            self._handle = os.pidfd_open(pid)
        except OSError:
            raise ProcessLookupError(f"process {pid} has ended") from None
        if not began or began_of(pid) != began:
            os.close(self._handle)
            raise ProcessLookupError(f"process {pid} has ended")

    async def wait(self) -> int:
        """Wait for the end; return 0, because the exit code is unknown."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._handle, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self._handle)
            os.close(self._handle)
        self.returncode = 0
        return 0
