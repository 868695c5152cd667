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
    scenario = FabricScenario()
    shown = scenario.model_dump(mode="json")
    page = (ROOT / "docs" / "reference" / "scenario.md").read_text()
    for key in known_keys(FabricScenario):
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
        ("fabric.buffer=4 KiB", "holds no full packet of 65 blocks"),
        ("fabric.shape=imported", 'needs dumps, such as "cluster64"'),
        ("fabric.leaves=1024", "more than 8192 hosts"),
        ("fabric.mtu=9000 B", "must be at most 4 KiB"),
        ("fabric.lanes.low=[[1, 64]]", "expected a lane of 0 to 0"),
        ("fabric.lanes.low=[[0, 0]]", "nothing would ever be sent"),
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
