"""Sentences at the top of a report, against the numbers of a dataset made by hand."""

import numpy as np
import pytest

from daqloom.report.study.summary import ratio_text, sentences
from support.study_datasets import (
    LATENCY,
    PEAK,
    POINT,
    RATES,
    SIZES,
    searched,
    study,
    with_latency,
)

NAMES = ("variant", ["as it is", "wider", "narrower", "same"], "")


def test_the_values_at_the_operating_point_are_those_of_all_methods():
    # The last steps of both axes: 10 MB × (1 + 3 + 2), and 1.2 times that.
    [text] = sentences(study(RATES, SIZES, operating_point=POINT), [PEAK])
    assert text == (
        "At 12 kHz × 5 MB the peak occupancy of the top-of-rack switch is 72 MB by simulation and "
        "60 MB by formula."
    )


def test_without_an_operating_point_the_highest_and_the_lowest_value_are_named():
    dataset = with_latency(RATES, SIZES, methods=("simulate",))
    peak, latency = sentences(dataset, [PEAK, LATENCY])
    assert peak == (
        "The peak occupancy of the top-of-rack switch (simulation) is highest, 72 MB, at 12 kHz × "
        "5 MB, and lowest, 12 MB, at 3 kHz × 1 MB."
    )
    assert "highest, 7.2 ms, at 12 kHz × 5 MB" in latency


def test_saturated_points_do_not_count_and_equal_values_are_one():
    dataset = study(RATES, bound_hz=9.5e3)  # 12 kHz is saturated
    assert "highest, 36 MB, at 9 kHz" in sentences(dataset, [PEAK])[0]
    dataset[PEAK][:] = 5e6
    assert sentences(dataset, [PEAK])[0].endswith("is 5 MB at every point.")
    dataset[PEAK][:] = np.nan
    assert sentences(dataset, [PEAK]) == []
    assert "largest event rate" in sentences(searched(SIZES), ["boundary"])[0]


def test_the_end_of_the_range_of_a_search_is_no_boundary():
    dataset = searched(SIZES)
    # 1.2 kHz (1 + place) for three sizes; at the first one the search ended at its upper bound.
    dataset["boundary"][{"event.size": 0}] = 60e3
    dataset["boundary_status"][{"event.size": 0}] = "above"
    [text] = sentences(dataset, ["boundary"])
    assert text == (
        "The largest event rate (simulation) is highest, 3.6 kHz, at 5 MB, and lowest, 2.4 kHz, at "
        "2.5 MB."
    )


def test_variants_are_compared_with_the_system_as_it_is():
    dataset = study(NAMES, methods=("simulate",), seeds=1)
    dataset[PEAK][0, :, 0] = np.array([10e6, 45e6, 8e6, 10.1e6])
    [text] = sentences(dataset, [PEAK])
    assert text == (
        "The peak occupancy of the top-of-rack switch (simulation) is 10 MB as it is; the largest "
        "of 3 changes: × 4.5 by “wider”, −20 % by “narrower”, +1 % by “same”."
    )


@pytest.mark.parametrize(
    ("ratio", "text"), [(1.24, "+24 %"), (0.5, "−50 %"), (31.2, "× 31.2"), (1 / 45, "÷ 45")]
)
def test_a_ratio_is_a_percentage_or_a_factor(ratio, text):
    assert ratio_text(ratio) == text
