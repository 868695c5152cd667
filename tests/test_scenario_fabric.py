"""Scenarios of fabrics: what they say, what they refuse."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import daqloom
from daqloom.scenario import (
    FabricScenario,
    ScenarioError,
    known_keys,
    load_system,
    presets,
    to_toml,
)
from daqloom.scenario.load import load
from daqloom.topology.system import fabric_system

ROOT = Path(__file__).parent.parent
FABRICS = [name for name in presets() if isinstance(load_system(name), FabricScenario)]


def test_fabrics_are_shipped_beside_racks() -> None:
    assert "lhcb-run3-test" in FABRICS
    assert "atlas-lab" not in FABRICS


@pytest.mark.parametrize("name", FABRICS)
def test_what_is_shown_reads_back_as_the_same_system(name: str, tmp_path: Path) -> None:
    shown = tmp_path / "shown.toml"
    shown.write_text(to_toml(load_system(name)))
    assert load_system(shown).hash() == load_system(name).hash()


def test_every_key_is_described_and_can_be_set_to_its_default() -> None:
    a_flow = {"nodes.protocol": "flows", "flows.a.source": 0, "flows.a.destination": 1}
    scenario = FabricScenario().with_overrides(a_flow)
    shown = scenario.model_dump(mode="json")
    page = (ROOT / "docs" / "reference" / "scenario.md").read_text()
    for known in known_keys(FabricScenario):
        key = known.replace("*", "a")
        value = shown
        for part in key.split("."):
            value = value[part]
        assert scenario.with_overrides({key: value}).hash() == scenario.hash()
        assert f"`{key.rpartition('.')[2]}`" in page


def test_the_api_loads_both_kinds() -> None:
    assert isinstance(daqloom.load("lhcb-run3-test"), FabricScenario)
    assert daqloom.load("atlas-lab").name == "atlas-lab"


def test_what_needs_a_rack_says_so() -> None:
    with pytest.raises(ScenarioError, match=r"lhcb-run3-test is the scenario of a fabric"):
        load("lhcb-run3-test")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("fabric.bufer=1 MB", 'unknown key "fabric.bufer"; did you mean "fabric.buffer"'),
        ("event.rate=1 kHz", 'unknown key "event.rate"'),
        ("fabric.rate=fast", 'a rate such as "25 Gb/s", or by the name of a speed: SDR'),
        ("fabric.buffer=4 KiB", "holds no full packet of 65 blocks"),
        ("fabric.shape=imported", 'needs dumps, such as "cluster64"'),
        ("fabric.leaves=1024", "more than 8192 hosts"),
        ("fabric.mtu=9000 B", "must be at most 4 KiB"),
        ("fabric.lanes.low=[[1, 64]]", "expected a lane of 0 to 0"),
        ("fabric.lanes.low=[[0, 0]]", "nothing would ever be sent"),
        ("fabric.lanes.service_levels=[0, 1]", "service_levels uses lane 1; expected"),
        ("fabric.lanes.service_levels=[-1]", "must be at least 0"),
        ("nodes.data_service_level=16", "must be at most 15"),
        ("nodes.latency=histogram", "needs a file in latency_file"),
        ("nodes.retry_count=8", "must be at most 7"),
        ("nodes.count=320", "groups have 963 sources"),
        ("run.warmup=1 s", "leaves nothing of run.duration"),
        ("shift.barrier=round", "is not known; expected 'none'"),
        ("nodes.card.buffer=1 MB", "nodes.card.buffer needs fragments.rate"),
        ("nodes.card.spike_probability=2", "nodes.card.spike_probability"),
    ],
)
def test_what_is_no_system_is_refused_in_one_sentence(override: str, said: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        load_system("lhcb-run3-test", [override])
    assert said in str(refused.value)


def test_a_window_has_to_leave_time_to_send() -> None:
    with pytest.raises(ScenarioError, match="grace is as long as window"):
        load_system("lhcb-run3-test", ["shift.change=window", "shift.grace=1 ms"])


def test_a_service_level_has_to_be_served() -> None:
    lanes = ["fabric.lanes.count=2", "fabric.lanes.service_levels=[0, 1]"]
    assert load_system("lhcb-run3-test", lanes).hash()
    with pytest.raises(ScenarioError, match=r"nodes.control_service_level = 1 is on lane 1, which"):
        load_system("lhcb-run3-test", [*lanes, "nodes.control_service_level=1"])


def test_latencies_are_known_by_their_content(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name, text in {"a.txt": "1\n2\n", "deep/b.txt": "# us\n2\n1\n", "c.txt": "1\n3\n"}.items():
        (tmp_path / name).write_text(text)
    hashes = []
    for name in ("a.txt", "deep/b.txt", "c.txt"):
        file = tmp_path / "mine.toml"
        file.write_text(f'[nodes]\nlatency = "histogram"\nlatency_file = "{name}"\n')
        scenario = load_system(file)
        hashes.append(scenario.hash())
        assert scenario.with_overrides({"nodes.latency_less": "0 s"}).hash() == hashes[-1]
    assert hashes[0] == hashes[1] != hashes[2]
    (tmp_path / "mine.toml").write_text('[nodes]\nlatency_file = "nowhere.txt"\n')
    assert load_system(tmp_path / "mine.toml").hash() == FabricScenario().hash()  # not read


def test_dumps_are_known_by_their_content(tmp_path: Path) -> None:
    shipped = FabricScenario().with_overrides(
        {"fabric.shape": "imported", "fabric.dumps": "cluster64"}
    )
    copy = tmp_path / "mine"
    shutil.copytree(ROOT / "scenarios" / "fabrics" / "cluster64", copy)
    file = tmp_path / "mine.toml"
    file.write_text('[fabric]\nshape = "imported"\ndumps = "./mine"\n')
    assert load_system(file).hash() == shipped.hash()
    with (copy / "ibnetdiscover.txt").open("a") as dump:
        dump.write("# another line\n")
    assert load_system(file).hash() != shipped.hash()
    file.write_text('[fabric]\nshape = "imported"\ndumps = "./nobody"\n')
    with pytest.raises(ScenarioError, match="is no folder; expected one with ibnetdiscover"):
        load_system(file)


KEYS = st.sampled_from(list(known_keys(FabricScenario)))
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
        assert load_system("lhcb-run3-test", overrides).hash()
    except ScenarioError as error:
        said = str(error)
    assert not said or (said.isprintable() and len(said) < 2000)


def test_a_switch_fills_in_what_is_not_given() -> None:
    edr = load_system("lhcb-run3-test", ["fabric.switch=sb7700", "fabric.hosts_per_leaf=18"]).fabric
    assert (edr.radix, edr.rate, edr.buffer) == (36, 100_000_000_000, 65_536)
    assert edr.switch_latency == 90e-9
    faster = load_system("lhcb-run3-test", ["fabric.rate=NDR"]).fabric
    assert (faster.radix, faster.rate) == (40, 400_000_000_000)


def test_another_switch_starts_from_its_own_numbers(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('[fabric]\nrate = "50 Gb/s"\nswitch_latency = "1 us"\n')
    kept = load_system(tmp_path / "own.toml", ["fabric.switch=hdr-40"]).fabric
    assert (kept.rate, kept.switch_latency) == (50_000_000_000, 1e-6)
    other = load_system(tmp_path / "own.toml", ["fabric.switch=sb7700"]).fabric
    assert (other.rate, other.switch_latency) == (100_000_000_000, 90e-9)


def test_imported_cables_keep_their_rates_unless_one_is_given() -> None:
    as_printed = FabricScenario.model_validate(
        {"fabric": {"shape": "imported", "dumps": "cluster64"}}
    )
    slow = {cable.rate_bps for cable in fabric_system(as_printed).fabric.cables}
    assert slow == {8_000_000_000}  # 4xSDR, which a simulated fabric prints
    given = as_printed.with_overrides({"fabric.rate": "EDR"})
    assert {cable.rate_bps for cable in fabric_system(given).fabric.cables} == {100_000_000_000}
    with pytest.raises(ScenarioError, match=r"stands for the rates of imported dumps"):
        load_system("lhcb-run3-test", ["fabric.rate=0 b/s"])
