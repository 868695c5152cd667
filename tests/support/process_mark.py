"""Tests without the mark `process` start no process and use no network.

`make test-fast` runs those. A test without the mark fails at such a call. Sockets that are opened
in C, as those of gRPC, are not detected: their tests are marked by hand.
"""

import platform
import socket
import sys
import threading
from collections.abc import Generator
from typing import Any

import pytest

from daqloom.base.version import commit

NETWORKS = (socket.AF_INET, socket.AF_INET6)
PROCESSES = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system")

_is_watched = False
_done: list[str] = []
"""Acts of the watched test, in any of its threads, that it may not do."""
_others: set[threading.Thread] = set()
"""Threads that earlier tests have left, such as one that a device keeps waiting."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Watch a test from now on, unless it is marked."""
    global _is_watched
    _is_watched = item.get_closest_marker("process") is None
    _done.clear()
    _others.clear()
    _others.update(threading.enumerate())
    _others.discard(threading.current_thread())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that has done what it may not do."""
    report = yield
    if _done and not report.failed:
        report.outcome = "failed"
        report.longrepr = (
            f"the test does {_done[0]}: one that starts a process or uses a network has the mark"
            " pytest.mark.process (tests/support/process_mark.py)"
        )
    _done.clear()
    return report


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if not _is_watched or threading.current_thread() in _others:
        return
    if event in PROCESSES or (
        event in ("socket.bind", "socket.connect") and arguments[0].family in NETWORKS
    ):
        _done.append(event)


# They start uname and git the first time, and know the answer from then on.
platform.platform()
commit()
sys.addaudithook(_listen)
