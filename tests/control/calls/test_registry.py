"""Secrets of runs and switches: found while their process lives, and not left behind."""

import os
import subprocess
import sys

import pytest

from daqloom.control.calls.registry import Listener, find_run, publish
from daqloom.control.persistence.store import Store
from daqloom.machine.foreign import began_of
from daqloom.machine.processes import ProcessRecord
from daqloom.results.errors import MeasureError
from support.measure.controlled_runs import HUNG_S
from support.measure.virtual_run import World

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


def test_a_run_without_its_run_control_is_named(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("DAQLOOM_RUNS", str(tmp_path / "runs"))
    run = tmp_path / "runs" / "20261130-190500-laptop"
    run.mkdir(parents=True)
    world = World(2, control_grace_s=60.0)
    mine = ProcessRecord((0, 1), os.getpid(), began_of(os.getpid()))
    Store.new(run, "laptop", "abcd1234", {}).save(world.control, 5.0, 10**18, [mine])
    with pytest.raises(MeasureError, match=f"{run.name} has no run control now; .*--folder {run}"):
        find_run(None)
    gone = ProcessRecord((0, 1), os.getpid(), began_of(os.getpid()) - 1)
    Store.new(run, "laptop", "abcd1234", {}).save(world.control, 5.0, 10**18, [gone])
    with pytest.raises(MeasureError, match="you have no run on this machine"):
        find_run(None)
