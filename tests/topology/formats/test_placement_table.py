"""Units that are placed one by one."""

from pathlib import Path

import pytest

from daqloom.deployment.fabric_system import fabric_system
from daqloom.deployment.scenarios import load, override
from daqloom.measure.configure import places
from daqloom.measure.plan import plan_of
from daqloom.scenario import Scenario, ScenarioError, to_toml
from daqloom.scenario.document import keys
from daqloom.study.methods import methods
from daqloom.topology.schedule.slots import DUMMY
from support.small_fabrics import from_text, metrics, small

MIXED = [
    {"unit": 0, "role": "builder", "host": "H01-01"},
    {"unit": 2, "role": "readout", "host": 0},
    {"unit": 1, "host": "H00-01"},
]


def placed(units: object, **changes: object) -> Scenario:
    return small(hosts__placement="table", hosts__units=units, **changes)


def test_a_table_of_unit_places_replaces_keys(tmp_path: Path) -> None:
    scenario = placed(MIXED)
    system = fabric_system(scenario)
    assert system.hosts == [3, 1, 0]  # of H00-00, H00-01, H01-00, H01-01, in the order of units
    # Unit 2, the first that reads out alone, shares the slot of unit 0, the first that only builds.
    assert system.readouts.tolist() == [0, 1]
    assert system.builders.tolist() == [3, 1]
    assert not scenario.is_folded
    assert from_text(tmp_path, to_toml(scenario)).hash() == scenario.hash()
    assert places(scenario).readouts == [2, 1]
    assert places(scenario).builders == [0, 1]
    text = to_toml(placed([{"unit": 0, "host": 0}]))
    with pytest.raises(ScenarioError, match=r"readout.units means nothing with hosts.placement"):
        from_text(tmp_path, text.replace("[readout]", "[readout]\nunits = 4"))


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


def test_machines_take_the_hosts_of_a_network_without_their_names(tmp_path: Path) -> None:
    """LHCb's server twice: two NUMA nodes with an adapter and a unit each."""
    rule = small()
    servers = [("r5n0020", 0), ("r5n0020", 1), ("r5n0021", 0), ("r5n0021", 1)]
    entries = [
        {"unit": unit, "host": host, "numa": node, "device": f"mlx5_{node}", "cores": "0-3"}
        for unit, (host, node) in enumerate(servers)
    ]
    table = placed(entries)
    assert fabric_system(table).slots.tolist() == [0, 1, 2, 3]
    assert methods.simulate(rule, seed=1).metrics == methods.simulate(table, seed=1).metrics
    assert methods.analyse(rule).metrics == methods.analyse(table).metrics
    text = to_toml(table)
    assert from_text(tmp_path, text).hosts == table.hosts
    assert 'device = "mlx5_1"' in text
    assert "numa" not in to_toml(placed([{"unit": 0, "host": 0}]))
    with pytest.raises(ScenarioError, match="has 5 units, and the network has 4 hosts"):
        fabric_system(placed([*entries, {"unit": 4, "host": "r5n0022"}]))


def in_racks(units: object, **changes: object) -> Scenario:
    more = {key.replace("__", "."): value for key, value in changes.items()}
    return override(load("atlas-lab"), {"hosts.placement": "table", "hosts.units": units} | more)


def listed(*roles: str) -> list[dict[str, object]]:
    return [{"unit": unit, "role": role, "host": f"s{unit % 3}"} for unit, role in enumerate(roles)]


def test_a_table_gives_a_rack_its_units() -> None:
    few = {"readout.units": 4, "builders.units": 2, "run.duration": "20 ms", "run.warmup": "5 ms"}
    rule = override(load("atlas-lab"), few)
    table = in_racks(listed(*["readout"] * 4, "builder", "builder"), **few_of(few))
    assert (table.readout.units, table.builders.units, table.nodes) == (4, 2, 6)
    assert (places(table).readouts, places(table).builders) == (
        places(rule).readouts,
        [4, 5, -1, -1],
    )
    assert methods.analyse(table).metrics == methods.analyse(rule).metrics
    assert methods.simulate(table, seed=1).metrics == methods.simulate(rule, seed=1).metrics
    assert rule.hash() == override(rule, {}).hash()
    assert "readout.units" not in keys(table.document())
    farm = {"network.shape": "farm", "network.racks": 2}
    builders = in_racks(listed("readout", *["builder"] * 4), **farm)
    assert (builders.builders.units, builders.all_builders, builders.nodes) == (2, 4, 5)


def few_of(few: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in few.items() if key.startswith("run")}


@pytest.mark.parametrize(
    ("units", "racks"),
    [
        (listed("builder", "readout"), 1),
        (listed("readout", "builder", "both"), 1),
        (listed("readout", "builder", "spare"), 1),
        (listed("readout", "builder", "builder", "builder"), 2),
        (listed("both", "both", "both"), 2),
        ([{"unit": 0, "role": "both", "host": 0}], 1),
        ([{"unit": 0, "role": "both", "host": "a", "adapter": "b"}], 1),
    ],
)
def test_a_table_that_no_rack_has_is_refused(units: object, racks: int) -> None:
    shape = {"network.shape": "farm", "network.racks": racks} if racks > 1 else {}
    with pytest.raises(ScenarioError, match=r"hosts.units does not fit network.shape"):
        in_racks(units, **shape)


def test_a_rack_is_not_filled_or_spread() -> None:
    for placement in ("fill", "spread", "table"):
        with pytest.raises(ScenarioError, match="placement"):
            override(load("atlas-lab"), {"hosts.placement": placement})


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("numa", -2, "it must be at least -1"),
        ("numa", 1024, "it must be at most 1023"),
        ("device", "../../etc", "is not a network device"),
        ("device", "-e", "is not a network device"),
        ("device", "x" * 41, "is not a network device"),
        ("cores", "3-1", "is not a list of cores"),
        ("cores", "0-4096", "is not a list of cores"),
    ],
)
def test_an_impossible_placement_is_refused(key: str, value: object, expected: str) -> None:
    with pytest.raises(ScenarioError, match=expected):
        placed([{"unit": 0, "host": 0, key: value}])


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        ([], "requires hosts.units"),
        ([{"unit": 1, "host": 0}], "has no unit 0"),
        ([{"unit": 0, "host": 0}, {"unit": 0, "host": 1}], "has no unit 1, or one twice"),
        ([{"unit": 0, "host": 0}, {"unit": 1, "host": 0}], "has units 0 and 1 on H00-00"),
        ([{"unit": 0, "host": 0}, {"unit": 1, "host": "H00-00"}], "units 0 and 1 on H00-00"),
        ([{"unit": 0, "host": 0, "role": "readout"}], "has no builder unit"),
        ([{"unit": 0, "host": 0, "role": "builder"}], "has no readout unit"),
        ([{"unit": 0, "host": 4}], "the network has 4 hosts; expected 0 to 3"),
        ([{"unit": 0, "host": 1}, {"unit": 1, "host": "H00-O0"}], 'did you mean "H00'),
        ([{"unit": 0, "host": "H00-00", "adapter": "mlx5_0"}], 'did you mean "H00-00'),
        ([{"unit": 0, "host": "H00-00", "role": "judge"}], "role"),
    ],
)
def test_an_impossible_table_is_refused(units: object, expected: str) -> None:
    with pytest.raises(ScenarioError, match=expected):
        fabric_system(placed(units))
