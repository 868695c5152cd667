"""Signals that end a program whatever it waits for."""

import signal
import subprocess
import sys

import pytest

from support.measure.controlled_runs import HUNG_S

pytestmark = pytest.mark.process

WAITS = """
import ctypes, signal, sys
from daqloom.softswitch import signals
signals.LONGEST_END_S = 100.0 if sys.argv[1] == "start" else 0.2
with signals.watched_signals() as watched:
    if sys.argv[1] != "start":
        watched.end = lambda: print("asked", flush=True)
    print("waits", flush=True)
    if sys.argv[1] == "library":
        mutex = ctypes.create_string_buffer(64)
        ctypes.CDLL(None).pthread_mutex_lock(mutex)
        ctypes.CDLL(None).pthread_mutex_lock(mutex)
    else:
        while True:
            signal.pause()
"""


def ended(how: str, number: signal.Signals) -> tuple[int, str, str]:
    program = subprocess.Popen(
        [sys.executable, "-c", WAITS, how],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert program.stdout.readline() == "waits\n"
        program.send_signal(number)
        said, errors = program.communicate(timeout=HUNG_S)
        return program.returncode, said, errors
    finally:
        program.kill()
        program.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_switch_that_ignores_a_signal_is_killed(number):
    code, said, errors = ended("python", number)
    assert (code, said) == (1, "asked\n")
    assert errors.startswith("daqloom: the switch did not end within")


def test_a_start_is_interrupted_and_a_library_that_never_returns_ended():
    assert "KeyboardInterrupt" in ended("start", signal.SIGTERM)[2]
    assert ended("library", signal.SIGTERM)[0] == 1
