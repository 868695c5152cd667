"""The record that every method returns."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.results.metrics.reference import reference
from daqloom.results.result import Result, ResultError, form_rows
from support.repository import ROOT


def result(**fields: Any) -> Result:
    given: dict[str, Any] = {
        "scenario": "atlas-lab",
        "scenario_hash": "00ff",
        "method": "simulate",
        "seed": 1,
        "metrics": {"event_rate_hz": 12e3, "buffer_peak_bytes": {"tor": 47_500_000}},
        "engine": {"wall_s": 1.5, "packet_hops": 10},
        "warnings": ["short run"],
        "series": {"tor_occupancy": {"time_s": [0.0, 1.0], "max_bytes": [0, 5]}},
    }
    return Result(**(given | fields))


def test_a_result_survives_json_with_its_series_on_request_only() -> None:
    before = result()
    after = Result.from_json(before.to_json(series=True))
    assert after.to_dict(series=True) == before.to_dict(series=True)
    assert "series" not in json.loads(result().to_json())
    assert "series" in json.loads(result().to_json(series=True))
    series = {"tor_occupancy": {"time_s": np.arange(3), "max_bytes": np.array([1.5])}}
    record = json.loads(result(series=series).to_json(series=True))
    assert record["series"]["tor_occupancy"] == {"time_s": [0, 1, 2], "max_bytes": [1.5]}


def test_the_record_has_the_fields_of_the_contract_in_order() -> None:
    record = json.loads(result(version="1.2", commit="abc").to_json())
    names = "schema scenario scenario_hash method seed version commit metrics engine warnings"
    assert list(record) == names.split()
    assert record["schema"] == 1
    assert (record["version"], record["commit"]) == ("1.2", "abc")
    del record["commit"]  # as in records of earlier versions
    assert Result.from_dict(record).commit == ""


def test_metrics_unknown_to_a_method_are_absent() -> None:
    plain = result(method="analyse", seed=None, metrics={}, analysis={})
    assert {"seed", "analysis", "series"}.isdisjoint(plain.to_dict())
    assert plain.metric("event_rate_hz") is None
    assert result().metric("buffer_peak_bytes.tor") == 47_500_000
    assert result().metric("phase_s") is None
    assert result().metric("drops_by_port.tor.3") is None


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("event_rate", 'did you mean "event_rate_hz"?'),
        ("buffer_peak_bytes", 'did you mean "buffer_peak_bytes.'),
        ("buffer_peak_bytes.tro", 'did you mean "buffer_peak_bytes.tor"?'),
        ("zzz", "docs/reference/metrics.md lists them"),
    ],
)
def test_a_name_that_no_result_has_is_refused_with_the_nearest(name, nearest):
    with pytest.raises(ResultError) as refused:
        result().metric(name)
    assert str(refused.value).startswith(f'"{name}" is not a metric; {nearest}')


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"event_rate": 1}, "metrics.event_rate is not a metric"),
        ({"collection_latency_s": {"p42": 1}}, "metrics.collection_latency_s.p42 is not a metric"),
        ({"event_rate_hz": float("nan")}, "left out"),
        ({"event_rate_hz": float("inf")}, "left out"),
        ({"event_rate_hz": None}, "expected a number"),
        ({"event_rate_hz": True}, "expected a number"),
    ],
)
def test_a_metric_without_description_or_value_is_refused(numbers: dict[str, Any], message) -> None:
    with pytest.raises(ResultError, match=message):
        result(metrics=numbers)


@pytest.mark.parametrize(
    "text",
    [
        *("", "\x00\x01\xff", "null", "[]", '{"schema": 2}', '{"schema": 1}', "[" * 100_000),
        '{"schema": 1, "scenario": NaN}',
        result().to_json().replace('"method": "simulate"', '"method": "guess"'),
        result().to_json().replace('"seed": 1', '"seed": "1"'),
        result().to_json().replace('"engine": {', '"engine": {"more": [1], '),
        result().to_json().replace('"warnings": [', '"warnings": [1, '),
        result().to_json().replace('"scenario":', '"secnario":'),
        result().to_json()[:-20],
    ],
)
def test_anything_else_is_refused_with_one_sentence(text: str) -> None:
    with pytest.raises(ResultError) as caught:
        Result.from_json(text)
    assert "\n" not in str(caught.value)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_no_value_of_a_field_makes_reading_fail_otherwise(value: object) -> None:
    for name in result().to_dict(series=True):
        record = result().to_dict(series=True) | {name: value}
        try:
            Result.from_dict(record)
        except ResultError:
            continue


def test_the_reference_of_metrics_is_up_to_date() -> None:
    assert (ROOT / "docs/reference/metrics.md").read_text() == reference()


@pytest.mark.parametrize(
    ("buffer", "satisfied", "holds"),
    [
        ({"buffer_bytes": 32e6}, False, "yes · windows − BDP: at risk in 32 MB"),
        ({"buffer_bytes": 200e6}, True, "yes · windows − BDP: safe in 200 MB"),
        ({}, True, "yes · windows − BDP: safe in a buffer without limit"),
    ],
)
def test_the_verdict_on_incast_names_the_compared_quantities(buffer, satisfied, holds):
    entry = {"value_bytes": 107.3e6, **buffer, "satisfied": satisfied, "valid": True}
    assert form_rows({"incast": entry}) == [("incast", "107.3 MB", holds)]
