"""Scenarios of fabrics: what they say, what they refuse."""

import functools
import json
import os
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.deployment.fabric_system import fabric_system
from daqloom.deployment.scenarios import load, override
from daqloom.scenario import Scenario, ScenarioError, known_keys, presets, to_toml
from daqloom.scenario.document import keys as given_keys
from daqloom.scenario.document import look
from daqloom.scenario.schema.parts import Parts
from daqloom.topology.routing.routes import trace
from daqloom.topology.shapes.shape import cable_network
from support.repository import DATA, ROOT
from support.small_fabrics import INFINIBAND

FABRICS = [name for name in presets() if Parts.INCAST not in load(name).parts]


def test_fabrics_are_shipped_beside_racks_and_have_most_keys() -> None:
    assert "lhcb-run3-test" in FABRICS
    assert "atlas-lab" not in FABRICS
    assert isinstance(load("lhcb-run3-test"), Scenario)
    assert load("atlas-lab").name == "atlas-lab"
    assert len({key for key, _ in first_shown()}) > 150


def test_switches_of_an_ethernet_combine_no_barriers() -> None:
    with pytest.raises(ScenarioError, match=r'building.barrier = "network" requires network'):
        load("lhcb-ethernet", {"building.barrier": "network"})
    assert load("lhcb-run3", {"building.barrier": "network"}).building.barrier_level_latency


def given_in(scenario: Scenario) -> dict[str, object]:
    """The keys that a scenario shows, and their values as a file has them."""
    shown = scenario.document()
    return {key: look(shown, key) for key in given_keys(shown)}


@functools.cache
def first_shown() -> dict[tuple[str, str], str]:
    """The first shipped scenario that has some value of a key, for each key and value."""
    shown: dict[tuple[str, str], str] = {}
    for name in presets():
        for key, value in given_in(load(name)).items():
            shown.setdefault((key, json.dumps(value)), name)
    return shown


@pytest.mark.parametrize("name", presets())
def test_every_key_can_be_set_to_its_default(name: str) -> None:
    """Alone, unless another scenario has the same value of it; and with some others; and all."""
    scenario = load(name)
    whole, keys = scenario.hash(), given_in(scenario)
    alone = [key for key in keys if first_shown()[key, json.dumps(keys[key])] == name]
    mixed = random.Random(name).sample(sorted(keys), len(keys))
    some = [mixed[at : at + 32] for at in range(0, len(mixed), 32)]
    for chosen in [*([key] for key in alone), *some, mixed]:
        changes = {key: keys[key] for key in chosen}
        assert override(scenario, changes).hash() == whole, chosen


@pytest.mark.soak
@pytest.mark.parametrize("name", presets())
def test_every_key_of_every_scenario_can_be_set_to_its_default_alone(name: str) -> None:
    scenario = load(name)
    whole = scenario.hash()
    for key, value in given_in(scenario).items():
        assert override(scenario, {key: value}).hash() == whole, key


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("network.switch.bufer=1 MB", 'did you mean "network.switch.buffer"'),
        ("event.size=1 MB", 'event.size means nothing with building.protocol = "shift"'),
        ("network.links.rate=fast", 'a rate such as "25 Gb/s", or by the name of a speed: SDR'),
        ("network.switch.buffer=4 KiB", "is smaller than a full packet of 65 blocks"),
        ("network.shape=imported", 'requires dumps, such as "cluster64"'),
        ("network.leaves=1024", "more than 8192 hosts"),
        ("transport.mtu=9000 B", "must be at most 4 KiB"),
        ("network.lanes.low=[[1, 64]]", "expected a lane of 0 to 0"),
        ("network.lanes.low=[[0, 0]]", "no packet would be sent"),
        ("network.lanes.service_levels=[0, 1]", "service_levels uses lane 1; expected"),
        ("network.lanes.service_levels=[-1]", "must be at least 0"),
        ("transport.data_service_level=16", "must be at most 15"),
        ("hosts.latency.kind=histogram", 'kind = "histogram" requires a file'),
        ("transport.retry_count=8", "must be at most 7"),
        ("readout.units=320", "groups have 963 sources"),
        ("run.warmup=1 s", "leaves no time to count of run.duration"),
        ("building.barrier=round", "is not known; expected 'none'"),
        ("building.pace=fast", "is not known; expected 'schedule' or 'builder'"),
        ("building.writers=2", 'means nothing with building.pace = "schedule"'),
        ("building.write_order=arrival", 'means nothing with building.pace = "schedule"'),
        ("building.barrier_slack=65", "building.barrier_slack"),
        ("building.synchronise=never", "is not known; expected 'always' or 'adaptive'"),
        ("building.barrier_group=0", '= 0 is not known; expected "all", "leaf", or the number'),
        ("building.barrier_group=rack", '= "rack" is not known; expected "all", "leaf", or'),
        ("building.barrier_group=2.5", "of readout units of a group, 1 to 65536"),
        ("building.barrier_group=true", "= true is not known; expected"),
        ("readout.card.buffer=1 MB", "readout.card.buffer requires event.rate"),
        ("readout.card.spike_probability=2", "readout.card.spike_probability"),
    ],
)
def test_impossible_fabrics_are_refused_in_one_sentence(override: str, said: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        load("lhcb-run3-test", [override])
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("writers", "0", "building.writers = 0 is too small; it must be at least 1"),
        ("writers", '"two"', "building.writers"),
        ("write_order", '"size"', "is not known; expected 'arrival' or 'schedule'"),
        ("barrier_group", "70000", "building.barrier_group = 70000 is not known"),
    ],
)
def test_a_bad_rule_of_pacing_is_refused_with_its_file(key, value, said, tmp_path) -> None:
    file = tmp_path / "paced.toml"
    rules = f'[building]\nprotocol = "shift"\npace = "builder"\n{key} = {value}\n'
    file.write_text('[network]\ntechnology = "infiniband"\n' + rules)
    with pytest.raises(ScenarioError) as refused:
        load(file)
    assert str(file) in str(refused.value)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "key", ["barrier_group=leaf", "barrier_slack=1", "phases_per_barrier=2", "synchronise=adaptive"]
)
def test_without_a_barrier_it_has_no_groups_slack_and_intervals(key: str) -> None:
    name = key.split("=")[0]
    for choice in ("change=window", "barrier=none"):
        refused = rf"{name} means nothing with building\.{choice.split('=')[0]}"
        with pytest.raises(ScenarioError, match=refused):
            load("lhcb-run3-test", [f"building.{choice}", f"building.{key}"])


def test_rules_of_pacing_are_shown_and_read_back(tmp_path: Path) -> None:
    rules = {"pace": "builder", "writers": 3, "write_order": "schedule", "barrier_group": 20}
    scenario = load("lhcb-run3-test", {f"building.{key}": value for key, value in rules.items()})
    shown = tmp_path / "shown.toml"
    shown.write_text(to_toml(scenario))
    for line in ('pace = "builder"', "writers = 3", 'write_order = "schedule"'):
        assert f"{line}\n" in shown.read_text()
    assert "barrier_group = 20\n" in shown.read_text()
    assert load(shown).hash() == scenario.hash()
    on_leaves = load(shown, ["building.barrier_group=leaf", "building.barrier_slack=2"])
    assert on_leaves.building.in_words.endswith("tournament barrier on each leaf, slack 2")
    assert 'barrier_group = "leaf"\n' in to_toml(on_leaves)
    assert on_leaves.hash() != scenario.hash()
    adaptive = load(shown, ["building.synchronise=adaptive"])
    assert adaptive.building.in_words.endswith("tournament barrier of 20, adaptive")
    assert 'synchronise = "adaptive"\n' in to_toml(adaptive)


def test_a_window_has_to_leave_time_to_send_and_a_service_level_has_to_be_served() -> None:
    with pytest.raises(ScenarioError, match="grace is as long as window"):
        load("lhcb-run3-test", ["building.change=window", "building.grace=1 ms"])
    lanes = ["network.lanes.count=2", "network.lanes.service_levels=[0, 1]"]
    assert load("lhcb-run3-test", lanes).hash()
    lane = r"transport.control_service_level = 1 is on lane 1, which"
    with pytest.raises(ScenarioError, match=lane):
        load("lhcb-run3-test", [*lanes, "transport.control_service_level=1"])


ON = '[network]\ntechnology = "infiniband"\n'


def test_latencies_are_known_by_their_content(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name, text in {"a.txt": "1\n2\n", "deep/b.txt": "# us\n2\n1\n", "c.txt": "1\n3\n"}.items():
        (tmp_path / name).write_text(text)
    hashes = []
    for name in ("a.txt", "deep/b.txt", "c.txt"):
        file = tmp_path / "mine.toml"
        file.write_text(f'{ON}[hosts.latency]\nkind = "histogram"\nfile = "{name}"\n')
        scenario = load(file)
        hashes.append(scenario.hash())
        assert override(scenario, {"hosts.latency.less": "0 s"}).hash() == hashes[-1]
    assert hashes[0] == hashes[1] != hashes[2]
    (tmp_path / "mine.toml").write_text(f'{ON}[hosts]\nmessage_cost = "0 s"\n')
    assert load(tmp_path / "mine.toml").hash() == INFINIBAND.hash()  # not read


def test_dumps_are_known_by_their_content(tmp_path: Path) -> None:
    shipped = override(INFINIBAND, {"network.shape": "imported", "network.dumps": "cluster64"})
    copy = tmp_path / "mine"
    shutil.copytree(ROOT / "scenarios" / "fabrics" / "cluster64", copy)
    file = tmp_path / "mine.toml"
    file.write_text(f'{ON}shape = "imported"\ndumps = "./mine"\n')
    assert load(file).hash() == shipped.hash()
    with (copy / "ibnetdiscover.txt").open("a") as dump:
        dump.write("# another line\n")
    assert load(file).hash() != shipped.hash()
    file.write_text(f'{ON}shape = "imported"\ndumps = "./nobody"\n')
    with pytest.raises(ScenarioError, match="is not a folder or file; expected a folder with "):
        load(file)


LLDP = '[network]\nshape = "imported"\ndumps = "./lldp"\n[network.links]\nrate = "400 Gb/s"\n'


def test_an_ethernet_is_imported_from_its_neighbour_tables(tmp_path: Path) -> None:
    tables = tmp_path / "lldp"
    shutil.copytree(DATA / "leaf-spine-lldp", tables)
    file = tmp_path / "mine.toml"
    file.write_text(LLDP)
    scenario = load(file)
    fabric, routes, _, warnings = cable_network(scenario)
    assert (len(fabric.hosts), len(fabric.switches), len(fabric.cables)) == (9, 6, 17)
    assert {cable.rate_bps for cable in fabric.cables} == {400_000_000_000}
    assert not any("rates" in warning for warning in warnings)
    assert trace(fabric, routes).pairs_lost == 0
    with pytest.raises(ScenarioError, match=r"source\.rate means nothing with network\.shape = "):
        override(scenario, {"network.links.source.rate": "1 Gb/s"})
    before = scenario.hash()
    # A device is known by the name of its file.
    (tables / "ru0.lldp.json").rename(tables / "ru9.lldp.json")
    assert load(file).hash() != before
    os.mkfifo(tables / "spine2.lldp.txt")
    with pytest.raises(ScenarioError, match=r"spine2\.lldp\.txt cannot be read: it is a named"):
        load(file).hash()


def test_dumps_may_be_one_file(tmp_path: Path) -> None:
    (tmp_path / "lab.toml").write_text(
        'hosts = ["a", "b"]\nswitches = ["s"]\ncables = [\n'
        '{ from = "a", to = ["s", "swp2"] }, { from = "b", to = ["s", "swp1"], rate = "25 Gb/s" }]'
    )
    file = tmp_path / "mine.toml"
    file.write_text(LLDP.replace("./lldp", "lab.toml"))
    fabric = cable_network(load(file)).fabric
    assert [cable.rate_bps for cable in fabric.cables] == [400_000_000_000] * 2
    before = load(file).hash()
    (tmp_path / "lab.toml").write_text((tmp_path / "lab.toml").read_text() + "\n")
    assert load(file).hash() != before


KEYS = st.sampled_from(list(known_keys(Scenario)))
VALUES = st.one_of(
    st.text("0123456789.-+eE kMGTBbHzs/[]{}=\"'\n", max_size=30),
    st.integers(),
    st.floats(),
    st.lists(st.lists(st.integers(-1, 300), max_size=3), max_size=3),
)


@given(st.dictionaries(KEYS, VALUES, max_size=3))
def test_any_value_gives_a_scenario_or_a_sentence(overrides: dict[str, object]) -> None:
    said = ""
    try:
        assert load("lhcb-run3-test", overrides).hash()
    except ScenarioError as error:
        said = str(error)
    assert not said or (said.isprintable() and len(said) < 2000)


def test_a_switch_model_gives_the_defaults_of_missing_keys(tmp_path: Path) -> None:
    keys = ["network.switch.model=sb7700", "network.hosts_per_leaf=18"]
    edr = load("lhcb-run3-test", keys).network
    assert (edr.switch.radix, edr.links.rate) == (36, 100_000_000_000)
    assert (edr.switch.latency, edr.switch.buffer) == (90e-9, 65_536)
    faster = load("lhcb-run3-test", ["network.links.rate=NDR"]).network
    assert (faster.switch.radix, faster.links.rate) == (40, 400_000_000_000)
    (tmp_path / "own.toml").write_text(f'{ON}links.rate = "50 Gb/s"\nswitch.latency = "1 us"\n')
    kept = load(tmp_path / "own.toml", ["network.switch.model=hdr-40"]).network
    assert (kept.links.rate, kept.switch.latency) == (50_000_000_000, 1e-6)
    other = load(tmp_path / "own.toml", ["network.switch.model=sb7700"]).network
    assert (other.links.rate, other.switch.latency) == (100_000_000_000, 90e-9)


def test_imported_cables_keep_their_rates_unless_one_is_given() -> None:
    as_printed = override(INFINIBAND, {"network.shape": "imported", "network.dumps": "cluster64"})
    slow = {cable.rate_bps for cable in fabric_system(as_printed).fabric.cables}
    assert slow == {8_000_000_000}  # 4xSDR, which a simulated fabric prints
    given = override(as_printed, {"network.links.rate": "EDR"})
    assert {cable.rate_bps for cable in fabric_system(given).fabric.cables} == {100_000_000_000}
    with pytest.raises(ScenarioError, match=r"takes the rates of imported dumps"):
        load("lhcb-run3-test", ["network.links.rate=0 b/s"])
