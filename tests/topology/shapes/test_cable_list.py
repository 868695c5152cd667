"""Cables that a scenario lists one by one."""

from pathlib import Path

import pytest

from daqloom.deployment.fabric_system import fabric_system
from daqloom.deployment.scenarios import override
from daqloom.scenario import Scenario, ScenarioError, to_toml
from daqloom.study.file.kinds import FABRIC
from daqloom.study.methods import methods
from daqloom.topology import TopologyError
from daqloom.topology.shapes.shape import cables
from support.repository import ROOT
from support.small_fabrics import from_text, metrics, small

CABLES = {
    "network__shape": "cables",
    "network__switches": ["leaf0", "leaf1", "spine0"],
    "network__cables": [
        {"ends": ["node0", "leaf0"]},
        {"ends": ["leaf1 port 2", "node1 mlx5_0"], "rate": "EDR"},
        {"ends": ["node1 mlx5_1", "leaf1"]},
        {"ends": ["leaf0", "spine0"], "count": 2},
        {"ends": ["leaf1", "spine0 port 9"]},
    ],
    "network__links__rate": "HDR",
}


def with_cables(**changes: object) -> Scenario:
    return small(**({"network__links__rate": "HDR"} | CABLES | changes))


def test_cables_are_as_the_scenario_lists_them() -> None:
    fabric, warnings = cables(with_cables())
    assert not warnings
    assert [host.name for host in fabric.hosts] == ["node0", "node1 mlx5_0", "node1 mlx5_1"]
    assert [(switch.name, switch.ports) for switch in fabric.switches] == [
        ("leaf0", 3), ("leaf1", 3), ("spine0", 9)
    ]  # fmt: skip
    ends = [(fabric.end_name(c.a), fabric.end_name(c.b), c.rate_bps) for c in fabric.cables]
    hdr, edr = 200_000_000_000, 100_000_000_000
    assert ends == [
        ("node0", "leaf0 port 1", hdr),
        ("leaf1 port 2", "node1 mlx5_0", edr),
        ("node1 mlx5_1", "leaf1 port 1", hdr),  # the lowest that no cable names
        ("leaf0 port 2", "spine0 port 1", hdr),
        ("leaf0 port 3", "spine0 port 2", hdr),
        ("leaf1 port 3", "spine0 port 9", hdr),
    ]


def test_a_listed_network_is_simulated_and_routed_by_shortest_paths(tmp_path: Path) -> None:
    units = [{"unit": 0, "host": "node0"}, {"unit": 1, "host": "node1", "adapter": "mlx5_1"}]
    scenario = with_cables(hosts__placement="table", hosts__units=units)
    system = fabric_system(scenario)
    assert [system.fabric.hosts[host].name for host in system.hosts] == ["node0", "node1 mlx5_1"]
    found = metrics(methods.simulate(scenario, seed=1))
    assert found["events_built"] > 0
    assert from_text(tmp_path, to_toml(scenario)).hash() == scenario.hash()
    with pytest.raises(ScenarioError, match=r"whose adapters are mlx5_0, mlx5_1; give one"):
        fabric_system(override(scenario, {"hosts.units": [{"unit": 0, "host": "node1"}]}))


def test_a_list_of_the_fat_tree_is_the_fat_tree_and_rates_are_alike_in_closed_forms() -> None:
    tree = small(network__routing="minimal")
    fabric, _ = cables(tree)
    keys: dict[str, object] = {
        "switches": [switch.name for switch in fabric.switches],
        "cables": [{"ends": [fabric.end_name(c.a), fabric.end_name(c.b)]} for c in fabric.cables],
        "links__rate": tree.document()["network"]["links"]["rate"],
    }
    listed = small(network__shape="cables", **{f"network__{key}": keys[key] for key in keys})
    assert methods.simulate(listed, seed=1).metrics == methods.simulate(tree, seed=1).metrics
    assert FABRIC.simulation_s(listed, {}) == FABRIC.simulation_s(tree, {}) > 0
    with pytest.raises(ScenarioError, match="cables run at 100 Gb/s to 200 Gb/s"):
        methods.analyse(with_cables())


ENDS = (("a", "leaf0 port 1"), ("b", "leaf0 port 1"), ("leaf1", "leaf0"), ("leaf1", "spine0"))
TWICE = [{"ends": [*ends]} for ends in ENDS]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"network__cables": []}, "requires switches"),
        ({"network__switches": []}, "requires switches"),
        ({"network__switches": ["leaf0", "leaf0"]}, "names leaf0 twice"),
        ({"network__switches": ["leaf0", "leaf1", "spine0", "x"]}, "x has 0 cables"),
        ({"network__switches": ["leaf0", "leaf1"]}, "not in network.switches"),
        (
            {"name": "mine", "network__links__rate": "0 b/s"},
            r"^mine: network\.cables\.0 has no rate",
        ),
        ({"network__cables": [{"ends": ["a", "leaf0"]}] * 2}, "host a has 2 cables"),
        ({"network__cables": TWICE}, "leaf0 port 1 has two cables"),
        ({"network__cables": [{"ends": ["a", "leaf0"], "count": 1024}] * 300}, "more than 262144"),
        ({"network__cables": [{"ends": ["a\n", "leaf0"]}]}, "is not a name"),
    ],
)
def test_cables_that_contradict_one_another_are_refused(changes, expected: str) -> None:
    with pytest.raises((ScenarioError, TopologyError), match=expected):
        methods.simulate(with_cables(**changes))


def test_the_example_of_the_docs_builds_events(tmp_path: Path) -> None:
    page = ROOT / "docs/how-to/place-units-and-cables.md"
    text = page.read_text().split("```toml\n")[1].split("```")[0]
    scenario = from_text(tmp_path, text)
    assert fabric_system(scenario).readouts.tolist() == [0, 1]
    assert metrics(methods.simulate(scenario, seed=1))["events_built"] > 0
