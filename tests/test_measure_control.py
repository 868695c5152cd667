"""A run with real connections and real processes, which hold a node without an engine."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from daqloom.measure.control import Control
from daqloom.measure.launch import Launcher, Local
from daqloom.measure.plan import Plan
from daqloom.measure.states import Goal, Phase

FAKE = (sys.executable, str(Path(__file__).with_name("fake_node.py")))
HUNG_S = 120.0
"""Ends a test that hangs; no test waits for it."""


def plan(folder: Path, units: int = 3, **changes) -> Plan:
    given = {
        "run": "test",
        "units": units,
        "scenario": {"folder": str(folder)},
        "heartbeat_s": 0.05,
        "fault_timeout_s": 2.0,
    }
    return Plan(**(given | changes))


@contextlib.asynccontextmanager
async def controlled(folder: Path, launcher: Launcher | None = None, **changes):
    async with asyncio.timeout(HUNG_S):
        async with Control(plan(folder, **changes), launcher or Local(FAKE), folder=folder) as it:
            yield it


async def running(control: Control, members: set[int]) -> None:
    run = control.run
    await control.until(lambda: run.phase is Phase.RUNNING and run.members == members)


def pid(control: Control, unit: int) -> int:
    return control.status().units[unit].pid


async def gone(process: int) -> None:
    while Path(f"/proc/{process}").exists():
        await asyncio.sleep(0.01)


def test_a_run_lives_from_start_to_exit(tmp_path):
    async def life():
        async with controlled(tmp_path) as control:
            control.want(Goal.READY)
            await control.until(lambda: control.run.phase is Phase.READY)
            assert [unit.state for unit in control.status().units] == ["ready"] * 3
            control.want(Goal.RUNNING)
            await running(control, {0, 1, 2})
            await control.until(lambda: control.run.units[1].tally.totals.get("meps_built", 0) > 10)
            control.want(Goal.READY)
            await control.until(lambda: control.run.phase is Phase.READY)
            assert control.run.first_mep > 10
            control.want(Goal.RUNNING)
            await running(control, {0, 1, 2})
            processes = [pid(control, unit) for unit in range(3)]
        assert control.run.phase is Phase.ENDED
        for process in processes:
            await gone(process)
        assert not control.refused

    asyncio.run(life())


def test_a_killed_unit_is_left_out_and_comes_back(tmp_path):
    async def life():
        async with controlled(tmp_path) as control:
            control.want(Goal.RUNNING)
            await running(control, {0, 1, 2})
            victim, first = pid(control, 1), control.run.first_mep
            os.kill(victim, signal.SIGKILL)
            await running(control, {0, 2})
            assert control.run.first_mep >= first
            await running(control, {0, 1, 2})
            assert pid(control, 1) not in (0, victim)
            assert control.run.counts["units_lost"] == 1

    asyncio.run(life())
