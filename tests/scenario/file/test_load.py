"""Names, files and overrides: what is found, and what is said when it is not."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.deployment.scenarios import load, override, settle
from daqloom.scenario import Scenario, ScenarioError, known_keys
from daqloom.scenario.document import keys as keys_of_document
from daqloom.scenario.file.reference import reference
from daqloom.study.methods import methods
from support.imports import imported
from support.repository import ROOT
from support.strategies import documents


def refusal(scenario, overrides=()) -> str:
    with pytest.raises(ScenarioError) as caught:
        load(scenario, overrides)
    return str(caught.value)


def test_an_unknown_name_is_answered_with_the_nearest():
    assert 'did you mean "atlas-lab"?' in refusal("atlas-lap")
    assert "known are atlas-farm, atlas-hllhc, atlas-lab, " in refusal("zzz")


@pytest.mark.parametrize(
    ("override", "nearest"),
    [
        ("event.sise=2 MB", "event.size"),
        ("evnt.size=2 MB", "event.size"),
        ("network.switch.tor.bufer=2 MB", "network.switch.tor.buffer"),
        ("run.sed=3", "run.seed"),
    ],
)
def test_an_unknown_key_is_answered_with_the_nearest(tmp_path, override, nearest):
    assert f'did you mean "{nearest}"?' in refusal("small-rack", [override])
    path, _, value = override.partition("=")
    file = tmp_path / "mine.toml"
    file.write_text(f'{path} = "{value}"\n')
    sentence = refusal(file)
    assert sentence.startswith(f"{file}: unknown key ")
    assert "did you mean" in sentence


def test_a_choice_drops_keys_without_meaning_and_is_named_for_missing_ones():
    windows = ["building.change=window"]
    assert load("lhcb-run3-test", windows).building.change == "window"  # the file has a barrier
    said = refusal("lhcb-run3-test", [*windows, "building.barrier=none"])
    instead = 'leave it out, or set building.change to "count"'
    assert (
        said == f'--set building.barrier means nothing with building.change = "window"; {instead}'
    )
    limit = "building.outstanding_fragments limits"
    assert limit in refusal("atlas-lab", ["building.credits=32"])
    rewritten = "`daqloom show BASE --set network.shape=rack` write the keys of this shape"
    assert rewritten in refusal("atlas-lab", ["network.shape=rack", "network.links.rate=1 Gb/s"])
    with pytest.raises(ScenarioError, match=r'^--set network: shape = "cables" requires switches'):
        load("laptop", ["network.shape=cables"])
    with pytest.raises(ScenarioError, match=r"^--set hosts\.units means nothing with"):
        load("laptop", ["hosts.units=[]"])
    with pytest.raises(ScenarioError, match=r"^--set readout\.units = true is not a whole number"):
        load("laptop", ["readout.units=true"])


def test_choices_that_no_method_combines_yet_are_described_and_refused():
    infiniband = {"network.technology": "infiniband"}
    for shape, said in [
        ("rack", 'network.shape = "rack" with network.technology = "infiniband"'),
        ("fat-tree", 'transport.kind = "tcp" over network.tech'),
    ]:
        keys = {"transport.kind": "tcp", "network.shape": shape}
        scenario = load("small-rack", keys | infiniband)
        for method in (methods.analyse, methods.simulate):
            with pytest.raises(ScenarioError, match="is not possible yet") as refused:
                method(scenario)
            assert said in str(refused.value)


@pytest.mark.parametrize(
    ("cables", "says"),
    [
        ('[{ends = ["node0"]}]', r'0\.ends = \["node0"\] has too few entries; expected at least 2'),
        ('[{rate = "HDR"}]', r'0 = \{rate = "HDR"\} lacks the key ends'),
        ('[{end = ["node0", "leaf0"]}]', r'unknown key "network\.cables\.0\.end"; did you mean'),
    ],
)
def test_a_mistake_within_an_override_is_reported_with_the_option(cables, says):
    with pytest.raises(ScenarioError, match=rf"^--set (network\.cables\.|){says}"):
        load("laptop", ["network.shape=cables", f"network.cables={cables}"])


def test_an_override_needs_a_path_and_a_bounded_value():
    assert "expected dotted.path=value" in refusal("small-rack", ["event.size"])
    assert "is a table; set one of its keys" in refusal("small-rack", ["event=2"])
    assert "expected dotted.path=value" in refusal("small-rack", ["=2"])
    assert "unknown key" in refusal("small-rack", ["event.size.x=2"])
    too_long = "--set run.seed is a whole number of more than 64 bits"
    for digits in ("0x" + "f" * 4000, "9" * 5000, str(1 << 63), "[1, 0x" + "f" * 4000 + "]"):
        assert refusal("small-rack", [f"run.seed={digits}"]) == too_long
    for value in (1 << 20_000, [1, 1 << 20_000], {"a": -(1 << 20_000)}):
        assert "more than 64 bits" in refusal("small-rack", {"event.share": value})


def test_an_override_takes_toml_bare_text_python_or_a_file_here(tmp_path, monkeypatch):
    keys = ["event.size=2 MB", 'event.rate="1 kHz"', "transport.timestamps=false", "run.seed=3"]
    scenario = load("small-rack", keys)
    assert (scenario.event.size, scenario.event.rate) == (2_000_000, 1000)
    assert (scenario.transport.timestamps, scenario.run.seed) == (False, 3)
    values = {"event.size": "2 MB", "event.rate": "1 kHz", "transport.timestamps": False}
    assert load("small-rack", values | {"run.seed": 3}) == scenario
    (tmp_path / "arrivals.txt").write_text("0.1\n")
    monkeypatch.chdir(tmp_path)
    scenario = load("small-rack", ["event.arrivals=trace", "event.trace=arrivals.txt"])
    assert scenario.event.trace == str(tmp_path / "arrivals.txt")


def test_the_last_of_two_overrides_wins_and_none_smuggles_in_a_second_key():
    assert "event.size" in refusal("small-rack", ['event.size="2 MB"\nrun.seed=9'])
    assert load("small-rack", ["run.seed=1", "run.seed=2"]).run.seed == 2


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"# only a comment\n", "is empty"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "binary file"),
        (b"\xff\xfe[\x00e\x00", "binary file"),
        (b"[event", "not valid TOML"),
        (b'[event]\nsize = "5 MB', "not valid TOML"),
        (b"[event]\nsize = \n", "not valid TOML"),
        (b"a = " + b"[" * 100_000, "nested too deeply"),
        (b"seed = " + b"9" * 10_000, "a whole number of more than 64 bits"),
        (b"[run]\nseed = 0x" + b"f" * 4000, "run.seed a whole number of more than 64 bits"),
        (b"[run]\nseed = 0o" + b"7" * 9000, "run.seed a whole number of more than 64 bits"),
        (b"event.share = [1, 0b1" + b"0" * 64 + b"]", "event.share a whole number of more than"),
        (b"[run]\nseed = 0x" + b"f" * 16, "run.seed a whole number of more than 64 bits"),
        (b"[event]\nsize = 1e999\n", "event.size = inf has no unit"),
        (b"event = 3\n", "event = 3 is not a table"),
        (b"[event]\nsize = 5_000_000\n", "event.size = 5000000 has no unit"),
        (b"[event]\nsize = 2026-11-21\n", "is not a quantity"),
        (b"[[event]]\nsize = '5 MB'\n", "is not a table"),
        (b"x" * (2 << 20), "larger than 1024 KiB"),
    ],
)
def test_a_file_that_is_no_scenario_is_refused_by_its_name(tmp_path, content, reason):
    file = tmp_path / "mine.toml"
    file.write_bytes(content)
    sentence = refusal(file)
    assert str(file) in sentence
    assert reason in sentence


def test_a_missing_file_and_a_folder_are_refused_by_their_name(tmp_path):
    assert "missing.toml cannot be read: no such file" in refusal(tmp_path / "missing.toml")
    assert "is a folder" in refusal(tmp_path)
    assert "null" in refusal("a\0b.toml")
    os.mkfifo(tmp_path / "fifo.toml")
    assert "not a regular file" in refusal(tmp_path / "fifo.toml")


def test_a_deeply_nested_value_is_refused(tmp_path):
    file = tmp_path / "deep.toml"
    file.write_text("builders.processing = " + "[" * 150 + "]" * 150 + "\n")
    assert "builders.processing" in refusal(file)


def test_the_name_defaults_to_the_files(tmp_path):
    file = tmp_path / "my rack (2).toml"
    file.write_text("[run]\nseed = 2\n")
    assert load(file).name == "my-rack-2-"


def test_every_known_key_has_a_description_and_can_be_set_to_its_default():
    scenario = settle(Scenario())
    shown = scenario.document()
    for key in keys_of_document(shown):
        value = shown
        for part in key.split("."):
            value = value[part]
        assert override(scenario, {key: value}).hash() == scenario.hash()


def test_the_reference_page_agrees_with_the_models():
    page = (ROOT / "docs" / "reference" / "scenario.md").read_text()
    assert page == reference(), "run: python -m daqloom.scenario.file.reference > docs/reference/…"
    for key in known_keys():
        assert f"`{key.rpartition('.')[2]}`" in page


KEYS = st.sampled_from(list(known_keys()))
GARBAGE = st.one_of(
    st.text(max_size=40),
    st.text("0123456789.-+eE kMGTBbHzs/[]{}=\"'\n", max_size=40),
    st.integers().map(str),
    st.floats().map(str),
    st.booleans().map(lambda value: str(value).lower()),
)


def loads_or_refuses(scenario, overrides=()):
    try:
        assert load(scenario, overrides).hash()
    except ScenarioError as error:
        sentence = str(error)
        assert sentence.isprintable()
        assert len(sentence) < 2000


@given(st.lists(st.tuples(st.one_of(KEYS, st.text(max_size=20)), GARBAGE), max_size=4))
def test_any_override_gives_a_scenario_or_a_sentence(overrides):
    loads_or_refuses("small-rack", [f"{key}={value}" for key, value in overrides])


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_any_python_value_gives_a_scenario_or_a_sentence(overrides):
    loads_or_refuses("small-rack", overrides)


@given(st.binary(max_size=300))
def test_any_bytes_give_a_scenario_or_a_sentence(tmp_path_factory, content):
    file = tmp_path_factory.getbasetemp() / "bytes.toml"
    file.write_bytes(content)
    loads_or_refuses(file)


TABLES = st.sampled_from(["[event]", "[network.switch.tor]", "[run]", "[a.b]", ""])
NAMES = KEYS.map(lambda key: key.rpartition(".")[2]) | st.text("abc.", max_size=5)


@given(st.lists(st.tuples(TABLES, NAMES, GARBAGE), max_size=6))
def test_any_toml_gives_a_scenario_or_a_sentence(tmp_path_factory, lines):
    file = tmp_path_factory.getbasetemp() / "lines.toml"
    text = "".join(f"{table}\n{key} = {value}\n" for table, key, value in lines)
    file.write_text(text, encoding="utf-8", errors="replace")
    loads_or_refuses(file)


@given(documents(), st.data())
def test_a_valid_file_cut_short_gives_a_scenario_or_a_sentence(tmp_path_factory, document, data):
    from daqloom.scenario import to_toml

    text = to_toml(Scenario.model_validate(document)).encode()
    file = tmp_path_factory.getbasetemp() / "cut.toml"
    file.write_bytes(text[: data.draw(st.integers(0, len(text)))])
    loads_or_refuses(file)


@pytest.mark.process
def test_loading_imports_nothing_heavy():
    heavy = {"numpy", "scipy", "pandas", "xarray", "matplotlib", "plotly", "rich"}
    assert not heavy & imported("import daqloom; daqloom.load('small-rack')")
