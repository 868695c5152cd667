"""New values for the processes of a run."""

import asyncio

import pytest

from daqloom.control.protocol.states import Phase
from daqloom.control.status import Request
from daqloom.control.steering import SteeringOptions
from daqloom.deployment.scenarios import override
from daqloom.measure.new_setup import new_setup
from daqloom.measure.plan import control_of, plan_of
from daqloom.scenario.errors import ScenarioError
from support.measure.controlled_runs import HUNG_S, pid
from support.measure.small_runs import small

QUIET = {"fault_timeout": f"{HUNG_S} s", "sink": "check"}


def test_new_values_are_those_of_the_same_run():
    before = plan_of(small())
    after = new_setup(before, ("event.packing=20", "event.rate=5 kHz", "measure.heartbeat=0.1 s"))
    assert (before.packing, after.packing) == (10, 20)
    assert after.run == before.run
    assert after.rules.heartbeat_s == pytest.approx(0.1)
    again = new_setup(after, ("building.barrier=centralised",))
    assert again.scenario["event"] == {**before.scenario["event"], "packing": 20, "rate": "5 kHz"}
    assert again.packing == 20


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (("measure.port=4000",), "measure.port cannot change while the processes of the run exist"),
        (("measure.launch=slurm",), "measure.launch cannot change"),
        (("measure.cores=auto",), "measure.cores cannot change"),
        (("hosts.placement=spread",), "hosts.placement cannot change"),
        (("measure.launch=ssh", 'measure.hosts=["a"]'), "measure.hosts cannot change"),
        (("readout.units=2",), "has 2 units, and the run has processes for 3; exclude units"),
        (("readout.units=4",), "has 4 units, and the run has processes for 3"),
        (("event.rate=fast",), "event.rate"),
        (("event.pakcing=3",), "packing"),
        (
            ("building.barrier=network",),
            'measure.transport = "shm" has no barrier of the network; use a provider with',
        ),
        (("building.barrier=ideal",), 'building.barrier = "ideal" exists only in simulation'),
        (("event.rate",), "expected dotted.path=value"),
    ],
)
def test_values_that_need_new_processes_are_refused_by_their_key(settings, sentence):
    with pytest.raises(ScenarioError) as error:
        new_setup(plan_of(small()), settings)
    assert sentence in str(error.value)


async def reached(control, phase):
    await control.until(lambda: control.run.phase is phase and not control.pending)
    assert control.refusal == ""


def total(counted, name):
    return sum(getattr(each, name) or 0 for each in counted.values())


async def taken(control, meps):
    """Take some MEPs and stop."""
    begin = control.run.next_mep
    control.obey(Request(command="start"))
    await control.until(lambda: control.run.next_mep > begin + meps)
    control.obey(Request(command="stop"))
    await reached(control, Phase.READY)


@pytest.mark.process
async def test_a_run_takes_new_values_and_leaves_out_sources_without_an_error(tmp_path):
    scenario = override(small(**QUIET), {"event.rate": "20 kHz"})
    control = control_of(scenario, tmp_path, steering=SteeringOptions(replan=new_setup))
    async with asyncio.timeout(HUNG_S), control:
        control.obey(Request(command="configure"))
        await reached(control, Phase.READY)
        processes = [pid(control, unit) for unit in range(3)]
        await taken(control, 100)
        for setting in ("event.packing=7", "building.barrier=centralised", "measure.transport=tcp"):
            control.obey(Request(command="configure", settings=(setting,)))
            await reached(control, Phase.READY)
            await taken(control, 100)
        control.obey(Request(command="exclude", units=(1,), sources=True))
        await control.until(lambda: control.run.phase is Phase.READY)
        before = control.totals()
        assert total(before, "meps_incomplete") == 0
        await taken(control, 100)
        after = control.totals()
        # All three units still build; their events lack a source, as after the loss of a unit.
        for unit in range(3):
            assert (after[unit].meps_delivered or 0) > (before[unit].meps_delivered or 0)
        assert total(after, "meps_built") == total(before, "meps_built")
        assert [pid(control, unit) for unit in range(3)] == processes
    totals = control.totals()
    assert total(totals, "meps_wrong") == total(totals, "meps_repeated") == 0
    balance = control.run.balance()
    assert (balance.unfinished, balance.skipped, balance.twice) == (0, 0, 0)
    assert control.run.counts["units_lost"] == 0
    parts = control.parts()
    assert [part.packing for part in parts] == [10, 7, 7, 7]
    events = sum(part.packing * total(part.counted, "meps_delivered") for part in parts)
    summary = control.summary("ended")
    assert summary.events == events
    assert summary.lost == {"incomplete": 7 * total(totals, "meps_incomplete")}
