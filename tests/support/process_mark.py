"""Tests without the mark `process` start no process and use no network.

`make test-fast` runs those. A test without the mark fails at such a call. Sockets that are opened
in C, as those of gRPC, are not detected: their tests are marked by hand.
"""

from __future__ import annotations

import socket
import sys
from typing import Any

import pytest

NETWORKS = (socket.AF_INET, socket.AF_INET6)
PROCESSES = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system")

_is_alone = False
_done: list[str] = []
"""What the test has done, in any of its threads, that it may not do."""


def watch(item: pytest.Item) -> None:
    """Watch a test from now on, unless it is marked."""
    global _is_alone
    _is_alone = item.get_closest_marker("process") is None
    _done.clear()


def violation() -> str:
    """Return why the test fails that is watched, if it does, and forget it."""
    if not _done:
        return ""
    first = _done[0]
    _done.clear()
    return (
        f"the test does {first}: one that starts a process or uses a network has the mark"
        " pytest.mark.process (tests/support/process_mark.py)"
    )


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if _is_alone and (
        event in PROCESSES
        or (event in ("socket.bind", "socket.connect") and arguments[0].family in NETWORKS)
    ):
        _done.append(event)


sys.addaudithook(_listen)
