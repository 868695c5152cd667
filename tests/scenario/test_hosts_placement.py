"""Units placed one by one, and cables listed one by one."""

from pathlib import Path

import pytest

from daqloom import methods
from daqloom.measure.configure import places
from daqloom.measure.run import plan_of
from daqloom.scenario import Scenario, ScenarioError, to_toml
from daqloom.study.kinds import FABRIC
from daqloom.topology import TopologyError
from daqloom.topology.cabled import cables
from daqloom.topology.loaded import load, override
from daqloom.topology.schedule import DUMMY
from daqloom.topology.system import fabric_system
from support.repository import ROOT
from support.small_fabrics import metrics, small

MIXED = [
    {"unit": 0, "role": "builder", "host": "H01-01"},
    {"unit": 2, "role": "readout", "host": 0},
    {"unit": 1, "host": "H00-01"},
]


def from_text(folder: Path, text: str) -> Scenario:
    (folder / "own.toml").write_text(text)
    return load(folder / "own.toml")


def placed(units: object, **changes: object) -> Scenario:
    return small(hosts__placement="table", hosts__units=units, **changes)


def test_a_table_says_which_unit_is_where(tmp_path: Path) -> None:
    scenario = placed(MIXED)
    system = fabric_system(scenario)
    assert system.hosts == [3, 1, 0]  # of H00-00, H00-01, H01-00, H01-01, in the order of units
    # Unit 2, the first that reads out alone, shares the slot of unit 0, the first that only builds.
    assert system.readouts.tolist() == [0, 1]
    assert system.builders.tolist() == [3, 1]
    assert not scenario.folded
    assert from_text(tmp_path, to_toml(scenario)).hash() == scenario.hash()
    assert places(scenario).readouts == [2, 1]
    assert places(scenario).builders == [0, 1]


def test_a_table_of_folded_units_in_the_order_of_ports_is_the_rule() -> None:
    rule = small()
    table = placed([{"unit": unit, "host": unit} for unit in range(4)])
    for scenario in (rule, table):
        assert fabric_system(scenario).slots.tolist() == [0, 1, 2, 3]
    assert methods.simulate(rule, seed=1).metrics == methods.simulate(table, seed=1).metrics
    assert methods.analyse(rule).metrics == methods.analyse(table).metrics


@pytest.mark.parametrize("protocol", ["shift", "daqpipe"])
def test_a_table_by_turns_is_unfolded(protocol: str) -> None:
    roles = ["readout", "builder"]
    entries = [{"unit": unit, "role": roles[unit % 2], "host": unit} for unit in range(4)]
    changes = {"building__protocol": protocol, "building__dummies": "none"}
    if protocol == "daqpipe":
        del changes["building__dummies"]
    rule = small(builders__folded=False, readout__units=2, **changes)
    table = placed(entries, **changes)
    assert methods.simulate(rule, seed=1).metrics == methods.simulate(table, seed=1).metrics
    if protocol == "daqpipe":
        assert methods.analyse(rule).metrics == methods.analyse(table).metrics


def test_more_readout_than_builder_units_build_every_event() -> None:
    units = [{"unit": unit, "role": "readout", "host": unit} for unit in range(3)]
    units.append({"unit": 3, "role": "builder", "host": 3})
    scenario = placed(units)
    system = fabric_system(scenario)
    assert system.builders.tolist() == [3, DUMMY, DUMMY]
    found = metrics(methods.simulate(scenario, seed=1))
    # Three fragments of each event go over the one link of the builder unit.
    packets_s = 100 * (4096 + 26) * 8 / 200e9
    assert found["written_event_rate_hz"] < 4096 / (3 * packets_s)
    assert found["events_built"] > 0
    rules = plan_of(placed(units, measure__minimum=2)).rules
    assert rules.is_viable({0, 3})
    assert not rules.is_viable({0, 1, 2})  # nobody builds


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        ([], "requires hosts.units"),
        ([{"unit": 1, "host": 0}], "has no unit 0"),
        ([{"unit": 0, "host": 0}, {"unit": 0, "host": 1}], "has no unit 1, or one twice"),
        ([{"unit": 0, "host": 0}, {"unit": 1, "host": 0}], "has units 0 and 1 on 0"),
        ([{"unit": 0, "host": 0}, {"unit": 1, "host": "H00-00"}], "units 0 and 1 on H00-00"),
        ([{"unit": 0, "host": 0, "role": "readout"}], "has no builder unit"),
        ([{"unit": 0, "host": 0, "role": "builder"}], "has no readout unit"),
        ([{"unit": 0, "host": 4}], "the network has 4 hosts; expected 0 to 3"),
        ([{"unit": 0, "host": "H00-O0"}], 'did you mean "H00'),
        ([{"unit": 0, "host": "H00-00", "adapter": "mlx5_0"}], 'did you mean "H00-00'),
        ([{"unit": 0, "host": "H00-00", "role": "judge"}], "role"),
    ],
)
def test_a_table_that_says_nothing_possible_is_refused(units: object, expected: str) -> None:
    with pytest.raises(ScenarioError, match=expected):
        fabric_system(placed(units))


def test_keys_that_the_table_replaces_are_refused(tmp_path: Path) -> None:
    text = to_toml(placed([{"unit": 0, "host": 0}]))
    with pytest.raises(ScenarioError, match=r"readout.units means nothing with hosts.placement"):
        from_text(tmp_path, text.replace("[readout]", "[readout]\nunits = 4"))


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
    units = [
        {"unit": 0, "host": "node0"},
        {"unit": 1, "host": "node1", "adapter": "mlx5_1"},
    ]
    scenario = with_cables(hosts__placement="table", hosts__units=units)
    system = fabric_system(scenario)
    assert [system.fabric.hosts[host].name for host in system.hosts] == ["node0", "node1 mlx5_1"]
    found = metrics(methods.simulate(scenario, seed=1))
    assert found["events_built"] > 0
    assert from_text(tmp_path, to_toml(scenario)).hash() == scenario.hash()
    with pytest.raises(ScenarioError, match=r"whose adapters are mlx5_0, mlx5_1; give one"):
        fabric_system(override(scenario, {"hosts.units": [{"unit": 0, "host": "node1"}]}))


def test_a_list_of_the_fat_tree_is_the_fat_tree() -> None:
    tree = small(network__routing="minimal")
    fabric, _ = cables(tree)
    listed = small(
        network__shape="cables",
        network__switches=[switch.name for switch in fabric.switches],
        network__cables=[
            {"ends": [fabric.end_name(cable.a), fabric.end_name(cable.b)]}
            for cable in fabric.cables
        ],
        network__links__rate=tree.document()["network"]["links"]["rate"],
    )
    assert methods.simulate(listed, seed=1).metrics == methods.simulate(tree, seed=1).metrics
    assert FABRIC.simulation_s(listed, {}) == FABRIC.simulation_s(tree, {}) > 0


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
        (
            {
                "network__cables": [
                    {"ends": ["a", "leaf0 port 1"]},
                    {"ends": ["b", "leaf0 port 1"]},
                    {"ends": ["leaf1", "leaf0"]},
                    {"ends": ["leaf1", "spine0"]},
                ]
            },
            "leaf0 port 1 has two cables",
        ),
        ({"network__cables": [{"ends": ["a", "leaf0"], "count": 1024}] * 300}, "more than 262144"),
        ({"network__cables": [{"ends": ["a\n", "leaf0"]}]}, "is not a name"),
    ],
)
def test_cables_that_contradict_one_another_are_refused(
    changes: dict[str, object], expected: str
) -> None:
    with pytest.raises((ScenarioError, TopologyError), match=expected):
        methods.simulate(with_cables(**changes))


def test_cables_of_several_rates_have_no_closed_form() -> None:
    with pytest.raises(ScenarioError, match="cables run at 100 Gb/s to 200 Gb/s"):
        methods.analyse(with_cables())


def test_the_example_of_the_docs_builds_events(tmp_path: Path) -> None:
    page = ROOT / "docs/how-to/place-units-and-cables.md"
    text = page.read_text().split("```toml\n")[1].split("```")[0]
    scenario = from_text(tmp_path, text)
    assert fabric_system(scenario).readouts.tolist() == [0, 1]
    assert metrics(methods.simulate(scenario, seed=1))["events_built"] > 0
