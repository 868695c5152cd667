"""The networks of scenarios: shapes, ports and what is refused."""

import pytest

from daqloom.deployment.fabric_system import fabric_system
from daqloom.deployment.scenarios import load, override
from daqloom.scenario import Scenario
from daqloom.scenario.errors import ScenarioError
from daqloom.study.methods import methods
from daqloom.topology.shapes.shape import cables
from support.small_fabrics import INFINIBAND, metrics

ONE = override(
    INFINIBAND, {"network.shape": "one-switch", "readout.streams": 1, "readout.units": 4}
)
SHORT = {"event.packing": 1000, "run.duration": "1 ms", "run.warmup": "0.1 ms"}


def one(**changes: object) -> Scenario:
    return override(ONE, {key.replace("__", "."): value for key, value in changes.items()})


@pytest.mark.parametrize("units", [1, 2, 300, 1023])
def test_one_switch_has_a_port_for_each_unit(units: int) -> None:
    fabric, _ = cables(one(readout__units=units))
    assert (len(fabric.hosts), len(fabric.switches)) == (units, 1)
    assert fabric.switches[0].ports >= units


def test_one_switch_has_hosts_for_all_kinds_of_units() -> None:
    spare = one(readout__units=8, hosts__spares=2)
    assert len(fabric_system(spare).hosts) == 10
    apart = one(readout__units=8, builders__units=7, builders__folded=False)
    assert len(cables(apart)[0].hosts) == 15
    units = [{"unit": n, "host": 2 - n} for n in range(3)]
    table = override(ONE, {"hosts.placement": "table", "hosts.units": units})
    assert len(cables(table)[0].hosts) == 3
    # Units without a number are on all hosts.
    assert fabric_system(one(readout__units=0, network__hosts=16)).nodes == 16


def test_shift_and_pull_over_one_switch_reach_the_links_and_fill_its_buffer() -> None:
    scenario = override(one(readout__units=12), SHORT | {"building.barrier": "ideal"})
    analysed, simulated = methods.analyse(scenario), methods.simulate(scenario)
    rates = [each.metrics["written_event_rate_hz"] for each in (analysed, simulated)]
    assert rates[1] == pytest.approx(rates[0], rel=0.05)
    assert not any("share a link" in each for each in analysed.warnings)
    changes = {"network.shape": "one-switch", "run.duration": "8 ms", "run.warmup": "2 ms"}
    result = methods.simulate(override(load("atlas-lab"), changes), seed=1)
    assert list(result.metrics["buffer_peak_bytes"]) == ["leaf"]
    assert metrics(result)["events_built"] > 0


REFUSED = [
    ({"readout.units": 0}, "requires a number of units, or network.hosts"),
    ({"readout.units": 20, "network.hosts": 16}, "use fewer units, or a larger network.hosts"),
    ({"readout.units": 1024}, "one switch has at most 1023 ports"),
    ({"network.links.rate": "0 b/s"}, "one-switch requires a rate"),
    ({"network.leaves": 2}, "network.leaves means nothing"),
    ({"network.shape": "rack"}, "expected one-switch (all hosts on it), fat-tree"),
]


@pytest.mark.parametrize(("changes", "said"), REFUSED)
def test_impossible_single_switches_are_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        methods.analyse(override(ONE, changes))
    assert said in str(error.value)


def test_a_tree_takes_the_ports_that_it_needs() -> None:
    tree = {"network.leaves": 2, "network.spines": 64, "network.hosts_per_leaf": 256}
    fabric, _ = cables(override(INFINIBAND, tree))
    assert {switch.ports for switch in fabric.switches} == {256 + 64 * 2}
    assert len(fabric.hosts) == 512
    assert override(INFINIBAND, tree).assumptions()["network.switch.radix"] == "384"
    # The default counts where it suffices, and a product or a number that is given always.
    assert cables(INFINIBAND)[0].switches[0].ports == 40
    for given in ({"network.switch.radix": 256}, {"network.switch.model": "sb7700"}):
        with pytest.raises(ScenarioError, match="a leaf needs 384 ports, and its radix is"):
            cables(override(INFINIBAND, tree | given))
