"""Hints on unknown keys and values, and all mistakes of a file."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from daqloom.scenario import ScenarioError, synonyms
from daqloom.scenario.errors import MOST_MISTAKES
from daqloom.scenario.file.explain import known_keys, nearest, refusal, suggestion
from daqloom.scenario.file.load import load
from daqloom.scenario.schema.models import Scenario

RACK = """
[building]
protocol = "pull"
[network]
technology = "ethernet"
shape = "rack"
"""


def mistakes(folder: Path, text: str) -> list[str]:
    """Lines on the mistakes of a rack with this text, each without the name of its file."""
    (folder / "it.toml").write_text(RACK + text)
    with pytest.raises(ScenarioError) as caught:
        load(folder / "it.toml")
    return of_file(caught.value, f"{folder}/it.toml: ")


def of_file(error: ScenarioError, start: str = "") -> list[str]:
    lines = [str(error), *error.__notes__]
    assert all(line.startswith(start) or line.startswith("and ") for line in lines)
    return [line.removeprefix(start) for line in lines]


@pytest.mark.parametrize(
    ("key", "meaning"),
    [
        ("tor.cell", "tor.cell_size"),  # `tor.pace` is nearer by letters
        ("tor.reserved", "tor.dedicated"),
        ("core.headroom", "core.dedicated"),
        ("tor.dynamic_th", "tor.alpha"),
        ("tor.memory", "tor.buffer"),
        ("tor.shared", "tor.buffer"),
    ],
)
def test_an_unknown_key_is_most_likely_one_that_begins_like_it_or_has_the_meaning(key, meaning):
    assert nearest(f"network.switch.{key}") == f'; did you mean "network.switch.{meaning}"?'


@pytest.mark.parametrize("key", ["switch.tor.pfc", "pfc", "switch.tor.xoff"])
def test_a_key_of_lossless_ethernet_is_answered_with_an_alternative(key):
    """Only one model of switches has `pause_at`: a hint to the key alone leads to a refusal."""
    assert nearest(f"network.{key}").startswith("; PFC is not simulated; a switch of model ")


def test_dcqcn_is_not_dctcp():
    assert suggestion("dcqcn", ["newreno", "cubic", "dctcp"]).startswith("; DCQCN is not simulated")
    assert nearest("transport.dcqcn").startswith("; DCQCN is not simulated")
    with pytest.raises(ScenarioError, match="DCQCN is not simulated"):
        load("lhcb-ethernet", ["transport.congestion=dcqcn"])


def test_a_synonym_is_of_a_key_that_there_is_in_its_table():
    assert nearest("network.links.uplink.latency") == '; did you mean "network.links.uplink.delay"?'
    assert nearest("network.topology") == '; did you mean "network.shape"?'
    assert nearest("event.seed") == '; did you mean "run.seed"?'
    last = {key.rpartition(".")[2] for key in known_keys()} | set(known_keys())
    assert {key for keys in synonyms.KEYS.values() for key in keys} <= last


@pytest.mark.parametrize(
    ("key", "meaning"),
    [
        ("network.switch.tor.bufer", "network.switch.tor.buffer"),
        ("network.switch.tor.rate", "network.links.source.rate"),
        ("tor.buffer", "network.switch.tor.buffer"),
        ("netwrk.switch.tor.buffer", "network.switch.tor.buffer"),
        ("event.units", "readout.units"),
        ("links", "network.links"),
        ("card", "readout.card"),
    ],
)
def test_the_last_part_of_a_key_decides_its_meaning(key, meaning):
    assert nearest(key) == f'; did you mean "{meaning}"?'


@pytest.mark.parametrize("key", ["network.switch.tor.xyz", "network.switch.tor.depth", "event.foo"])
def test_the_name_of_its_table_makes_no_key_similar(key):
    assert nearest(key) == "; `daqloom show` prints every key"


@pytest.mark.parametrize(
    ("value", "known", "meaning"),
    [
        ("reno", ["newreno", "cubic"], "newreno"),
        ("shared", ["infinite", "shared-memory"], "shared-memory"),
        ("CUBIC", ["newreno", "cubic"], "cubic"),
        ("RoCE", ["tcp", "rdma"], "rdma"),
        ("normal", ["fixed", "gaussian"], "gaussian"),
        ("linear-shift", ["pull", "shift", "daqpipe"], "shift"),
        ("Linear", ["pull", "shift", "daqpipe"], "shift"),
        ("tcp_cubic", ["newreno", "cubic"], "cubic"),
    ],
)
def test_an_unknown_value_is_answered_with_the_one_that_it_may_mean(value, known, meaning):
    assert suggestion(value, known) == f'; did you mean "{meaning}"?'


def test_an_unknown_value_without_a_similar_one_has_no_hint():
    assert suggestion("vegas", ["newreno", "cubic", "dctcp", "static"]) == ""
    assert suggestion(3, ["newreno"]) == ""


def test_all_mistakes_of_a_file_are_listed_the_first_one_as_the_text(tmp_path):
    text = """
[network.links.uplink]
rate = "2x100 Gb/s"
[network.switch.tor]
model = "shared"
reserved = "2 MB"
[transport]
congestion = "reno"
"""
    assert sorted(line.split(" =")[0] for line in mistakes(tmp_path, text)) == [
        "network.links.uplink.rate",
        "network.switch.tor.model",
        "transport.congestion",
        'unknown key "network.switch.tor.reserved"; did you mean "network.switch.tor.dedicated"?',
    ]


def test_all_keys_without_meaning_are_listed(tmp_path):
    one, other = mistakes(tmp_path, '[event]\npacking = 3\nfragment_size = "5 B"\n')
    assert one.startswith("event.packing means nothing")
    assert other.startswith("event.fragment_size means nothing")
    text = '[network.switch.tor]\nmodel = "voq"\ncores = 2\nalpha = 3.0\n'
    one, other = mistakes(tmp_path, text)
    assert one.startswith("network.switch.tor: cores is not a key of model")
    assert other.startswith("network.switch.tor: alpha is not a key of model")


def test_each_mistake_of_an_option_is_listed_as_one_of_the_option():
    with pytest.raises(ScenarioError) as caught:
        load("laptop", ["event.size=1 MB", "event.share=equal"])
    starts = [line.split(" means ")[0] for line in of_file(caught.value)]
    assert starts == ["--set event.size", "--set event.share"]
    changes = {"run.warmup": "2 s", "run.duration": "1 s", "event.size": "2 B"}
    changes |= {"transport.receive_window": "100 B"}
    with pytest.raises(ScenarioError) as caught:
        load("small-rack", changes)
    starts = [line.split(" =")[0] for line in of_file(caught.value)]
    assert starts == ["run.warmup", "transport.receive_window", "event.size"]


def test_the_list_of_mistakes_has_a_line_a_key_and_is_bounded_and_of_printable_characters(tmp_path):
    assert len(mistakes(tmp_path, '[event]\nshare = "a"\nsize = "5"\n')) == 2
    unknown = "".join(f'"k\\u001b{i}" = 1\n' for i in range(100))
    lines = mistakes(tmp_path, "[event]\n" + unknown)
    assert len(lines) == 1 + MOST_MISTAKES
    assert lines[-1] == "and 90 other mistakes"
    assert all(line.isprintable() for line in lines)


def test_a_misspelt_key_is_not_missing_as_well_also_behind_another_mistake():
    document = {"flows": {"f": {"sorce": 1, "destination": 2, "size": "1 MB"}}}
    with pytest.raises(ValidationError) as caught:
        Scenario.model_validate(document)
    error = refusal(caught.value, "", {})
    assert str(error) == 'unknown key "flows.f.sorce"; did you mean "flows.f.source"?'
    assert not hasattr(error, "__notes__")
    flow = {"sorce": 1, "destination": 2, "size": "1 MB"}
    with pytest.raises(ValidationError) as caught:
        Scenario.model_validate({"event": {"size": "5"}, "flows": {"f": flow}})
    error = refusal(caught.value, "", {})
    assert str(error).startswith("event.size")
    assert error.__notes__ == ['unknown key "flows.f.sorce"; did you mean "flows.f.source"?']


def test_a_key_without_meaning_hides_no_other_mistake(tmp_path):
    text = """
[event]
size = "5"
[network.links]
rate = "50 Gb/s"
[network.switch.tor]
model = "voq"
alpha = 3.0
reserved = "2 MB"
buffer = "x"
"""
    assert [line.split("; ")[0] for line in mistakes(tmp_path, text)] == [
        'network.links.rate means nothing with network.shape = "rack"',
        'event.size = "5" has no unit',
        'network.switch.tor: alpha is not a key of model = "voq"',
        'network.switch.tor.buffer = "x" is not a quantity',
        'unknown key "network.switch.tor.reserved"',
    ]
