"""A run control that is killed, and another one that continues its run.

benchmarks/event_building_faults does this under load, in every phase."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from daqloom.control.persistence.store import Store
from daqloom.control.protocol.states import Phase
from daqloom.control.status import Request
from support.command import refusal
from support.measure.controlled_runs import gone, pid, running, stored
from support.repository import TESTS

pytestmark = pytest.mark.process

PROGRAM = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from daqloom.control.status import Request
from support.measure.controlled_runs import pid, running, stored
async def life():
    async with stored(Path(sys.argv[1])) as control:
        control.obey(Request(command="start"))
        await running(control, {0, 1, 2})
        for unit in map(int, sys.argv[3:]):
            control.obey(Request(command="exclude", units=(unit,)))
            await running(control, {0, 1, 2} - {unit})
        print(*[pid(control, unit) for unit in range(3)], flush=True)
        await asyncio.sleep(3600)
asyncio.run(life())
"""


def killed_control(folder: Path, *excluded: str) -> list[int]:
    """Processes of the units of a run whose run control has been killed, some of them excluded."""
    command = [sys.executable, "-c", PROGRAM, str(folder), str(TESTS), *excluded]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        units = [int(text) for text in parent.stdout.readline().split()]
        parent.kill()
    assert len(units) == 3
    return units


async def test_an_epoch_continues_under_another_run_control_with_the_same_processes(tmp_path):
    units = killed_control(tmp_path)
    epoch = json.loads((tmp_path / "state.json").read_text())["snapshot"]["epoch"]
    async with stored(tmp_path) as control:
        assert control.run.phase is Phase.ATTACHING
        await running(control, {0, 1, 2})
        assert [pid(control, unit) for unit in range(3)] == units
        assert control.run.epoch == epoch
        assert control.run.counts["units_lost"] == 0
        tally = control.run.units[1].tally
        before = tally.totals.meps_built
        await control.until(lambda: tally.totals.meps_built > before)
    for unit in units:
        await gone(unit)
    assert Store.find(tmp_path) is None


async def test_a_unit_that_is_killed_in_the_gap_is_left_out_and_comes_back(tmp_path):
    units = killed_control(tmp_path)
    os.kill(units[1], signal.SIGKILL)
    async with stored(tmp_path) as control:
        await running(control, {0, 2})
        assert control.run.units[1].reason.startswith("its process ended")
        await running(control, {0, 1, 2})
        assert [pid(control, unit) for unit in (0, 2)] == [units[0], units[2]]
        assert control.run.counts["regroupings"] == 2


async def test_excluded_units_and_the_run_number_survive(tmp_path):
    killed_control(tmp_path, "1")
    async with stored(tmp_path) as control:
        await running(control, {0, 2})
        assert control.run.units[1].is_excluded
        assert control.plan.run_number == 1
        control.obey(Request(command="include", units=(1,)))
        await running(control, {0, 1, 2})


async def test_a_run_is_continued_again_and_again(tmp_path):
    units = killed_control(tmp_path)
    assert killed_control(tmp_path) == units
    async with stored(tmp_path) as control:
        await running(control, {0, 1, 2})
        assert [pid(control, unit) for unit in range(3)] == units


async def test_the_port_of_a_run_stays_and_another_program_with_its_port_is_no_harm(tmp_path):
    units = killed_control(tmp_path)
    address = (tmp_path / "address").read_text()
    async with stored(tmp_path) as control:
        assert control.address == address
        await running(control, {0, 1, 2})
        port = int(address.rpartition(":")[2])
        processes = [pid(control, unit) for unit in range(3)]
    assert processes == units
    killed_control(tmp_path)
    port = int((tmp_path / "address").read_text().rpartition(":")[2])
    with socket.create_server(("127.0.0.1", port)):
        async with stored(tmp_path) as control:
            assert control.address != f"127.0.0.1:{port}"
            await running(control, {0, 1, 2})


def test_a_folder_without_a_run_and_no_scenario_is_one_sentence(tmp_path):
    sentence = refusal("control", "--folder", tmp_path)
    assert f"{tmp_path} has no run without a run control; give a scenario" in sentence
    assert "give a scenario, or --folder" in refusal("control", "up")
