"""Secrets of runs and switches: found while their process lives, and not left behind."""

import os
import subprocess
import sys

import pytest

from daqloom.control.calls.registry import Listener, find_run, publish
from daqloom.results.errors import MeasureError
from support.measure.controlled_runs import HUNG_S

HOLDS = """
import os, signal, socket
from daqloom.control.calls.registry import publish, runs_folder
at = socket.socket(socket.AF_UNIX)
at.bind(str(runs_folder() / f"{os.getpid()}.socket"))
at.listen()
with publish("127.0.0.1:4711", bytes(16), bytes(16)):
    print("published", flush=True)
    signal.pause()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "daqloom"


@pytest.mark.process
def test_the_next_start_removes_secrets_and_sockets_of_a_killed_process(folder):
    program = subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout.readline()
        names = ["4711.steer", "4711.token", f"{program.pid}.socket"]
        assert find_run(None) == Listener("127.0.0.1:4711", bytes(16))
        with publish("127.0.0.1:815", bytes(16)):
            assert sorted(os.listdir(folder)) == sorted([*names, "815.steer"])
        program.kill()
        program.wait(HUNG_S)
        assert sorted(os.listdir(folder)) == sorted(names)
        with pytest.raises(MeasureError, match="you have no run on this machine"):
            find_run(None)
        with publish("127.0.0.1:815", bytes(16)):
            assert os.listdir(folder) == ["815.steer"]
    finally:
        program.kill()
        program.communicate()
    assert os.listdir(folder) == []


def test_a_secret_is_in_a_file_of_this_user_alone(folder):
    with publish("127.0.0.1:4711", bytes(16), bytes(range(16))) as token:
        assert token.read_text() == bytes(range(16)).hex()
        assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
