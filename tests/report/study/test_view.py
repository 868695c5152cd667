"""Variables, points and units of a study in its figures."""

import numpy as np
import pytest
import xarray

from daqloom.report import style
from daqloom.report.figure import evenly
from daqloom.report.study.view import (
    axis_quantity,
    height_axis,
    is_log_spaced,
    place_text,
    step_text,
)
from daqloom.study import StudyError
from daqloom.study.file.points import (
    axes_of,
    saturation_flags,
    shown_variable,
    shown_variables,
    spread,
)
from support.study_datasets import MODELS, PEAK, RATES, SIZES, UPLINKS, searched, study


def test_the_mean_over_seeds_and_their_standard_deviation():
    # Seeds 10.8, 12, 13.2 MB: s = 1.2 MB.
    found = spread(study()[PEAK])
    assert found.mean.sel({"by": "simulate"}).item() == pytest.approx(12e6)
    assert found.deviation.sel({"by": "simulate"}).item() == pytest.approx(1.2e6)
    assert found.deviation.sel({"by": "analyse"}).item() == 0
    values = xarray.DataArray(np.full((1, 3), 57.3e12 / 0.7), dims=("x", "seed"))
    values = xarray.concat([values * k for k in np.linspace(0.1, 2.3, 40)], "x")
    assert (spread(values).deviation == 0).all()


def test_the_spread_leaves_out_missing_values():
    dataset = study(RATES)
    dataset[PEAK][1, 0, 0] = np.nan  # 12 and 13.2 MB are left: s = 0.6·√2
    dataset[PEAK][1, 1, 1:] = np.nan
    dataset[PEAK][1, 2, :] = np.nan
    found = spread(dataset[PEAK].sel({"by": "simulate"}))
    assert found.mean.values[:2] == pytest.approx([12.6e6, 21.6e6])
    assert np.isnan(found.mean.values[2])
    assert found.deviation.values == pytest.approx([0.6e6 * 2**0.5, 0, 0, 4.8e6])


def test_the_default_variable_has_results_or_is_named():
    assert shown_variable(searched(SIZES)) == "boundary"
    assert shown_variable(searched(SIZES), PEAK) == PEAK
    assert shown_variable(study(SIZES, bound_hz=1.0)) == PEAK
    other = study(SIZES).rename({PEAK: "packets_dropped"})
    assert shown_variable(other) == "packets_dropped"
    with pytest.raises(StudyError, match=r'"nonsense".*known are buffer_peak_bytes\.tor'):
        shown_variable(study(RATES), "nonsense")
    with pytest.raises(StudyError, match="daqloom study run"):
        shown_variable(study(RATES).where(False))
    dataset = study(RATES, show=["packets_dropped", PEAK])
    assert shown_variables(dataset) == [PEAK]


def test_axes_places_and_sizes_are_named_in_the_order_of_the_study():
    assert axes_of(study(SIZES, RATES, MODELS)) == [SIZES[0], RATES[0], MODELS[0]]
    dataset = study(RATES, UPLINKS, MODELS)
    place = dict(zip((RATES[0], UPLINKS[0], MODELS[0]), (12e3, 4, "qfx5120-48y"), strict=True))
    assert place_text(dataset, place) == "12 kHz × uplinks 4 × qfx5120-48y"
    buffers = ("network.switch.buffer", np.array([8192, 65536]), "B")
    dataset = study(buffers)
    assert axis_quantity(dataset, "network.switch.buffer").label == "input buffer (KiB)"
    assert step_text(dataset, "network.switch.buffer", 65536) == "64 KiB"
    assert axis_quantity(study(SIZES), "event.size").unit == "MB"


def test_a_point_is_saturated_if_any_method_flags_it_and_a_searched_rate_never():
    dataset = study(SIZES, RATES, bound_hz=9e3)
    dataset["saturated"].loc[{"by": "analyse"}] = False
    full = saturation_flags(dataset)
    assert full.dims == ("event.size", "event.rate")
    assert full.values.tolist() == [[False, False, False, True]] * 3
    assert not saturation_flags(study(SIZES, RATES)).any()
    dataset = searched(SIZES)
    dataset["saturated"][:] = True
    assert not saturation_flags(dataset).any()


@pytest.mark.parametrize(
    ("values", "log"),
    [([1, 2, 4, 8], True), ([1, 5, 10], False), ([1, 4], False), ([0, 1, 10, 100], False)],
)
def test_steps_spread_over_ratios_are_detected(values, log):
    assert is_log_spaced(values) is log


def test_evenly_spread_steps_include_the_ends():
    assert evenly(3, 5) == [0, 1, 2]
    assert evenly(16, 5) == [0, 4, 8, 11, 15]


@pytest.mark.parametrize(
    ("unit", "largest", "expected"),
    [
        ("B", 5e6, (1e6, "MB")),
        ("B", 12, (1.0, "B")),
        ("Hz", 12e3, (1e3, "kHz")),
        ("s", 2e-3, (1e-3, "ms")),
        ("s", 0.0, (1.0, "s")),
        ("bit/s", 1e9, (1e9, "Gb/s")),
        ("1", 0.5, (0.01, "%")),
        ("packets", 5e6, (1.0, "packets")),
    ],
)
def test_units_take_the_prefix_in_which_they_read_well(unit, largest, expected):
    assert style.prefix(unit, largest) == expected


def test_a_step_without_a_limit_is_behind_the_largest_limit():
    # Distances between steps: a factor of two; 8; twice the only limit.
    for values, last in (([0, 4, 8, 16, 32], 64), ([0, 8, 16], 24), ([5, 0], 10)):
        dataset = study(("building.outstanding_fragments", values, ""))
        quantity = axis_quantity(dataset, "building.outstanding_fragments")
        assert quantity.places[values.index(0)] == pytest.approx(last)
        assert quantity.place_text(quantity.places[values.index(0)]) == "no limit"
        assert quantity.place_text(max(values)) == str(max(values))
    builders = axis_quantity(study(("builders.units", [0, 4], "")), "builders.units")
    assert builders.places.tolist() == [0, 4]


def test_large_counts_have_no_exponent():
    dataset = study(("network.switch.tor.queue_packets", [9720, 14_000], ""))
    assert step_text(dataset, "network.switch.tor.queue_packets", 14_000) == "14,000"
    assert step_text(dataset, "network.switch.tor.queue_packets", 9720) == "9720"


def test_an_axis_of_zeros_alone_has_the_ticks_zero_and_one():
    axis = height_axis("events lost (events)", np.zeros(3))
    assert (axis.ends, axis.ticks) == ((0, 1), (0, 1))
