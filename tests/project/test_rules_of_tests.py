"""Rules of every test, tried on tests that do not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import skips
from support.repository import ROOT

pytestmark = pytest.mark.process

TESTS = """
import platform
import socket
import subprocess
import threading

import pytest


def test_starts_a_process():
    subprocess.run(["true"])


def test_listens():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))


def test_listens_in_a_thread():
    thread = threading.Thread(target=test_listens)
    thread.start()
    thread.join()


@pytest.mark.process
def test_is_marked():
    subprocess.run(["true"])


goes_on = threading.Event()
left = threading.Thread(target=lambda: goes_on.wait() and test_listens())


@pytest.mark.process
def test_leaves_a_thread():
    left.start()


def test_runs_beside_a_thread_that_another_has_left():
    goes_on.set()
    left.join()


def test_speaks_with_itself():
    for one in socket.socketpair():
        one.close()


def test_asks_what_the_standard_library_knows_by_uname():
    platform.platform()


def test_skips():
    pytest.skip("no reason")


def test_may_skip():
    pytest.skip("no IPv6 here")
"""


def test_processes_networks_and_skips_are_found(tmp_path: Path) -> None:
    (tmp_path / "test_these.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "--rootdir", str(tmp_path)]
    command += ["-c", str(ROOT / "pyproject.toml"), "-p", "support.process_mark"]
    command += ["-p", "support.skips", "-p", "no:cacheprovider", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    found = {
        line.partition("::")[2].split()[0]
        for line in done.stdout.splitlines()
        if line.startswith("FAILED")
    }
    wrong = {"test_starts_a_process", "test_listens", "test_listens_in_a_thread"}
    assert found == wrong | ({"test_skips"} if skips.is_complete() else set()), done.stdout
