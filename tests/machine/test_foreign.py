"""Processes of another parent: recognised by number and start, and watched."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from daqloom.machine.foreign import Foreign, began_of
from daqloom.machine.launch import Task
from daqloom.machine.processes import Processes, ProcessRecord

pytestmark = pytest.mark.process
WAITS = (sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()")


@pytest.fixture
def child():
    with subprocess.Popen(WAITS, stdout=subprocess.PIPE, start_new_session=True) as process:
        process.stdout.readline()
        yield process
        process.kill()


async def test_the_end_of_a_process_is_noticed(child):
    foreign = Foreign(child.pid, began_of(child.pid))
    waiting = asyncio.create_task(foreign.wait())
    await asyncio.sleep(0)
    assert foreign.returncode is None
    child.kill()
    await waiting
    assert foreign.returncode == 0


def test_a_number_that_another_process_has_by_now_is_not_taken_for_the_process(child):
    with pytest.raises(ProcessLookupError):
        Foreign(child.pid, began_of(child.pid) + 1)
    with pytest.raises(ProcessLookupError):
        Foreign(child.pid, 0)
    began = began_of(child.pid)
    child.kill()
    child.wait()
    assert began_of(child.pid) == 0
    with pytest.raises(ProcessLookupError):
        Foreign(child.pid, began)


async def test_an_adopted_process_is_killed_and_its_end_reported(tmp_path, child):
    ended = asyncio.Queue()
    processes = Processes(tmp_path, bytes(16), lambda units, how: ended.put_nowait((units, how)))
    assert not processes.adopt(ProcessRecord((5,), child.pid, 1))
    known = ProcessRecord((3,), child.pid, began_of(child.pid))
    assert processes.adopt(known)
    assert processes.records == [known]
    processes.kill(3)
    assert await ended.get() == ((3,), "it was started by an earlier run control")
    assert child.wait() == -signal.SIGKILL
    assert processes.records == []


async def test_the_input_of_a_process_that_outlives_its_parent_stays_open(tmp_path):
    """The process itself holds the other end, like ssh with a unit that ends with its input."""
    reads = (sys.executable, "-c", "import os; os.read(0, 99); os.write(1, b'read'); os.read(0, 1)")
    ended = asyncio.Queue()
    processes = Processes(
        tmp_path, bytes(16), lambda units, how: ended.put_nowait(how), outlive=True
    )
    processes.start(Task((0,), reads, input_stays_open=True))
    while not processes.last_lines(0):
        await asyncio.sleep(0.01)
    [started] = processes.records
    links = {os.readlink(f"/proc/{started.pid}/fd/{fd}") for fd in (0,)}
    ours = {
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{fd}")
    }
    assert not links & ours
    assert ended.empty()
    await processes.end()
    assert ended.get_nowait() == "SIGKILL"
