"""Runs with real connections and processes, which hold a node without an engine."""

import asyncio
import contextlib
import os
import sys
from pathlib import Path

from daqloom._engine import RunPlan
from daqloom.control.control import Control
from daqloom.control.persistence.store import Store
from daqloom.control.plan import Plan
from daqloom.control.protocol.states import Goal, Phase
from daqloom.control.publication import Publication
from daqloom.control.run_numbers import RunNumbers
from daqloom.control.status import Status
from daqloom.control.steering import SteeringOptions
from daqloom.machine.launch import Launcher, Local

FAKE = (sys.executable, str(Path(__file__).with_name("fake_node.py")))
HUNG_S = 120.0
"""Ends a test that hangs; no test waits for it."""


def plan(
    folder: Path, units: int = 3, trace_stages: int = 0, trace_arrivals: int = 0, **changes
) -> Plan:
    given = {"units": units, "heartbeat_s": 0.05, "fault_timeout_s": 2.0}
    return Plan(
        run="test",
        rules=RunPlan(**(given | changes)),
        scenario={"folder": str(folder)},
        trace_stages=trace_stages,
        trace_arrivals=trace_arrivals,
    )


@contextlib.asynccontextmanager
async def controlled(
    folder: Path,
    launcher: Launcher | None = None,
    steering: SteeringOptions | None = None,
    publication: Publication | None = None,
    **changes,
):
    async with asyncio.timeout(HUNG_S):
        async with Control(
            plan(folder, **changes),
            launcher or Local(FAKE),
            folder=folder,
            name="fake",
            steering=steering,
            publication=publication,
        ) as it:
            yield it


@contextlib.asynccontextmanager
async def started(folder: Path, launcher: Launcher | None = None, units: int = 3, **changes):
    async with controlled(folder, launcher, units=units, **changes) as control:
        control.want(Goal.RUNNING)
        await running(control, set(range(units)))
        yield control


@contextlib.asynccontextmanager
async def stored(folder: Path):
    """A run in a folder that outlives its run control, continued if there is one. Its starts have
    numbers."""
    store = Store.find(folder) or Store.new(folder, "fake", "test", {})
    launcher = Local(FAKE, address_file=str(store.address_file))
    rules = plan(folder, control_grace_s=60.0)
    numbered = SteeringOptions(numbers=RunNumbers(folder / "run-number"))
    made = Control(rules, launcher, folder=folder, store=store, steering=numbered)
    async with asyncio.timeout(HUNG_S), made as control:
        yield control


async def running(control: Control, members: set[int]) -> None:
    run = control.run
    await control.until(lambda: run.phase is Phase.RUNNING and run.members == members)


async def status_after_events(control: Control, members: set[int]) -> Status:
    """Builds more than ten events, stops, and returns the status at rest."""
    control.want(Goal.RUNNING)
    await running(control, members)
    await control.until(lambda: control.status().built_events > 10)
    control.want(Goal.READY)
    await control.until(lambda: control.run.phase is Phase.READY)
    return control.status()


def pid(control: Control, unit: int) -> int:
    return control.status().units[unit].pid


async def gone(*processes: int) -> None:
    loop = asyncio.get_running_loop()
    for process in processes:
        with contextlib.suppress(ProcessLookupError):  # it has been waited for
            ended, end = asyncio.Event(), os.pidfd_open(process)
            loop.add_reader(end, ended.set)
            try:
                await ended.wait()
            finally:
                loop.remove_reader(end)
                os.close(end)
