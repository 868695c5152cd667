"""Mended schedules of real runs: by scenario, and of a run that goes on."""

import asyncio
from collections import defaultdict

import pytest

from daqloom.cli.console.follow import follow
from daqloom.control.counters.metrics import accounts
from daqloom.control.protocol.states import Phase
from daqloom.control.status import Request
from daqloom.deployment.fabric_system import fabric_system
from daqloom.deployment.scenarios import override
from daqloom.lab.network import lab_network
from daqloom.measure.configure import places
from daqloom.measure.plan import control_of
from daqloom.scenario.file.unused_keys import unused_warnings
from daqloom.scenario.schema.models import Scenario
from daqloom.topology.failures.repair import mend
from daqloom.topology.shapes.shape import cable_network
from support.measure.controlled_runs import HUNG_S
from support.measure.small_runs import SMALL

TREE = {
    "readout": {"units": 4, "streams": 1},
    "network": {
        "technology": "infiniband", "leaves": 2, "spines": 1, "spine_links": 2, "hosts_per_leaf": 2,
        "links": {"rate": "25 Gb/s"},
    },
}  # fmt: skip
"""Four units on two leaves, with two cables up from each."""
MENDED = [0, 2, 1, 3]
"""Units by slot of the builder units, with one cable up from leaf00. In each of four phases one
unit of a leaf sends to the other leaf: in phase 0, unit 1 to 2 and 2 to 1."""


def tree(**changes) -> Scenario:
    return override(
        Scenario.model_validate(
            SMALL | {"building": {"protocol": "shift", "dummies": "none"}} | TREE
        ),
        changes,
    )


def test_units_take_the_order_of_mended_tables():
    scenario = tree(**{"network.routing": "mended", "faults.cables": 1})
    where = places(scenario)
    assert (where.readouts, where.builders) == ([0, 1, 2, 3], MENDED)
    assert any("order of mended" in each for each in unused_warnings(scenario, "measure"))


def test_a_laboratory_has_the_mended_tables():
    scenario = tree(
        **{
            "network.technology": "ethernet",
            "network.shape": "fat-tree",
            "network.routing": "mended",
            "faults.cables": 1,
            "transport.kind": "tcp",
            "measure.lab": "namespaces",
            "measure.transport": "tcp",
        }
    )
    system, usual = fabric_system(scenario), cable_network(scenario)
    assert (
        mend(usual.fabric, usual.routes, system.slots).routes.ports == system.routes.ports
    ).all()
    towards = lab_network(scenario).towards
    assert [[bool(port) for port in row] for row in towards] == (system.routes.ports > 0).tolist()


@pytest.mark.process
async def test_a_growing_log_changes_the_schedule_of_the_next_epoch(tmp_path):
    """The stages of each unit have its partners: in step n the readout unit in slot i sends to the
    builder unit in slot i + n."""
    scenario, log = tree(**{"measure.sink": "check"}), tmp_path / "opensm.log"
    log.write_text("")
    control = control_of(scenario, tmp_path, trace_stages=100_000)
    async with asyncio.timeout(HUNG_S), control:
        control.obey(Request(command="start"))
        await control.until(lambda: control.run.next_mep > 100)
        first = control.run.epoch
        with log.open("a") as file:
            file.write(
                "Nov 25 18:54:01 250000 [1] 0x02 -> osm_spst_rcv_process: Switch leaf00 port 39 "
                "changed state from ACTIVE to DOWN\n"
            )
        with control.publish():
            more = {"mend": True, "once": True, "address": control.address}
            await asyncio.to_thread(follow, scenario, log, **more)
        await control.until(lambda: control.run.epoch > first)
        begin = control.run.first_mep
        await control.until(
            lambda: control.run.phase is Phase.RUNNING and control.run.next_mep > begin + 100
        )
        control.obey(Request(command="stop"))
        await control.until(lambda: control.run.phase is Phase.READY)
        ends = accounts(control.totals(), control.run.balance(), control.run.next_mep, 10, "check")
    assert ends.pop("begun") == sum(ends.values()) == ends["built"]
    assert control.run.counts["units_lost"] == 0
    partners = defaultdict(set)
    for unit, rows in control.stages.items():
        for _, epoch, step, to, what in rows:
            if what == "sending":
                partners[epoch].add((unit, step % 4, to))
    orders = {first: [0, 1, 2, 3], first + 1: MENDED}
    for epoch, builders in orders.items():
        expected = {(i, n, builders[(i + n) % 4]) for i in range(4) for n in range(4)}
        assert partners[epoch] == expected
