"""Published and computed values: deviation, outcome, and their texts."""

import pytest

from daqloom.study.reproduction.record import Record, Values
from daqloom.study.reproduction.table import (
    as_json,
    comparisons,
    outcome,
    place,
    rows,
    source,
    summary,
)

OURS = {"study": "atlas-max-rate", "metric": "boundary"}


def record(**keys: object) -> Record:
    common = {"paper": "atlas-buffers", "where": "fig. 3", "title": "rate", "unit": "kHz"}
    return Record.model_validate(common | {"ours": OURS} | keys)


@pytest.mark.parametrize(
    ("keys", "ours", "expected"),
    [
        ({"published": 100}, Values(value=104.9), "yes"),  # 5 % without a published error
        ({"published": 100}, Values(value=105.1), "no"),
        ({"published": 100, "error": 1}, Values(value=102), "no"),
        ({"published": 100, "error": 1}, Values(value=103, low=100.5, high=105), "yes"),
        ({"published": -6}, Values(value=9, low=-1, high=19), "no"),
        ({"published": 100, "relation": "at least"}, Values(value=140), "yes"),
        ({"published": 100, "relation": "at least"}, Values(value=99), "no"),
        ({"published": 100, "relation": "at most"}, Values(value=99), "yes"),
        ({"published": 100, "relation": "at most"}, Values(value=101), "no"),
        ({"published": 100, "input": "chosen"}, Values(value=100), "input"),
        ({"published": 100}, None, "not computed"),
        ({}, Values(value=1), "no value"),
        ({"published": {"1 MB": 100, "2 MB": 10}}, Values(value={"1 MB": 100, "2 MB": 20}), "no"),
    ],
)
def test_a_number_comes_out_if_intervals_overlap(keys, ours, expected) -> None:
    assert outcome(record(**keys), ours) == expected


def test_the_deviation_is_relative_but_for_shares() -> None:
    [found] = comparisons(record(published=50), Values(value=55))
    assert found.deviation == pytest.approx(0.1)
    [found] = comparisons(record(published=-6, unit="%"), Values(value=9))
    assert found.deviation == pytest.approx(15)
    [found] = comparisons(record(published=0), Values(value=9))
    assert found.deviation is None


def test_a_row_has_the_texts_of_all_values() -> None:
    of_bound = record(published=1.8, relation="at least", derived=True)
    [row] = rows(of_bound, Values(value=2.0, low=1.9, high=2.1, seeds=3))
    assert row == ("", "≥ 1.8 kHz (derived)", "2 kHz (1.9 to 2.1)", "+11 %", "yes")
    [row] = rows(record(published=50, error=2), Values(value=45, seeds=1), verdicts=False)
    assert row == ("", "50 ± 2 kHz", "45 kHz (one seed)", "−10 %", "–")
    assert place(of_bound) == "ATLAS buffers, fig. 3"
    assert source(of_bound) == "atlas-max-rate"


def test_a_series_has_a_row_for_each_published_step() -> None:
    series = record(published={"5 MB": 1.8})
    ours = Values(value={"1 MB": 3, "5 MB": 2})
    assert [row[0] for row in rows(series, ours)] == ["at 5 MB"]
    assert [each.step for each in comparisons(series, ours, all_steps=True)] == ["1 MB", "5 MB"]


def test_the_list_counts_the_steps_of_a_series_that_come_out() -> None:
    ours = Values(value={"1 MB": 3, "5 MB": 2})
    series = record(published={"1 MB": 3, "5 MB": 1})
    assert summary(series, ours) == ("2 values", "1 come out", "–", "no")
    assert summary(record(), ours) == ("–", "2 values", "–", "–")


def test_the_object_for_programs_has_the_values_in_the_unit_of_the_record() -> None:
    found = as_json("mine", record(published=50), Values(value=55, seeds=1))
    assert (found["name"], found["unit"], found["outcome"], found["seeds"]) == (
        "mine",
        "kHz",
        "no",
        1,
    )
    [values] = found["values"]
    assert (values["published"], values["value"]) == (50, 55)
    assert "stored" not in found
