"""Requests of an operator to a run: refusals, hooks, run numbers and new setups."""

import json
import os
import signal

import pytest

from daqloom._engine import RunPlan
from daqloom.control.hooks.document import Hook
from daqloom.control.protocol.states import Goal, Phase
from daqloom.control.run_numbers import RunNumbers
from daqloom.control.status import Request
from daqloom.control.steering import SteeringOptions
from daqloom.results.errors import MeasureError
from daqloom.scenario.errors import ScenarioError
from support.measure.controlled_runs import controlled, pid, plan, running

pytestmark = pytest.mark.process


def request(command, **fields):
    return Request(command=command, **fields)


async def reached(control, phase):
    await control.until(lambda: control.run.phase is phase and not control.pending)


def options(folder, *hooks, **more):
    (folder / "hooks").mkdir(exist_ok=True)
    numbers = RunNumbers(folder / "run-number")
    return SteeringOptions(hooks, folder / "hooks", numbers, **more)


def hook(name, transition, when="after", text="cat >> $DAQLOOM_HOOK_HOOK", **more):
    command = ("sh", "-c", text)
    return Hook(name=name, transition=transition, when=when, command=command, **more)


def written(folder, name):
    return [json.loads(line) for line in (folder / "hooks" / name).read_text().splitlines()]


# ---- refusals


async def test_a_refused_request_is_one_sentence_in_the_status(tmp_path):
    async with controlled(tmp_path) as control:
        status = control.obey(request("stop"))
        assert status.refusal == (
            "the run is waiting and has not been started, so that it cannot stop"
        )
        assert status.requests == 1
        refused = control.obey(request("reset", unit=3)).refusal
        assert refused == "there is no unit 3; the run has units 0 to 2"
        refused = control.obey(request("exclude", units=(1, 4))).refusal
        assert refused == "there is no unit 4; the run has units 0 to 2"
        refused = control.obey(request("exclude", units=(0, 1, 2))).refusal
        assert refused == (
            "units 0, 1 and 2 cannot be excluded: the other units could build no events"
        )
        refused = control.obey(request("configure", settings=("event.rate=1 Hz",))).refusal
        assert refused == "this run has no scenario, so that it takes no new values"
        assert control.obey(request("start")).refusal == ""
        await reached(control, Phase.RUNNING)
        refused = control.obey(request("configure")).refusal
        assert refused == "the run is running and cannot be configured; stop it first"
        assert control.run.phase is Phase.RUNNING
        control.obey(request("exit"))
        refused = control.obey(request("start")).refusal
        assert refused.endswith(" and takes no start; start a new run")
        assert control.obey(request("exit")).refusal == ""


# ---- excluded units


async def test_excluded_units_leave_and_return_by_request(tmp_path):
    async with controlled(tmp_path) as control:
        control.obey(request("start"))
        await running(control, {0, 1, 2})
        processes = [pid(control, unit) for unit in range(3)]
        status = control.obey(request("exclude", units=(1,)))
        assert [unit.is_excluded for unit in status.units] == [False, True, False]
        await running(control, {0, 2})
        control.obey(request("exclude", units=(2,), sources=True))
        await control.until(lambda: control.run.epoch == 3)
        await running(control, {0, 2})
        assert control.status().units[2].is_source_excluded
        control.obey(request("include", units=(1,)))
        await running(control, {0, 1, 2})
        assert [pid(control, unit) for unit in range(3)] == processes
        assert control.run.counts["units_lost"] == 0


# ---- run numbers


async def test_each_start_has_the_next_run_number(tmp_path):
    async with controlled(tmp_path, steering=options(tmp_path)) as control:
        assert control.obey(request("configure")).number is None
        await reached(control, Phase.READY)
        for number in (1, 2):
            assert control.obey(request("start")).number == number
            await reached(control, Phase.RUNNING)
            assert control.obey(request("start")).number == number  # it runs already
            os.kill(pid(control, 0), signal.SIGKILL)  # no regrouping is a start
            await running(control, {1, 2})
            await running(control, {0, 1, 2})
            control.obey(request("stop"))
            await reached(control, Phase.READY)
        texts = [event.text for event in control.events]
        assert [text for text in texts if text.startswith("run ")] == [
            "run 1 starts",
            "run 2 starts",
        ]


async def test_a_registry_that_cannot_be_read_refuses_the_start(tmp_path):
    (tmp_path / "run-number").write_text("seven")
    async with controlled(tmp_path, steering=options(tmp_path)) as control:
        assert "holds no run number" in control.obey(request("start")).refusal
        assert control.run.goal is Goal.IDLE


# ---- hooks


async def test_hooks_run_before_and_after_the_transitions_of_a_run(tmp_path):
    names = ("configure", "start", "stop", "exit")
    hooks = [hook(f"{when}-{name}", name, when) for name in names for when in ("before", "after")]
    steering = options(tmp_path, *hooks, hook("on-lost", "lost"))
    async with controlled(tmp_path, steering=steering) as control:
        assert control.obey(request("start")).pending == "start"
        await running(control, {0, 1, 2})
        os.kill(pid(control, 1), signal.SIGKILL)
        await running(control, {0, 2})
        await running(control, {0, 1, 2})
        control.obey(request("stop"))
        await reached(control, Phase.READY)
        control.obey(request("exit"))
        await control.until(lambda: control.run.phase is Phase.ENDED)
    for each in hooks:
        [values] = written(tmp_path, each.name)
        assert (values["transition"], values["when"]) == (each.transition, each.when)
        assert values["run_number"] == (0 if each.name == "before-configure" else 1) or (
            each.name == "before-configure"
        )
    [lost] = written(tmp_path, "on-lost")
    assert (lost["unit"], lost["text"].split(":")[0]) == (1, "unit 1 is lost")
    [started] = written(tmp_path, "after-start")
    assert (started["run"], started["units"], started["members"]) == ("test", 3, 3)
    entries = [event.text for event in control.events if event.text.startswith("hook ")]
    assert len(entries) == 9
    assert entries[0].startswith('hook "before-configure" before configure took ')


async def test_an_error_of_the_run_is_a_transition(tmp_path):
    (tmp_path / "fault-2").write_text("unmakeable")
    async with controlled(tmp_path, steering=options(tmp_path, hook("on-error", "error"))) as it:
        it.obey(request("start"))
        await it.until(lambda: it.run.phase is Phase.ERROR)
    [values] = written(tmp_path, "on-error")
    assert "unit 2 cannot be configured" in values["text"]


async def test_a_hook_that_fails_blocks_the_start(tmp_path):
    blocks = hook("disk", "start", "before", "echo not mounted; exit 1", on_failure="block")
    async with controlled(tmp_path, steering=options(tmp_path, blocks)) as control:
        control.obey(request("start"))
        await control.until(lambda: control.refusal)
        assert control.status().refusal == (
            'hook "disk" blocks start: exit code 1: not mounted; correct the hook, or set its '
            'on_failure = "pass"'
        )
        assert control.run.goal is Goal.IDLE
        assert control.status().number is None
        assert any("start is refused: hook" in event.text for event in control.events)
        assert control.obey(request("configure")).refusal == ""
        await reached(control, Phase.READY)


async def test_a_hook_that_hangs_stops_no_heartbeat_and_blocks_after_its_limit(tmp_path):
    hangs = hook("hangs", "start", "before", "sleep 3600", timeout="3 s", on_failure="block")
    steering = options(tmp_path, hangs)
    async with controlled(tmp_path, steering=steering, fault_timeout_s=1.0) as control:
        control.obey(request("configure"))
        await reached(control, Phase.READY)
        control.obey(request("start"))
        await control.until(lambda: control.refusal)
        assert "no answer within 3 s" in control.status().refusal
        assert control.run.phase is Phase.READY
        assert control.run.counts["units_lost"] == 0


async def test_a_later_request_replaces_one_that_waits_for_its_hooks(tmp_path):
    hangs = hook("hangs", "start", "before", "sleep 3600", timeout="100 s", on_failure="block")
    async with controlled(tmp_path, steering=options(tmp_path, hangs)) as control:
        assert control.obey(request("start")).pending == "start"
        status = control.obey(request("configure"))
        assert (status.pending, status.refusal) == ("", "")
        await reached(control, Phase.READY)
        assert control.run.goal is Goal.READY


async def test_a_hook_gives_the_run_number(tmp_path):
    gives = hook("registry", "start", "before", """echo '{"run_number": 4711}'""")
    async with controlled(tmp_path, steering=options(tmp_path, gives)) as control:
        control.obey(request("start"))
        await reached(control, Phase.RUNNING)
        assert control.status().number == 4711
    assert RunNumbers(tmp_path / "run-number").take() == 4712


# ---- new setups


async def test_new_values_reach_the_processes_that_exist(tmp_path):
    def replan(before, settings):
        assert settings == ("event.packing=5",)
        units, folder = before.rules.units, before.scenario["folder"]
        rules = RunPlan(units=units, heartbeat_s=0.05, fault_timeout_s=2.0)
        new = before.model_copy(update={"rules": rules, "packing": 5})
        return new.model_copy(update={"scenario": {"folder": folder, "new": True}})

    async with controlled(tmp_path, steering=options(tmp_path, replan=replan)) as control:
        control.obey(request("start"))
        await running(control, {0, 1, 2})
        await control.until(lambda: control.run.next_mep > 100)
        processes = [pid(control, unit) for unit in range(3)]
        control.obey(request("stop"))
        await reached(control, Phase.READY)
        built = control.run.next_mep
        assert control.plan.packing == 1
        before = sum(each.meps_built for each in control.totals().values())
        control.obey(request("configure", settings=("event.packing=5",)))
        await reached(control, Phase.READY)
        assert control.plan.scenario["new"]
        control.obey(request("start"))
        await running(control, {0, 1, 2})
        # Event numbers rise: MEP 100 with 5 events each follows MEP 499 with one.
        assert control.run.first_mep == built
        assert [pid(control, unit) for unit in range(3)] == processes
        await control.until(lambda: control.run.next_mep > built + 100)
        first, second = control.parts()
        assert (first.packing, second.packing) == (1, 5)
        assert sum(each.meps_built for each in first.counted.values()) == before
        assert sum(each.meps_built for each in second.counted.values()) > 0


async def test_events_are_numbered_on_where_meps_have_fewer(tmp_path):
    def replan(before, settings):
        return before.model_copy(update={"packing": int(settings[0])})

    async with controlled(tmp_path, steering=options(tmp_path, replan=replan)) as control:
        control.obey(request("configure", settings=("10",)))
        await reached(control, Phase.READY)
        control.obey(request("start"))
        await control.until(lambda: control.run.next_mep > 100)
        control.obey(request("stop"))
        await reached(control, Phase.READY)
        events = 10 * control.run.first_free
        control.obey(request("configure", settings=("3",)))
        await reached(control, Phase.READY)
        control.obey(request("start"))
        await running(control, {0, 1, 2})
        assert control.run.first_mep == -(-events // 3)


@pytest.mark.parametrize("error", [ScenarioError, MeasureError])
async def test_a_setup_that_is_refused_changes_nothing(tmp_path, error):
    def replan(before, settings):
        raise error("no")

    async with controlled(tmp_path, steering=options(tmp_path, replan=replan)) as control:
        before = control.plan
        control.obey(request("configure", settings=("event.rate=0 Hz",)))
        await control.until(lambda: control.refusal)
        assert control.status().refusal == "no"
        assert control.plan is before
        assert control.run.goal is Goal.IDLE


async def test_a_setup_for_other_units_is_refused(tmp_path):
    def replan(before, settings):
        return plan(tmp_path, units=4)

    async with controlled(tmp_path, steering=options(tmp_path, replan=replan)) as control:
        control.obey(request("configure", settings=("readout.units=4",)))
        await control.until(lambda: control.refusal)
        assert "their number stays" in control.status().refusal
