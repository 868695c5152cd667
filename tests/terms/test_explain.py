"""Explanations of words: keys, parts and other names of keys, values, metrics, counters, terms."""

import re

import pytest

from daqloom.results.metrics import METRICS
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.file.explain import known_keys
from daqloom.scenario.synonyms import KEYS, NOT_SIMULATED, VALUES
from daqloom.terms.explain import explain, names


def kinds(word: str) -> list[tuple[str, str]]:
    return [(each.kind, each.names[0]) for each in explain(word)]


def test_every_key_metric_counter_and_term_is_explained() -> None:
    known = {*names()}
    assert {key.replace("*", "NAME") for key in known_keys()} <= known
    assert {metric.name.removesuffix(".*") for metric in METRICS} <= known
    for name in sorted(known)[::7]:
        for each in explain(name):
            assert each.meaning[-1] in ".;", (name, each.meaning)
            assert each.see


def test_a_key_has_unit_values_default_conditions_and_a_page() -> None:
    [found] = explain("network.switch.tor.queue_packets")
    assert found.kind == "key of a scenario"
    assert found.default == "1000 (drop-tail), 4096 (software)"
    assert "only with network.technology = ethernet" in found.applies
    assert found.see[-1] == "docs/reference/scenario.md"
    [size] = explain("event.size")
    assert (size.unit, size.values) == ("B", 'size (B), such as "5 MB"')
    [rate] = explain("network.links.access.rate")
    assert rate.default == "25 Gb/s (a guess)"
    assert rate.names == ("network.links.access.rate",)
    [role] = explain("hosts.units[].role")
    assert role.applies == ("only with hosts.placement = table",)


@pytest.mark.parametrize(
    ("key", "example"),
    [
        ("run.duration", "500 ms"),  # a default from the system
        ("measure.duration", "5 s"),
        ("network.links.delay", "170 ns"),
        ("hosts.message_cost", "10 us"),  # no default but zero
        ("transport.mtu", "4 KiB"),
    ],
)
def test_the_example_of_a_quantity_suits_its_key(key: str, example: str) -> None:
    [found] = explain(key)
    assert found.values.endswith(f', such as "{example}"')


def test_methods_that_ignore_a_key_are_listed_with_the_reason() -> None:
    [found] = explain("transport.rto_min")
    assert any(each.startswith("not to analyse: closed forms") for each in found.applies)
    assert any(" in some systems" in each for each in found.applies)


TABLES = ("transport", "measure")


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("queue_packets", [("key of a scenario", "network.switch.core.queue_packets")]),
        ("flows.stream.size", [("key of a scenario", "flows.NAME.size")]),
        ("hosts.units[].role", [("key of a scenario", "hosts.units[].role")]),
        ("--set transport.rto_min=1 ms", [("key of a scenario", "transport.rto_min")]),
        ("search.tolerance", [("key of a study", "search.tolerance")]),
        ("rings.dcm1.mirrored", [("key of a switch", "rings.NAME.mirrored")]),
        ("settle", [("key of a device", "settle")]),
        ("through", [("key of a device with the adapter linux", "configure.through")]),
        ("[equilibrium]", [("table of a study", "equilibrium")]),
        ("event_rate_hz", [("metric", "event_rate_hz")]),
        ("buffer_peak_bytes.tor", [("metric", "buffer_peak_bytes.tor")]),
        ("collection_latency_s.p99", [("metric", "collection_latency_s.p99")]),
        ("refused_epoch", [("counter of a unit", "transport.refused_epoch")]),
        ("incast", [("term", "incast")]),
        ("tournament", [("key of a scenario", "building.barrier")]),
        ("reno", [("key of a scenario", "transport.congestion")]),
        ("congestion_control", [("key of a scenario", f"{t}.congestion") for t in TABLES]),
        ("bbr", [("not simulated", "bbr")]),
    ],
)
def test_a_word_has_the_explanation_of_its_subject(word: str, found: list[tuple[str, str]]) -> None:
    word = word.removeprefix("--set ")
    assert kinds(word) == found


def test_a_table_lists_its_keys() -> None:
    [table] = explain("network.lanes")
    assert table.kind == "table of a scenario"
    assert "service_levels" in table.values


@pytest.mark.parametrize("word", [*KEYS, *VALUES, *NOT_SIMULATED])
def test_other_names_of_keys_and_values_are_explained(word: str) -> None:
    assert explain(word)


def test_an_unknown_word_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(ScenarioError, match=r'"event\.seize" is no key.*"event\.size"') as error:
        explain("event.seize")
    assert "\n" not in str(error.value)
    with pytest.raises(ScenarioError, match="glossary"):
        explain("zzzzzz")
    with pytest.raises(ScenarioError) as hostile:
        explain("\x1b[31m" + "x" * 5000)
    assert len(str(hostile.value)) < 300
    assert "\x1b" not in str(hostile.value)


def test_the_empty_word_explains_nothing() -> None:
    with pytest.raises(ScenarioError, match=re.escape('"" is no key')):
        explain("  ")
