"""Broken cables of laboratories, those between switches included."""

import subprocess
import sys
from typing import Any

import pytest

from daqloom.deployment.scenarios import load, override
from daqloom.lab.balance import settle
from daqloom.lab.laboratory import Laboratory
from daqloom.lab.network import lab_network, later_forwarding
from daqloom.measure.fault_plan import unit_outages
from daqloom.measure.run import measure
from daqloom.scenario import ScenarioError
from daqloom.scenario.schema.models import Scenario
from daqloom.study.methods import methods
from support.laboratories import RECEIVE, SEND
from support.namespaces import can_make_networks

PIPES: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
NETWORK = pytest.mark.skipif(not can_make_networks(), reason="network namespaces are for root only")
UP, BACK = "leaf00 port 39", "spine00 port 1"
"""Links of the only cable between leaf00 and spine00, over which leaf00 sends at first."""
OTHER = "leaf00 port 40"


def two_leaves(**fault: object) -> Scenario:
    """Two hosts on each of two leaves below two spines, whose links have 40 Mb/s."""
    keys: dict[str, object] = {
        "network.shape": "fat-tree",
        "network.leaves": 2,
        "network.spines": 2,
        "network.spine_links": 1,
        "network.hosts_per_leaf": 2,
        "readout.units": 4,
        "readout.streams": 1,
        "measure.fault_timeout": "20 s",
        "measure.duration": "7 s",
    }
    return load("lab-shift", keys | {f"faults.injected.cut.{k}": v for k, v in fault.items()})


CABLE = {"which": UP, "at": "2 s", "lasts": "2 s"}


@NETWORK
@pytest.mark.process
def test_a_cut_link_drops_and_counts_all_frames_until_tables_avoid_it_or_it_is_mended() -> None:
    """Ten datagrams, of one frame each, are sent between the leaves four times."""
    scenario = two_leaves(**CABLE)
    (_, around), (_, back) = later_forwarding(scenario)
    network = lab_network(scenario)
    with Laboratory(network) as lab:
        sender, receiver = lab.hosts[0], lab.hosts[2]
        command = [*receiver.enter, sys.executable, "-c", RECEIVE]
        found = []
        with subprocess.Popen(command, **PIPES) as process:
            assert process.stdout.readline() == "ready\n"

            def send() -> None:
                to = network.hosts[2].address
                subprocess.run([*sender.enter, sys.executable, "-c", SEND, to, "10"], check=True)
                assert settle(lab).unaccounted == 0
                ports = lab.read().ports
                found.append((ports[UP].sent, ports[UP].dropped, ports[OTHER].sent))

            send()
            lab.cut({UP, BACK})
            send()
            lab.forward(around)
            send()
            lab.cut(())
            lab.forward(back)
            send()
            received = int(process.communicate()[0])
    assert found == [(10, 0, 0), (10, 10, 0), (10, 10, 10), (20, 10, 10)]
    assert received == 30


@NETWORK
@pytest.mark.process
@pytest.mark.usefixtures("any_machine")
@pytest.mark.parametrize("routing", ["none", "sweep"])
def test_a_run_loses_frames_only_at_the_broken_cable_as_in_the_simulation(routing: str) -> None:
    scenario = override(two_leaves(**CABLE), {"faults.routing": routing})
    found, simulated = measure(scenario), methods.simulate(scenario)
    assert found.metric("faults_begun") == simulated.metric("faults_begun") == 1
    # Eight pairs of units cross. Each has a window of 128 KiB in flight, and sends at most one
    # segment again after 0.2, 0.6 and 1.4 s of the 2 s.
    most = 8 * (128 * 1024 / 1448 + 1 + 3)
    for result in (found, simulated):
        assert 0 < result.metrics["packets_dropped"] <= most
    assert found.metrics["drops_by_port"].keys() <= {UP, BACK}
    used = found.metrics["link_utilisation"]
    assert used[UP] > 0
    assert (used[OTHER] > 0) == (routing == "sweep")
    assert found.metric("packets_unaccounted") == 0
    accounts = found.metrics["events_accounted"]
    assert accounts["built"] == accounts["begun"] > 0
    assert not any("faults." in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("fault", "links"),
    [
        ({"which": UP}, {UP, BACK}),
        ({"which": BACK}, {UP, BACK}),
        ({"which": UP, "how": "one-way"}, {BACK}),
        ({"what": "port", "which": UP}, {UP, BACK}),
        ({"which": "H00-01"}, {"H00-01", "leaf00 port 2"}),
        ({"what": "switch", "which": "spine00"}, {UP, BACK, "leaf01 port 39", "spine00 port 2"}),
    ],
)
def test_a_fault_cuts_the_links_that_the_simulation_breaks(fault, links) -> None:
    (outage,) = unit_outages(two_leaves(**fault))
    assert set(outage.cut) == links


def test_faults_that_a_laboratory_cannot_make_are_refused() -> None:
    with pytest.raises(ScenarioError, match="is not degraded in a laboratory"):
        unit_outages(two_leaves(which=UP, how="degraded", rate="1 Mb/s"))
    rings = {"network.switch.leaf.model": "software"}
    with pytest.raises(ScenarioError, match="leaf00 keeps its forwarding table"):
        later_forwarding(override(two_leaves(**CABLE), rings))
