"""The figures of a study, from datasets with known numbers."""

import io
import itertools

import matplotlib.text
import numpy as np
import pytest

from daqloom.report.study import figures as study_figures
from daqloom.report.study import interactive as study_interactive
from daqloom.report.study import table as study_table
from daqloom.report.study.page import Part, render
from daqloom.report.study.report import figures, findings
from daqloom.study import StudyError
from daqloom.study.points import (
    methods_of,
    shown_variables,
)
from support.study_datasets import (
    LATENCY,
    MODELS,
    PEAK,
    POINT,
    RATES,
    SIZES,
    UPLINKS,
    curve,
    searched,
    study,
    texts,
    with_latency,
)

# Figures for print


def test_lines_show_means_with_standard_errors():
    figure = study_figures.lines(study(RATES))
    [axes] = figure.axes
    assert curve(axes, 0) == pytest.approx(np.array([[3, 10], [6, 20], [9, 30], [12, 40]]))
    assert curve(axes, 1)[:, 1] == pytest.approx([12, 24, 36, 48])
    [bars] = axes.containers[1].lines[2]
    low, high = np.array(bars.get_segments())[0, :, 1]
    assert (high - low) / 2 == pytest.approx(1.2)
    assert {"event rate (kHz)", "peak occupancy of the top-of-rack switch (MB)"} <= set(
        texts(figure)
    )
    caption = study_figures.lines_caption(study(RATES), PEAK)
    assert "3 seeds" in caption
    assert "standard deviation" in caption


def test_bars_may_go_from_the_lowest_seed_to_the_highest():
    dataset = study(RATES).assign_attrs(bars="range")
    [axes] = study_figures.lines(dataset).figure.axes
    [bars] = axes.containers[1].lines[2]
    of_first = dataset[PEAK].sel(by="simulate").isel({RATES[0]: 0})
    low, high = np.array(bars.get_segments())[0, :, 1] * 1e6
    assert (low, high) == pytest.approx((float(of_first.min()), float(of_first.max())))
    assert "from the lowest to the highest" in study_figures.lines_caption(dataset, PEAK)


def test_saturated_points_are_hollow_and_not_joined():
    figure = study_figures.lines(study(RATES, bound_hz=9e3))
    [axes] = figure.axes
    assert np.isnan(curve(axes, 1)[3, 1])
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert [np.nansum(line.get_ydata()) for line in hollow] == pytest.approx([40, 48])
    assert "links saturated" in figure.legends[0].get_texts()[2].get_text()


def test_the_operating_point_is_marked_where_it_lies_on_the_axis():
    marked = study_figures.lines(study(RATES, operating_point=POINT))
    assert any("operating point\n12 kHz × 5 MB" in text for text in texts(marked))
    beyond = study_figures.lines(study(RATES, operating_point={"event.rate": 50e3}))
    assert not any("operating" in text for text in texts(beyond))


def test_where_the_rate_is_searched_two_lines_cross_at_the_operating_point():
    figure = study_figures.lines(searched(SIZES, operating_point=POINT))
    lines = [tuple(map(float, line.get_ydata())) for line in figure.axes[0].lines]
    assert (12.0, 12.0) in lines  # kHz


def test_names_become_colours_and_a_third_axis_small_multiples():
    figure = study_figures.lines(study(RATES, UPLINKS, MODELS))
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        f"uplinks {n}" for n in (1, 2, 4)
    ]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[:3] == ["top-of-rack switch", "qfx5120-48y", "acx7100-48l"]


@pytest.mark.parametrize("bound_hz", [None, 9e3])
def test_every_panel_has_room_for_its_solid_points(bound_hz):
    dataset = study(RATES, UPLINKS, MODELS, bound_hz=bound_hz)
    for axes in study_figures.lines(dataset).axes:
        top = axes.get_ylim()[1]
        assert all(np.nanmax(bars.lines[0].get_ydata()) < top for bars in axes.containers)


def test_hollow_points_far_above_are_left_out():
    dataset = study(RATES, bound_hz=9e3)
    dataset[PEAK].loc[{"by": "simulate", "event.rate": 12e3}] = 500e6
    [axes] = study_figures.lines(dataset).axes
    assert 36 < axes.get_ylim()[1] < 80


def test_a_formula_that_does_not_depend_on_the_colour_is_drawn_once():
    dataset = study(RATES, MODELS)
    dataset[PEAK].loc[{"by": "analyse"}] = 1e7
    [axes] = study_figures.lines(dataset).axes
    assert len(axes.containers) == 3  # two switches simulated, one formula


def test_many_steps_are_thinned_and_the_caption_says_so():
    sizes = ("event.size", np.arange(1, 17) * 0.5e6, "B")
    [axes] = study_figures.lines(study(RATES, sizes)).axes
    assert len(axes.containers) == 2 * 5
    assert "5 of 16 steps of event size" in study_figures.lines_caption(study(RATES, sizes), PEAK)


def test_the_bound_of_the_links_stands_beside_a_searched_rate():
    assert "bound of the links" in texts(study_figures.lines(searched(SIZES, MODELS)))
    assert "Search for the largest event.rate with drop_fraction < 0.001." in (
        study_figures.search_caption(searched(SIZES, MODELS))
    )


def test_searches_that_found_nothing_are_counted():
    dataset = searched(SIZES)
    dataset["boundary_status"][1, 0, :2] = "above"
    assert study_figures.search_caption(dataset).endswith(
        "2 of 9 searches found no boundary within 500 Hz to 60 kHz: at 2 it holds even at 60 kHz. "
        "They are kept and flagged; use wider bounds to find one."
    )


def test_a_search_that_found_nothing_at_all_is_reported():
    dataset = searched(SIZES)
    dataset["boundary"][:] = np.nan
    dataset["boundary_status"].loc[{"by": "simulate"}] = "never"
    assert [row[-1] for row in study_table.rows(dataset)] == ["never from 500 Hz on"] * 3
    for _, _, _, figure in figures(dataset):
        figure.draw_without_rendering()
    assert "9 of 9 searches found no boundary" in render([Part(dataset, [])])


def test_a_heat_map_has_a_panel_for_each_method_and_their_ratio():
    figure = study_figures.heat_map(study(RATES, SIZES, operating_point=POINT))
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
    titles = [axes.get_title(loc="left") for axes in panels]
    assert titles == ["Formula", "Simulation", "Simulation ÷ formula"]
    ratio = panels[2].collections[0].get_array()
    assert np.asarray(ratio).ravel() == pytest.approx([1.2] * 12)
    assert all(axes.lines for axes in panels)  # the cross
    dataset = study(RATES, SIZES, operating_point=POINT)
    assert "12 kHz × 5 MB" in study_figures.heat_map_caption(dataset)


def test_few_steps_of_a_map_are_its_ticks():
    builders = ("builders.units", [1, 2, 4], "")
    rates = ("event.rate", np.arange(1, 21) * 1e3, "Hz")
    axes = study_figures.heat_map(study(rates, builders)).axes[0]
    assert list(axes.get_yticks()) == [1, 2, 4]
    assert len(axes.get_xticks()) < 20


def test_the_cells_of_a_small_map_hold_their_values():
    dataset = study(RATES, SIZES, operating_point=POINT)
    formula, simulation, ratio, *_ = study_figures.heat_map(dataset).axes
    for axes, by in ((formula, "analyse"), (simulation, "simulate")):
        mean = dataset["buffer_peak_bytes.tor"].sel({"by": by}).mean("seed") / 1e6
        written = {text.xy: float(text.get_text().replace(",", "")) for text in axes.texts}
        assert len(written) == mean.size
        for (rate, size), number in written.items():
            at = mean.sel({"event.rate": rate * 1e3, "event.size": size * 1e6})
            assert number == pytest.approx(float(at), rel=5e-3)
    assert {text.get_text() for text in ratio.texts} == {"1.2"}


def test_the_cells_of_a_large_map_have_no_room_for_values():
    rates = ("event.rate", [1e3 * n for n in range(1, 21)], "Hz")
    sizes = ("event.size", [1e6 * n for n in range(1, 17)], "B")
    assert not study_figures.heat_map(study(rates, sizes)).axes[0].texts


def test_a_heat_map_needs_two_axes_of_numbers():
    with pytest.raises(StudyError, match="two numeric axes"):
        study_figures.heat_map(study(RATES, MODELS))


def test_box_plots_need_two_seeds():
    with pytest.raises(StudyError, match=r"repeat\.seeds"):
        study_figures.box_plots(study(RATES, seeds=1))


def test_box_plots_show_every_seed():
    [axes] = study_figures.box_plots(study(RATES)).axes
    dots = [line for line in axes.lines if line.get_marker() == "."]
    assert sorted(dots[0].get_ydata()) == pytest.approx([10.8, 12, 13.2])


AXES = [(), (RATES,), (MODELS,), (RATES, SIZES), (MODELS, SIZES), (RATES, SIZES, MODELS)]
AXES += [(RATES, SIZES, MODELS, UPLINKS), (("event.rate", [5e3], "Hz"),)]
AXES += [(("event.rate", [5e3], "Hz"), ("event.size", [1e6], "B")), (MODELS, UPLINKS)]


@pytest.mark.parametrize("axes", AXES, ids=lambda axes: "-".join(a[0] for a in axes) or "none")
@pytest.mark.parametrize(("make", "seeds"), [(study, 1), (searched, 3)])
def test_every_shape_of_study_is_drawn(axes, make, seeds):
    dataset = make(*axes, seeds=seeds)
    drawn = figures(dataset)
    first = "names" if axes == (MODELS,) else "lines"
    assert [name for name, *_ in drawn][: bool(axes)] == [first][: bool(axes)]
    for _, _, _, figure in drawn:
        figure.draw_without_rendering()
    concluded = findings(dataset)
    for finding in concluded:
        finding.figure.draw_without_rendering()
        assert {len(row) for row in finding.rows} == {len(finding.head)}
    page = render([Part(dataset, [], findings=[(finding, b"") for finding in concluded])])
    assert all(finding.heading in page for finding in concluded)


@pytest.mark.parametrize("place", [(0, 0), (0, 2), (1, 0), (1, 2)])
def test_holes_in_the_results_are_drawn_around(place):
    dataset = study(RATES, SIZES)
    dataset[PEAK][{"by": place[0], "event.rate": place[1]}] = np.nan
    for _, _, _, figure in figures(dataset):
        figure.draw_without_rendering()
    gives = "formula gives 9 of 12" if place[0] == 0 else "simulation gives 9 of 12"
    assert gives in render([Part(dataset, [])])


def test_a_single_known_value_is_drawn():
    dataset = study(RATES, SIZES)
    known = dataset[PEAK][1, 1, 1, 1].item()
    dataset[PEAK][:] = np.nan
    dataset[PEAK][1, 1, 1, 1] = known
    assert methods_of(dataset, PEAK) == ["simulate"]
    for _, _, _, figure in figures(dataset):
        figure.draw_without_rendering()
    assert len(list(study_table.rows(dataset))) == 1


MANY = ("event.rate", np.arange(1, 21) * 1234.0, "Hz")
OVERLAP = [(MANY, SIZES), (RATES, SIZES, UPLINKS), (MODELS, SIZES), (MODELS, UPLINKS, RATES)]


@pytest.mark.parametrize("axes", OVERLAP, ids=lambda axes: "-".join(a[0] for a in axes))
def test_no_text_of_a_figure_lies_on_another(axes, monkeypatch):
    for name, _, _, figure in figures(study(*axes, bound_hz=9e3, operating_point=POINT)):
        drawn = {}

        def draw(text, renderer, original=matplotlib.text.Text.draw, drawn=drawn):
            original(text, renderer)
            if text.get_visible() and text.get_text().strip():
                drawn[id(text)] = text.get_text(), text.get_window_extent(renderer)

        with monkeypatch.context() as patch:
            patch.setattr(matplotlib.text.Text, "draw", draw)
            figure.savefig(io.BytesIO(), dpi=100)
        assert len(drawn) > 8
        for (text, box), (other, second) in itertools.combinations(drawn.values(), 2):
            assert not box.overlaps(second), f"{name}: {text!r} on {other!r}"


# Figures to turn


def test_the_surface_is_the_formula_and_the_points_are_the_simulation():
    figure = study_interactive.surface(study(RATES, SIZES, operating_point=POINT))
    surface, points, post = figure.data
    assert (surface.type, points.type, post.name) == (
        "surface",
        "scatter3d",
        "operating point, 12 kHz × 5 MB",
    )
    assert np.asarray(surface.z)[0] == pytest.approx([10, 20, 30, 40])
    assert len(points.z) == 12
    assert np.asarray(points.error_z.array)[0] == pytest.approx(1.2)


def test_saturated_points_are_hollow_in_the_surface_too():
    figure = study_interactive.surface(study(RATES, SIZES, bound_hz=9e3))
    surface, solid, hollow = figure.data
    assert np.isnan(np.asarray(surface.z)[:, 3]).all()
    assert (len(solid.z), len(hollow.z)) == (9, 3)
    assert hollow.marker.symbol == "circle-open"


def test_a_third_axis_is_switched_in_the_legend():
    figure = study_interactive.surface(study(RATES, SIZES, MODELS))
    assert [trace.name for trace in figure.data if trace.visible is True] == [
        "formula, qfx5120-48y",
        "simulation, qfx5120-48y",
    ]
    assert "formula, acx7100-48l" in [trace.name for trace in figure.data]


# Several variables side by side


def test_a_report_draws_the_variables_of_the_study_side_by_side():
    dataset = with_latency(RATES, MODELS, methods=("simulate",), show=[LATENCY, PEAK])
    assert shown_variables(dataset) == [LATENCY, PEAK]
    assert shown_variables(dataset, PEAK) == [PEAK]
    left, right = {name: figure for name, _, _, figure in figures(dataset)}["lines"].axes
    assert left.get_ylabel() == "event latency, mean (ms)"
    assert right.get_ylabel() == "peak occupancy of the top-of-rack switch (MB)"
    # 12 MB (1 + place of the rate), as 1.2 ms on the left.
    assert curve(left, 0)[:, 1] == pytest.approx([1.2, 2.4, 3.6, 4.8])
    assert curve(right, 0)[:, 1] == pytest.approx([12, 24, 36, 48])
    assert study_table.head(dataset)[3:5] == [
        "event latency, mean, simulation (ms)",
        "peak occupancy of the top-of-rack switch, simulation (MB)",
    ]


def test_panels_of_a_third_axis_leave_room_for_one_variable():
    dataset = with_latency(RATES, SIZES, MODELS, show=[LATENCY, PEAK])
    with pytest.raises(StudyError, match="one or two axes"):
        study_figures.lines_beside(dataset, [LATENCY, PEAK])
    lines = {name: figure for name, _, _, figure in figures(dataset)}["lines"]
    assert "event latency, mean (ms)" in texts(lines)


def test_the_thinnest_of_named_lines_is_the_last_drawn():
    # Of names, which often lie on one another; of numbers all are alike.
    [axes] = study_figures.lines(study(RATES, MODELS, methods=("simulate",))).axes
    first, second = (container.lines[0].get_linewidth() for container in axes.containers)
    assert first > second
    [axes] = study_figures.lines(study(RATES, SIZES, methods=("simulate",))).axes
    assert len({container.lines[0].get_linewidth() for container in axes.containers}) == 1


def test_steps_that_crowd_a_logarithmic_axis_have_no_number_each():
    sources = ("readout.units", [4, 8, 16, 20, 24, 28, 32, 64, 128, 240], "")
    [axes] = study_figures.lines(study(sources)).axes
    ticks = axes.get_xticks()
    assert (ticks[0], ticks[-1]) == (4, 240)
    ratio = (240 / 4) ** (1 / 8)  # room for eight
    assert min(ticks[1:] / ticks[:-1]) >= ratio
    assert set(ticks) <= set(sources[1])


@pytest.mark.parametrize(
    ("key", "unit"),
    [("building.outstanding_fragments", ""), ("network.switch.tor.port_limit", "B")],
)
def test_what_has_no_limit_lies_apart_from_a_single_limit(key: str, unit: str):
    figure = study_figures.lines(study((key, [0, 8], unit), methods=("simulate",)))
    [axes] = figure.axes
    x = curve(axes, 0)[:, 0]
    assert x[0] == pytest.approx(8)
    assert np.isnan(x[1])
    assert x[2] == pytest.approx(16)  # as far behind the limit as that is from 0
    figure.draw_without_rendering()
    assert [label.get_text() for label in axes.get_xticklabels()] == ["8", "no limit"]


def test_a_surface_names_the_step_without_a_limit():
    requests = ("building.outstanding_fragments", [0, 4, 8], "")
    scene = study_interactive.surface(study(requests, RATES)).layout.scene
    assert scene.xaxis.ticktext == ("no limit", "4", "8")
    assert scene.xaxis.tickvals == (0, 4, 8)
    assert scene.yaxis.ticktext is None


def test_a_map_names_the_step_without_a_limit():
    requests = ("building.outstanding_fragments", [0, 4, 8], "")
    figure = study_figures.heat_map(study(requests, RATES, methods=("simulate",)))
    figure.draw_without_rendering()
    axes = figure.axes[0]
    ticks = (*axes.get_xticklabels(), *axes.get_yticklabels())
    assert "no limit" in {label.get_text() for label in ticks}


def test_a_switch_without_a_value_is_marked_in_the_legend_and_in_its_panel():
    dataset = with_latency(RATES, MODELS)
    dataset[PEAK] = dataset[PEAK].where(dataset[MODELS[0]] != "acx7100-48l")
    assert {"acx7100-48l (no value)", "qfx5120-48y"} <= set(texts(study_figures.lines(dataset)))
    beside = study_figures.lines_beside(dataset, [PEAK, LATENCY])
    titles = [axes.get_title(loc="left") for axes in beside.axes]
    assert titles == ["no value: acx7100-48l", ""]
    assert "acx7100-48l" in texts(beside)


def test_what_has_no_limit_lies_behind_all_limits_and_no_line_leads_to_it():
    requests = ("building.outstanding_fragments", [0, 4, 8, 16, 32], "")
    figure = study_figures.lines(study(requests, methods=("simulate",)))
    [axes] = figure.axes
    x, y = curve(axes, 0).T
    assert x[:4].tolist() == [4, 8, 16, 32]
    assert np.isnan(x[4])
    assert np.isnan(y[4])
    assert x[5] == pytest.approx(64)
    assert y[5] == pytest.approx(12)  # of the step 0, the first: 1.2 times 10 MB
    figure.draw_without_rendering()
    assert "no limit" in [label.get_text() for label in axes.get_xticklabels()]
