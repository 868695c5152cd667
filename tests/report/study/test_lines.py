"""Lines of a study, from datasets with known numbers."""

import numpy as np
import pytest

from daqloom.report.figure import Line, Rule, Text
from daqloom.report.study.lines import lines, lines_caption, lines_in_panels, search_caption
from daqloom.report.study.report import pictures
from daqloom.study import StudyError
from support.figures import curves, marks, names, texts, titles
from support.study_datasets import (
    LATENCY,
    MODELS,
    PEAK,
    POINT,
    RATES,
    SIZES,
    UPLINKS,
    searched,
    study,
    with_latency,
)


def test_lines_show_means_with_standard_errors_or_the_range_of_seeds():
    figure = lines(study(RATES))
    formula, simulation = curves(figure.panels[0])
    assert formula.x == pytest.approx([3, 6, 9, 12])
    assert formula.y == pytest.approx([10, 20, 30, 40])
    assert simulation.y == pytest.approx([12, 24, 36, 48])
    assert simulation.error[:, 0] == pytest.approx([1.2, 1.2])
    assert {"event rate (kHz)", "peak occupancy of the top-of-rack switch (MB)"} <= texts(figure)
    caption = lines_caption(study(RATES), PEAK)
    assert "3 seeds" in caption
    assert "standard deviation" in caption
    dataset = study(RATES).assign_attrs(bars="range")
    _, simulation = curves(lines(dataset).panels[0])
    of_first = dataset[PEAK].sel(by="simulate").isel({RATES[0]: 0})
    low, high = (simulation.y[0] + simulation.error[:, 0] * [-1, 1]) * 1e6
    assert (low, high) == pytest.approx((float(of_first.min()), float(of_first.max())))
    assert "from the lowest to the highest" in lines_caption(dataset, PEAK)


def test_saturated_points_are_hollow_not_joined_and_left_out_far_above():
    figure = lines(study(RATES, bound_hz=9e3))
    [panel] = figure.panels
    assert np.isnan(curves(panel)[1].y[3])
    hollow = marks(panel, Line, hollow=True, width=0)
    assert [np.nansum(line.y) for line in hollow] == pytest.approx([40, 48])
    assert "links saturated" in names(figure)
    dataset = study(RATES, bound_hz=9e3)
    dataset[PEAK].loc[{"by": "simulate", "event.rate": 12e3}] = 500e6
    [panel] = lines(dataset).panels
    assert 36 < panel.y.ends[1] < 80


def test_the_operating_point_is_marked_on_its_axes():
    marked = lines(study(RATES, operating_point=POINT))
    assert "operating point\n12 kHz × 5 MB" in names(marked)
    beyond = lines(study(RATES, operating_point={"event.rate": 50e3}))
    assert not any("operating" in text for text in texts(beyond))
    figure = lines(searched(SIZES, operating_point=POINT))
    rules = marks(figure.panels[0], Rule)
    assert [(rule.at, rule.upright) for rule in rules] == [(5, True), (12, False)]  # MB, kHz


def test_names_become_colours_and_a_third_axis_small_multiples():
    figure = lines(study(RATES, UPLINKS, MODELS))
    assert titles(figure) == [f"uplinks {n}" for n in (1, 2, 4)]
    assert names(figure)[:3] == ["top-of-rack switch", "qfx5120-48y", "acx7100-48l"]


@pytest.mark.parametrize("bound_hz", [None, 9e3])
def test_every_panel_has_room_for_its_solid_points(bound_hz):
    dataset = study(RATES, UPLINKS, MODELS, bound_hz=bound_hz)
    for panel in lines(dataset).panels:
        assert all(np.nanmax(line.y) < panel.y.ends[1] for line in curves(panel))


def test_equal_or_many_lines_are_thinned_as_in_the_caption():
    dataset = study(RATES, MODELS)
    dataset[PEAK].loc[{"by": "analyse"}] = 1e7
    [panel] = lines(dataset).panels
    assert len(curves(panel)) == 3  # two switches simulated, one formula
    sizes = ("event.size", np.arange(1, 17) * 0.5e6, "B")
    [panel] = lines(study(RATES, sizes)).panels
    assert len(curves(panel)) == 2 * 5
    assert "5 of 16 steps of event size" in lines_caption(study(RATES, sizes), PEAK)


def test_captions_of_searches_have_the_bound_of_links_and_failed_searches():
    assert "bound of the links" in names(lines(searched(SIZES, MODELS)))
    assert "Search for the largest event.rate with drop_fraction < 0.001." in (
        search_caption(searched(SIZES, MODELS))
    )
    dataset = searched(SIZES)
    dataset["boundary_status"][1, 0, :2] = "above"
    assert search_caption(dataset).endswith(
        "2 of 9 searches found no boundary within 500 Hz to 60 kHz: at 2 it holds even at 60 kHz. "
        "They are kept and flagged; use wider bounds to find one."
    )


def test_the_thinnest_of_named_lines_is_the_last_drawn():
    # Named lines often lie on one another; numbers have lines of one width.
    def widths(*axes):
        [panel] = lines(study(*axes, methods=("simulate",))).panels
        return [line.width for line in curves(panel)]

    first, second = widths(RATES, MODELS)
    assert first > second
    assert len(set(widths(RATES, SIZES))) == 1


def test_steps_that_crowd_a_logarithmic_axis_have_no_number_each():
    sources = ("readout.units", [4, 8, 16, 20, 24, 28, 32, 64, 128, 240], "")
    [panel] = lines(study(sources)).panels
    ticks = np.array(panel.x.ticks)
    assert (ticks[0], ticks[-1]) == (4, 240)
    ratio = (240 / 4) ** (1 / 8)  # room for eight
    assert min(ticks[1:] / ticks[:-1]) >= ratio
    assert set(ticks) <= set(sources[1])


@pytest.mark.parametrize(
    ("key", "unit"),
    [("building.outstanding_fragments", ""), ("network.switch.tor.port_limit", "B")],
)
def test_the_step_without_a_limit_is_apart_from_a_single_limit(key: str, unit: str):
    [panel] = lines(study((key, [0, 8], unit), methods=("simulate",))).panels
    # No limit stands as far behind the largest limit as that is from 0.
    assert curves(panel)[0].x == pytest.approx([8, np.nan, 16], nan_ok=True)
    assert [panel.x.text(tick) for tick in panel.x.ticks] == ["8", "no limit"]


def test_switches_without_a_value_are_marked_and_panels_have_room():
    dataset = with_latency(RATES, MODELS)
    dataset[PEAK] = dataset[PEAK].where(dataset[MODELS[0]] != "acx7100-48l")
    assert {"acx7100-48l (no value)", "qfx5120-48y"} <= set(names(lines(dataset)))
    beside = lines_in_panels(dataset, [PEAK, LATENCY])
    notes = [[text.text for text in marks(panel, Text)] for panel in beside.panels]
    assert notes == [[["no value: acx7100-48l"]], []]
    assert "acx7100-48l" in names(beside)
    dataset = with_latency(RATES, SIZES, MODELS, show=[LATENCY, PEAK])
    with pytest.raises(StudyError, match="one or two axes"):
        lines_in_panels(dataset, [LATENCY, PEAK])
    drawn = {each.name: each.figure for each in pictures(dataset)}["lines"]
    assert "event latency, mean (ms)" in texts(drawn)


def test_the_step_without_a_limit_is_behind_all_limits_and_not_joined():
    requests = ("building.outstanding_fragments", [0, 4, 8, 16, 32], "")
    [panel] = lines(study(requests, methods=("simulate",))).panels
    [line] = curves(panel)
    assert line.x == pytest.approx([4, 8, 16, 32, np.nan, 64], nan_ok=True)
    assert np.isnan(line.y[4])
    assert line.y[5] == pytest.approx(12)  # of the step 0, the first: 1.2 times 10 MB
    assert panel.x.text(panel.x.ticks[-1]) == "no limit"
