"""The figure of published numbers: published and computed values side by side."""

import numpy as np
import pytest

from daqloom.report.figure import Line
from daqloom.report.study.reproduction import figure
from daqloom.study.reproduction.record import Record, Values

COMMON = {"paper": "atlas-buffers", "where": "fig. 4", "title": "a buffer", "unit": "MB"}


def lines(record: Record, values: Values | None) -> dict[str, Line]:
    [panel] = figure([(record, values)]).panels
    return {mark.name: mark for mark in panel.marks if isinstance(mark, Line)}


def test_a_number_is_beside_the_published_one_with_both_errors() -> None:
    record = Record(**COMMON, published=71, error=1, elsewhere="x")
    found = lines(record, Values(value=70, low=68, high=71))
    assert list(found["published"].y) == [71]
    assert np.array(found["published"].error).tolist() == [[1], [1]]
    assert found["daqloom"].y.tolist() == [70]
    assert np.array(found["daqloom"].error).tolist() == [[2], [1]]
    assert found["published"].x[0] < found["daqloom"].x[0]


@pytest.mark.parametrize(("relation", "marker"), [("at least", "^"), ("at most", "v")])
def test_a_bound_has_an_arrow(relation: str, marker: str) -> None:
    record = Record(**COMMON, published=71, relation=relation, elsewhere="x")
    assert lines(record, None)["published"].marker == marker
    assert "daqloom" not in lines(record, None)


def test_a_series_has_all_steps_and_published_ones_where_there_are() -> None:
    record = Record(**COMMON, published={"5 MB": 70}, elsewhere="x")
    [panel] = figure([(record, Values(value={"1 MB": 3, "5 MB": 66}))]).panels
    assert panel.x.names == ["1 MB", "5 MB"]
    published, ours = panel.marks
    assert list(published.y) == [70]
    assert round(published.x[0]) == 1
    assert ours.y.tolist() == [3, 66]


def test_negative_values_are_within_the_axis() -> None:
    record = Record(**COMMON | {"unit": "%"}, published=-6, elsewhere="x")
    [panel] = figure([(record, Values(value=9, low=-20, high=12))]).panels
    low, high = panel.y.ends
    assert low < -20 < 12 < high
