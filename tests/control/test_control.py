"""A run with real connections and processes, whose nodes have no engine."""

import asyncio
import os
import signal
import socket
import subprocess
import sys

import pytest

from daqloom._engine import Counters
from daqloom.control.control import Control
from daqloom.control.protocol.states import Goal, Phase
from daqloom.machine.launch import Local
from daqloom.results.errors import MeasureError
from support.measure.controlled_runs import (
    FAKE,
    HUNG_S,
    controlled,
    gone,
    pid,
    plan,
    running,
    started,
)
from support.repository import TESTS

pytestmark = pytest.mark.process


async def test_a_run_lives_from_start_to_exit(tmp_path):
    async with controlled(tmp_path) as control:
        control.want(Goal.READY)
        await control.until(lambda: control.run.phase is Phase.READY)
        assert [unit.state for unit in control.status().units] == ["ready"] * 3
        control.want(Goal.RUNNING)
        await running(control, {0, 1, 2})
        tally = control.run.units[1].tally
        await control.until(lambda: (tally.totals.meps_built or 0) > 10)
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


async def test_a_warning_of_a_node_is_trouble_in_the_log_once_for_each_configuration(tmp_path):
    (tmp_path / "fault-1").write_text("far")
    async with started(tmp_path) as control:
        found = [event for event in control.events if "far away" in event.text]
        assert [(event.text, event.is_trouble) for event in found] == [
            ("its cores are far away", True)
        ]
        assert control.run.members == {0, 1, 2}


async def test_a_killed_unit_is_left_out_and_comes_back(tmp_path):
    async with started(tmp_path) as control:
        victim, first = pid(control, 1), control.run.first_mep
        os.kill(victim, signal.SIGKILL)
        await running(control, {0, 2})
        assert control.run.first_mep >= first
        await running(control, {0, 1, 2})
        assert pid(control, 1) not in (0, victim)
        assert control.run.counts["units_lost"] == 1


async def test_a_stopped_unit_is_left_out_and_comes_back(tmp_path):
    async with started(tmp_path) as control:
        stopped = pid(control, 1)
        os.kill(stopped, signal.SIGSTOP)
        await running(control, {0, 2})
        os.kill(stopped, signal.SIGCONT)
        await running(control, {0, 1, 2})
        assert pid(control, 1) == stopped


async def test_a_unit_that_does_not_halt_is_killed_and_replaced(tmp_path):
    async with started(tmp_path, order_timeout_s=3.0) as control:
        hung = pid(control, 0)
        (tmp_path / "fault-0").write_text("never-halts")
        os.kill(pid(control, 2), signal.SIGKILL)
        await control.until(lambda: 0 not in control.run.members)
        (tmp_path / "fault-0").unlink()
        await running(control, {0, 1, 2})
        assert pid(control, 0) != hung


async def test_a_unit_with_a_stuck_data_thread_is_left_out(tmp_path):
    async with started(tmp_path, restart=False) as control:
        (tmp_path / "fault-1").write_text("stuck")
        await running(control, {0, 2})
        (tmp_path / "fault-1").unlink()
        untouched = pid(control, 0), pid(control, 1), pid(control, 2)
        control.reset(1)
        await running(control, {0, 1, 2})
        assert untouched == (pid(control, 0), pid(control, 1), pid(control, 2))


async def test_a_unit_that_cannot_be_made_ends_the_run_with_its_sentence(tmp_path):
    async with controlled(tmp_path) as control:
        (tmp_path / "fault-2").write_text("unmakeable")
        control.want(Goal.RUNNING)
        with pytest.raises(MeasureError, match=r"unit 2 cannot be .*the provider is not there"):
            await control.until_running()


async def test_a_missing_program_is_one_sentence(tmp_path):
    async with controlled(tmp_path, Local(("/nowhere/unit",))) as control:
        control.want(Goal.RUNNING)
        with pytest.raises(MeasureError, match=r"/nowhere/unit: no such file"):
            await control.until_running()


def test_units_die_with_the_run_control_even_if_that_is_killed(tmp_path):
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        f"sys.path.insert(0, {str(TESTS)!r})\n"
        "from support.measure.controlled_runs import pid, started\n"
        "async def life():\n"
        f"    async with started(Path({str(tmp_path)!r})) as control:\n"
        "        print(*[pid(control, unit) for unit in range(3)], flush=True)\n"
        "        await asyncio.sleep(3600)\n"
        "asyncio.run(life())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        units = [int(text) for text in parent.stdout.readline().split()]
        assert len(units) == 3
        parent.kill()
    asyncio.run(asyncio.wait_for(gone(*units), HUNG_S))


def test_a_unit_ends_when_the_run_control_is_gone(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    ended = subprocess.run(
        [*FAKE, "--control", address, "--unit", "0", "--patience", "1"],
        input=b"00" * 16 + b"\n",
        capture_output=True,
        timeout=HUNG_S,
    )
    assert ended.returncode == 1
    assert b"has not answered for 1 s; the unit ends" in ended.stderr


async def test_listening_where_others_reach_it_needs_certificates(tmp_path):
    with pytest.raises(MeasureError, match="there are no certificates"):
        async with Control(plan(tmp_path), Local(FAKE), folder=tmp_path, bind="0.0.0.0"):
            pass


async def test_an_address_that_is_not_ours_is_one_sentence(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(MeasureError, match=f"cannot listen on 127.0.0.1:{port}"):
            async with Control(plan(tmp_path), Local(FAKE), folder=tmp_path, port=port):
                pass


async def ready_again(folder, **kept):
    async with controlled(folder, units=2, **kept) as control:
        control.want(Goal.RUNNING)
        await control.until_running()
        control.want(Goal.READY)
        await control.until(lambda: control.run.phase is Phase.READY)
        return control


async def test_stages_are_available_after_the_halt(tmp_path):
    assert (await ready_again(tmp_path)).stages == {}
    stages = (await ready_again(tmp_path, trace_stages=3000)).stages
    assert set(stages) == {0, 1}
    assert [step for _, _, step, _, _ in stages[1]] == list(range(1500, 4500))  # the last ones


async def test_the_first_arrivals_are_available_after_the_halt(tmp_path):
    assert len((await ready_again(tmp_path)).arrivals.times_ns) == 0
    # 3000 of 4500, and 7 that the unit had no room for.
    log = (await ready_again(tmp_path, trace_arrivals=3000)).arrivals
    assert list(log.times_ns) == list(range(1000, 4000))
    assert (log.begin_ns, log.beyond) == (1000, 1507)


async def test_the_counters_of_a_killed_unit_are_read_from_its_memory(tmp_path):
    class Memory:
        """Memory of unit 1 alone."""

        def watches(self, unit):
            return True

        def last(self, unit):
            return Counters({"meps_built": 10**9}) if unit == 1 else None

    async with controlled(tmp_path, restart=False) as control:
        control._pages = Memory()
        control.want(Goal.RUNNING)
        await control.until_running()
        os.kill(pid(control, 1), signal.SIGKILL)
        await running(control, {0, 2})
        lost = control.run.units[1].tally
        await control.until(lambda: lost.totals.meps_built == 10**9)
        built = [unit.tally.totals.meps_built or 0 for unit in control.run.units]
        assert max(built[0], built[2]) < 10**9
