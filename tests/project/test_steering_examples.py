"""The examples that steer a run, follow it, or run as its hooks."""

import asyncio
import contextlib
import json
import os
import socket
import sys
from pathlib import Path

import pytest

from daqloom.control.hooks.document import load_hooks
from daqloom.control.protocol.states import Phase
from daqloom.control.run_numbers import RunNumbers
from daqloom.control.status import Request
from daqloom.control.steering import SteeringOptions
from support.measure.controlled_runs import HUNG_S, controlled, running
from support.repository import ROOT

pytestmark = pytest.mark.process

STEERING = ROOT / "examples" / "steering"
HOOKS = ROOT / "examples" / "hooks"
EPICS_CLIENT = """
import sys
from caproto.sync.client import read, write
verb, name, value = sys.argv[1:]
if verb == "write":
    write(name, value, notify=True, repeater=False, timeout=60)
while verb == "until":
    found = read(name, repeater=False, timeout=60).data[0]
    if (found.decode() if isinstance(found, bytes) else str(found)) == value:
        break
"""


@pytest.fixture
def environment(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    return monkeypatch


@contextlib.asynccontextmanager
async def published(tmp_path, **options):
    steering = SteeringOptions(numbers=RunNumbers(tmp_path / "run-number"), **options)
    async with controlled(tmp_path, steering=steering) as control:
        with control.publish():
            yield control


async def program(*words):
    return await asyncio.create_subprocess_exec(
        sys.executable, *map(str, words), stdout=asyncio.subprocess.PIPE
    )


async def output(process):
    async with asyncio.timeout(HUNG_S):
        printed, _ = await process.communicate()
    assert process.returncode == 0
    return printed.decode()


async def test_a_state_machine_takes_runs_one_after_the_other(tmp_path, environment):
    async with published(tmp_path) as control:
        printed = await output(await program(STEERING / "state_machine.py", "2", control.address))
        assert control.run.phase is Phase.READY
    first, second = printed.splitlines()
    assert first.startswith("run 1: CONFIGURED, ")
    assert second.startswith("run 2: CONFIGURED, ")
    built = [int(line.split(", ")[1].split()[0]) for line in (first, second)]
    assert 0 < built[0] < built[1]


async def test_epics_clients_read_and_steer_a_run(tmp_path, environment):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name, value in {
        "CA_SERVER_PORT": str(port),
        "CA_REPEATER_PORT": str(port),
        "CA_ADDR_LIST": "127.0.0.1",
        "CA_AUTO_ADDR_LIST": "NO",
        "CAS_BEACON_ADDR_LIST": "127.0.0.1",
        "CAS_AUTO_BEACON_ADDR_LIST": "NO",
    }.items():
        environment.setenv(f"EPICS_{name}", value)

    async def client(*words):
        assert await output(await program("-c", EPICS_CLIENT, *words)) == ""

    async with published(tmp_path) as control:
        server = await program(STEERING / "epics.py", "DAQ", control.address)
        try:
            assert server.stdout
            async with asyncio.timeout(HUNG_S):
                assert (await server.stdout.readline()).startswith(b"8 PVs since")
            await client("until", "DAQ:phase", "waiting")
            await client("write", "DAQ:command", "start")
            await running(control, {0, 1, 2})
            await client("until", "DAQ:phase", "running")
            await client("until", "DAQ:members", "3")
            await client("until", "DAQ:run_number", "1")
            await client("write", "DAQ:command", "configure")
            refused = "the run is running and cannot be configured; stop it first"
            assert control.refusal == refused
            await client("write", "DAQ:command", "stop")
            await control.until(lambda: control.run.phase is Phase.READY)
        finally:
            server.kill()
            await server.wait()


async def test_events_are_lines_of_a_file_that_is_rotated(tmp_path, environment):
    environment.setenv("EVENT_LINES_BYTES", "1000")
    file = tmp_path / "events.jsonl"
    async with published(tmp_path) as control:
        follower = await program(STEERING / "event_lines.py", file, control.address)
        for _ in range(3):
            control.obey(Request(command="start"))
            await running(control, {0, 1, 2})
            control.obey(Request(command="stop"))
            await control.until(lambda: control.run.phase is Phase.READY)
            await control.until(lambda: any(tmp_path.glob("events.jsonl*")))
        events = [(round(event.time_s, 3), event.text) for event in control.events]

        def lines():
            files = sorted(tmp_path.glob("events.jsonl*"), reverse=True)
            texts = [line for each in files for line in each.read_text().splitlines()]
            return [(line["time_s"], line["text"]) for line in map(json.loads, texts)]

        await control.until(lambda: events[-1] in lines())
        assert all(path.stat().st_size <= 1000 for path in tmp_path.glob("events.jsonl*"))
        written = lines()
        assert written == events[-len(written) :]
        assert len(written) > 5
    assert await output(follower) == ""


async def test_events_are_lines_for_a_command(tmp_path, environment):
    file = tmp_path / "received"
    async with published(tmp_path) as control:
        follower = await program(STEERING / "event_lines.py", f"| cat > {file}", control.address)
        control.obey(Request(command="start"))
        await running(control, {0, 1, 2})
        await control.until(lambda: file.exists() and "running: from MEP 0" in file.read_text())
    assert await output(follower) == ""
    first = json.loads(file.read_text().splitlines()[0])
    assert first["run"] == "test"
    assert first["text"] == "run 1 starts"


async def test_the_hooks_number_and_log_a_run(tmp_path, environment):
    environment.setenv("RUN_REGISTRY", str(tmp_path / "registry.db"))
    environment.setenv("LOGBOOK", str(tmp_path / "logbook.txt"))
    hooks = load_hooks(HOOKS / "hooks.toml")
    async with published(tmp_path, hooks=hooks, hook_folder=HOOKS) as control:
        for _ in range(2):
            control.obey(Request(command="start"))
            await running(control, {0, 1, 2})
            control.obey(Request(command="stop"))
            await control.until(lambda: control.run.phase is Phase.READY)
        assert control.status().number == 2
    lines = (tmp_path / "logbook.txt").read_text().splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == [
        "run 1 start: 3 of 3 units",
        "run 1 stop: 3 of 3 units",
        "run 2 start: 3 of 3 units",
        "run 2 stop: 3 of 3 units",
    ]
    texts = [event.text for event in control.events]
    assert any(text.endswith("/ is mounted") for text in texts)


def test_the_disk_hook_fails_for_a_folder_that_is_no_mount_point(tmp_path):
    done = os.spawnl(os.P_WAIT, HOOKS / "disk-mounted.sh", "disk-mounted.sh", str(Path(tmp_path)))
    assert done == 1
