"""The end of processes: which of them are told to end, and when."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from daqloom.machine.launch import Task
from daqloom.machine.processes import Processes

pytestmark = pytest.mark.process
ENDS = """
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: (print('told', flush=True), os._exit(0)))
os.close(os.open(sys.argv[1] + '/up', os.O_WRONLY))
os.read(os.open(sys.argv[1] + '/go', os.O_RDONLY), 1)
print('of itself', flush=True)
"""
"""Says how it ended: told by a signal, or of itself."""


@pytest.mark.parametrize("are_ending", [True, False])
async def test_only_processes_of_remaining_units_get_a_signal(
    tmp_path: Path, are_ending: bool
) -> None:
    for name in ("up", "go"):
        os.mkfifo(tmp_path / name)
    go = os.open(tmp_path / "go", os.O_RDWR)
    processes = Processes(tmp_path, bytes(16), lambda _units, _how: None)
    command = (sys.executable, "-c", ENDS, str(tmp_path))
    processes.start(Task((0, 1), command, ends_units=True))
    await asyncio.to_thread((tmp_path / "up").read_bytes)
    ending = asyncio.create_task(processes.end(are_ending=are_ending))
    await asyncio.sleep(0)
    if are_ending:
        os.write(go, b"x")
    await ending
    os.close(go)
    assert processes.last_lines(0) == ["of itself" if are_ending else "told"]
