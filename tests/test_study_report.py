"""The report of a study, from datasets with known numbers."""

import base64
import io
import itertools
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
import xarray
from typer.testing import CliRunner

from daqloom.cli import app
from daqloom.report import study_figures, study_interactive, study_provenance, study_table, style
from daqloom.report.study_page import render
from daqloom.report.study_report import figures, findings, operating_point_of, write
from daqloom.report.study_view import chosen, is_log_spaced
from daqloom.scenario import load
from daqloom.study.errors import StudyError
from daqloom.study.executor import InProcess
from daqloom.study.file import load_study
from daqloom.study.points import (
    axes_of,
    methods_of,
    saturated,
    shown_variable,
    shown_variables,
    spread,
)
from daqloom.study.runner import replay, run
from daqloom.study.store import Store

PEAK = "buffer_peak_bytes.tor"
RATES = ("event.rate", [3e3, 6e3, 9e3, 12e3], "Hz")
SIZES = ("event.size", [1e6, 2.5e6, 5e6], "B")
MODELS = ("switch.tor.model", ["qfx5120-48y", "acx7100-48l"], "")
UPLINKS = ("links.uplink.count", [1, 2, 4], "")
POINT = {"event.rate": 12e3, "event.size": 5e6}


def study(*axes, seeds=3, methods=("analyse", "simulate"), bound_hz=None, **attrs):
    """Formula = 10 MB × (1 + sum of the steps' places); simulation 1.2 times that, seeds ±10 %."""
    shape = [len(values) for _, values, _ in axes]
    base = 10e6 * (1 + sum(np.indices(shape))) if axes else np.full((), 10e6)
    seeded = 1 + 0.1 * (np.arange(seeds) - (seeds - 1) / 2)
    tables = {
        "analyse": base[..., None] * np.ones(seeds),
        "simulate": 1.2 * base[..., None] * seeded,
    }
    dims = ("by", *(name for name, _, _ in axes), "seed")
    dataset = xarray.Dataset(
        {PEAK: (dims, np.stack([tables[m] for m in methods]), {"units": "B"})},
        coords={name: (name, values, {"units": unit}) for name, values, unit in axes}
        | {"by": list(methods), "seed": range(1, seeds + 1)},
        attrs={"study": "s", "title": "A study", "scenario": "atlas-lab"} | attrs,
    )
    if bound_hz is not None:
        bound = xarray.full_like(dataset[PEAK], np.nan)
        bound.loc[{"by": "analyse"}] = bound_hz
        dataset["event_rate_bound_hz"] = bound.assign_attrs(units="Hz")
        rate = dataset.coords.get("event.rate", POINT["event.rate"])
        full = xarray.full_like(dataset[PEAK], False, dtype=bool)
        dataset["saturated"] = full | (rate > bound_hz)
    return dataset


def searched(*axes, **options):
    dataset = study(*axes, bound_hz=20e3, **options)
    boundary = (dataset[PEAK] / 1e4).where(dataset["by"] == "simulate")
    about = {
        "units": "Hz",
        "key": "event.rate",
        "find": "largest",
        "where": "drop_fraction < 0.001",
        "bounds": [0.5e3, 60e3],
    }
    dataset["boundary"] = boundary.assign_attrs(about)
    status = np.where(np.isfinite(boundary), "found", "").astype("<U8")
    dataset["boundary_status"] = (boundary.dims, status)
    return dataset


def texts(figure):
    """All that is written in a figure."""
    import matplotlib.text

    return [text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_visible()]


def curve(axes, label_less_index):
    return axes.containers[label_less_index].lines[0].get_xydata()


# What is shown


def test_the_mean_over_seeds_and_its_standard_error():
    # Seeds 10.8, 12, 13.2 MB: s = 1.2 MB, s/√3.
    found = spread(study()[PEAK])
    assert found.mean.sel({"by": "simulate"}).item() == pytest.approx(12e6)
    assert found.error.sel({"by": "simulate"}).item() == pytest.approx(1.2e6 / 3**0.5)
    assert found.error.sel({"by": "analyse"}).item() == 0


def test_the_spread_leaves_out_what_is_not_known():
    dataset = study(RATES)
    dataset[PEAK][1, 0, 0] = np.nan  # 12 and 13.2 MB are left: s = 0.6·√2, s/√2 = 0.6 MB
    dataset[PEAK][1, 1, 1:] = np.nan
    dataset[PEAK][1, 2, :] = np.nan
    found = spread(dataset[PEAK].sel({"by": "simulate"}))
    assert found.mean.values[:2] == pytest.approx([12.6e6, 21.6e6])
    assert np.isnan(found.mean.values[2])
    assert found.error.values == pytest.approx([0.6e6, 0, 0, 4.8e6 / 3**0.5])


def test_the_variable_is_the_boundary_then_the_one_asked_for_then_the_peak():
    assert shown_variable(searched(SIZES)) == "boundary"
    assert shown_variable(searched(SIZES), PEAK) == PEAK
    assert shown_variable(study(SIZES, bound_hz=1.0)) == PEAK
    other = study(SIZES).rename({PEAK: "packets_dropped"})
    assert shown_variable(other) == "packets_dropped"


def test_a_metric_that_is_not_there_is_named():
    with pytest.raises(StudyError, match=r'"nonsense".*known are buffer_peak_bytes\.tor'):
        shown_variable(study(RATES), "nonsense")


def test_a_study_without_results_says_what_to_do():
    with pytest.raises(StudyError, match="daqloom study run"):
        shown_variable(study(RATES).where(False))


def test_axes_keep_the_order_of_the_study():
    assert axes_of(study(SIZES, RATES, MODELS)) == [SIZES[0], RATES[0], MODELS[0]]


def test_a_point_is_saturated_if_any_method_flags_it():
    dataset = study(SIZES, RATES, bound_hz=9e3)
    dataset["saturated"].loc[{"by": "analyse"}] = False
    full = saturated(dataset)
    assert full.dims == ("event.size", "event.rate")
    assert full.values.tolist() == [[False, False, False, True]] * 3
    assert not saturated(study(SIZES, RATES)).any()


def test_a_searched_rate_is_never_saturated():
    dataset = searched(SIZES)
    dataset["saturated"][:] = True
    assert not saturated(dataset).any()


@pytest.mark.parametrize(
    ("values", "log"),
    [([1, 2, 4, 8], True), ([1, 5, 10], False), ([1, 4], False), ([0, 1, 10, 100], False)],
)
def test_steps_spread_over_ratios_are_seen(values, log):
    assert is_log_spaced(values) is log


def test_chosen_steps_hold_the_ends():
    assert chosen(3, 5) == [0, 1, 2]
    assert chosen(16, 5) == [0, 4, 8, 11, 15]


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
    assert style.prefixed(unit, largest) == expected


# Figures for print


def test_lines_show_means_with_standard_errors():
    figure = study_figures.lines(study(RATES))
    [axes] = figure.axes
    assert curve(axes, 0) == pytest.approx(np.array([[3, 10], [6, 20], [9, 30], [12, 40]]))
    assert curve(axes, 1)[:, 1] == pytest.approx([12, 24, 36, 48])
    [bars] = axes.containers[1].lines[2]
    low, high = np.array(bars.get_segments())[0, :, 1]
    assert (high - low) / 2 == pytest.approx(1.2 / 3**0.5)
    assert {"event rate (kHz)", "most held by the top-of-rack switch (MB)"} <= set(texts(figure))
    caption = study_figures.lines_caption(study(RATES), PEAK)
    assert "3 seeds" in caption
    assert "standard error" in caption


def test_saturated_points_are_hollow_and_not_joined():
    figure = study_figures.lines(study(RATES, bound_hz=9e3))
    [axes] = figure.axes
    assert np.isnan(curve(axes, 1)[3, 1])
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert [np.nansum(line.get_ydata()) for line in hollow] == pytest.approx([40, 48])
    assert "links are full" in figure.legends[0].get_texts()[2].get_text()


def test_the_operating_point_is_marked_where_it_lies_on_the_axis():
    marked = study_figures.lines(study(RATES, operating_point=POINT))
    assert any("operating point\n12 kHz × 5 MB" in text for text in texts(marked))
    beyond = study_figures.lines(study(RATES), mark={"event.rate": 50e3})
    assert not any("operating" in text for text in texts(beyond))


def test_where_the_rate_is_searched_two_lines_cross_at_the_operating_point():
    figure = study_figures.lines(searched(SIZES, operating_point=POINT))
    lines = [tuple(map(float, line.get_ydata())) for line in figure.axes[0].lines]
    assert (12.0, 12.0) in lines  # kHz


def test_names_become_colours_and_a_third_axis_small_multiples():
    figure = study_figures.lines(study(RATES, UPLINKS, MODELS))
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        f"links uplink count {n}" for n in (1, 2, 4)
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
    assert "Searched: the largest event.rate with drop_fraction < 0.001." in (
        study_figures.search_caption(searched(SIZES, MODELS))
    )


def test_searches_that_found_nothing_are_counted():
    dataset = searched(SIZES)
    dataset["boundary_status"][1, 0, :2] = "above"
    assert study_figures.search_caption(dataset).endswith(
        "2 of 9 searches found no boundary within 500 Hz to 60 kHz: at 2 it holds even at 60 kHz. "
        "They are kept and flagged; wider bounds may find one."
    )


@pytest.mark.parametrize(
    ("status", "find", "cell"),
    [
        ("below", "smallest", "500 Hz or less"),
        ("never", "smallest", "never up to 60 kHz"),
        ("above", "largest", "60 kHz or more"),
        ("never", "largest", "never from 500 Hz on"),
        ("reversed", "largest", "reversed"),
    ],
)
def test_a_point_without_a_boundary_stays_in_the_table_in_words(status, find, cell):
    dataset = searched(SIZES, seeds=2)
    dataset["boundary"].attrs["find"] = find
    dataset["boundary"].loc[{"by": "simulate", "event.size": 1e6}] = np.nan
    dataset["boundary_status"].loc[{"by": "simulate", "event.size": 1e6}] = status
    assert next(study_table.rows(dataset)) == ["1 MB", cell]


def test_a_boundary_that_some_seeds_did_not_find_is_the_mean_of_the_others():
    dataset = searched(SIZES)  # 1080, 1200, 1320 Hz for the smallest size
    dataset["boundary"].loc[{"by": "simulate", "event.size": 1e6, "seed": 3}] = 60e3
    dataset["boundary_status"].loc[{"by": "simulate", "event.size": 1e6, "seed": 3}] = "above"
    # Mean of 1.08 and 1.20 kHz, their standard error 0.12 / 2.
    [_, cell] = next(study_table.rows(dataset))
    assert cell == "1.140 ± 0.060 (60 kHz or more for 1 of 3 seeds)"


def test_a_search_that_found_nothing_at_all_is_reported():
    dataset = searched(SIZES)
    dataset["boundary"][:] = np.nan
    dataset["boundary_status"].loc[{"by": "simulate"}] = "never"
    assert [row[-1] for row in study_table.rows(dataset)] == ["never from 500 Hz on"] * 3
    for _, _, _, figure in figures(dataset):
        figure.draw_without_rendering()
    assert "9 of 9 searches found no boundary" in render(dataset, [])


def test_points_that_drifted_carry_a_dagger():
    dataset = study(RATES, methods=("simulate",))
    dataset["equilibrium"] = xarray.full_like(dataset[PEAK], "", dtype="<U10")
    dataset["equilibrium"].loc[{"event.rate": 9e3, "seed": 2}] = "drifting"
    marks = [row[1].endswith("†") for row in study_table.rows(dataset)]
    assert marks == [False, False, True, False]
    assert "† had not settled" in render(dataset, [])


def test_a_heat_map_has_a_panel_for_each_method_and_their_ratio():
    figure = study_figures.heat_map(study(RATES, SIZES, operating_point=POINT))
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
    titles = [axes.get_title(loc="left") for axes in panels]
    assert titles == ["Formula", "Simulation", "Simulation ÷ formula"]
    ratio = panels[2].collections[0].get_array()
    assert np.asarray(ratio).ravel() == pytest.approx([1.2] * 12)
    assert all(axes.lines for axes in panels)  # the cross
    assert "12 kHz × 5 MB" in study_figures.heat_map_caption(study(RATES, SIZES), POINT)


def test_a_heat_map_needs_two_axes_of_numbers():
    with pytest.raises(StudyError, match="two axes of numbers"):
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
    page = render(dataset, [], findings=[(finding, b"") for finding in concluded])
    assert all(finding.heading in page for finding in concluded)


@pytest.mark.parametrize("place", [(0, 0), (0, 2), (1, 0), (1, 2)])
def test_holes_in_the_results_are_drawn_around(place):
    dataset = study(RATES, SIZES)
    dataset[PEAK][{"by": place[0], "event.rate": place[1]}] = np.nan
    for _, _, _, figure in figures(dataset):
        figure.draw_without_rendering()
    gives = "formula gives 9 of 12" if place[0] == 0 else "simulation gives 9 of 12"
    assert gives in render(dataset, [])


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
    import matplotlib.text

    for name, _, _, figure in figures(study(*axes, bound_hz=9e3), None, POINT):
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
    assert np.asarray(points.error_z.array)[0] == pytest.approx(1.2 / 3**0.5)


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


# The table


def test_the_table_has_values_errors_ratio_and_cost():
    dataset = study(MODELS, SIZES)
    assert study_table.head(dataset) == [
        "top-of-rack switch",
        "relative cost",
        "event size",
        "most held by the top-of-rack switch, formula (MB)",
        "most held by the top-of-rack switch, simulation (MB)",
        "simulation ÷ formula",
    ]
    rows = list(study_table.rows(dataset))
    assert len(rows) == 6
    assert rows[0] == ["qfx5120-48y", "1", "1 MB", "10.0", "12.00 ± 0.69", "1.20"]
    assert rows[5][:3] == ["acx7100-48l", "2.5", "5 MB"]


def test_only_products_have_a_cost():
    assert study_table.relative_cost("acx7100-48l") == 2.5
    assert study_table.relative_cost("infinite") is None


def test_saturated_rows_carry_an_asterisk():
    cells = [row[1] for row in study_table.rows(study(RATES, bound_hz=9e3))]
    assert cells == ["10.0", "20.0", "30.0", "40.0 *"]


# Provenance


def test_provenance_tells_equal_things_once():
    session = SimpleNamespace(
        command="daqloom study run s.toml", host="lab", processors=2, system="Linux", python="3.11"
    )
    origins = [
        study_provenance.Origin(session, "0.1.0", 3, "2026-01-01T00:00", "2026-01-02T00:00"),
        study_provenance.Origin(session, "0.1.0", 1, "2026-01-01T12:00", "2026-01-03T00:00"),
        study_provenance.Origin(None, "0.1.0", 1, "2026-01-01T12:00", "2026-01-01T12:00"),
    ]
    assert study_provenance.rows(origins) == [
        ("runs", "5 by 3 processes"),
        ("computed", "2026-01-01T00:00 to 2026-01-03T00:00"),
        ("daqloom", "0.1.0"),
        ("command", "daqloom study run s.toml (4 runs, 2026-01-01T00:00 to 2026-01-03T00:00)"),
        ("machines", "lab, 2 cores, Linux"),
        ("Python", "3.11"),
    ]
    assert study_provenance.rows([]) == []


def test_provenance_tells_a_job_array_as_one_command_and_the_busiest_first():
    def origin(command, runs, day):
        session = SimpleNamespace(
            command=command, host="lab", processors=2, system="Linux", python="3.11"
        )
        day = f"2026-01-0{day}"
        return study_provenance.Origin(session, "0.1.0", runs, f"{day}T00:00", f"{day}T12:00")

    array = [origin(f"daqloom study run s.toml --part {i}/3", 10, i + 1) for i in range(3)]
    others = [origin(f"daqloom study run other{i}.toml", 7 - i, 5) for i in range(7)]
    commands = [v for name, v in study_provenance.rows([*others, *array]) if name == "command"]
    assert commands == [
        "daqloom study run s.toml --part I/3 (30 runs, 2026-01-01T00:00 to 2026-01-03T12:00)",
        *(
            f"daqloom study run other{i}.toml ({7 - i} runs, 2026-01-05T00:00 to 2026-01-05T12:00)"
            for i in range(4)
        ),
        "and 3 more (6 runs)",
    ]


# The page and its files


def big():
    """400 points × 2 methods."""
    rates = ("event.rate", np.arange(1, 21) * 1e3, "Hz")
    sizes = ("event.size", np.arange(1, 21) * 0.5e6, "B")
    return study(rates, sizes, seeds=5, operating_point=POINT)


def test_the_report_is_written_whole(tmp_path):
    paths = write(big(), tmp_path / "report", provenance=[("machine", "lab")])
    assert sorted(path.name for path in paths) == sorted(
        ["report.html", "results.parquet"]
        + [
            f"{name}.{ending}"
            for name in ("lines", "map", "seeds", "surface", "methods")
            for ending in ("png", "pdf")
        ]
    )
    assert {path.name for path in (tmp_path / "report").iterdir()} == {path.name for path in paths}
    page = paths[0].read_text()
    assert paths[0].stat().st_size < 3e6
    assert page.count('id="plotly"') == 1
    assert "lab" in page.split("Where the numbers come from")[1]


def test_the_page_loads_nothing():
    page = render(big(), [("Lines", "A caption.", b"png")])
    markup = re.sub(r'<script id="plotly".*?</script>', "", page, flags=re.DOTALL)
    assert not re.search(r"https?://", markup)
    assert not re.search(r'(src|href)="(?!data:)', markup)
    assert base64.b64encode(b"png").decode() in markup
    assert not re.search(r"@import|<link", markup)


def test_the_figures_of_the_page_are_json():
    page = render(big(), [])
    [figure] = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    assert [trace["type"] for trace in json.loads(figure)["data"]] == [
        "surface",
        "scatter3d",
        "scatter3d",
    ]


def test_hostile_text_is_escaped():
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    models = ("switch.tor.model", [evil, "infinite"], "")
    for axes in ((RATES, models), (RATES, SIZES, models)):
        dataset = study(*axes, title=evil, scenario=evil, study=evil)
        page = render(dataset, [(evil, evil, b"")], description=evil, provenance=[(evil, evil)])
        markup = re.sub(r'<script id="plotly".*?</script>', "", page, flags=re.DOTALL)
        assert "<script>alert" not in markup
        assert "<img src=x" not in markup


def test_a_metric_of_hostile_name_is_escaped():
    evil = "<img src=x onerror=alert(2)>"
    dataset = study(RATES, SIZES).rename({PEAK: evil})
    assert evil not in render(dataset, [("Lines", "", b"")])


def test_the_operating_point_is_the_scenarios_own():
    assert operating_point_of(load("atlas-lab")) == POINT


def test_the_same_results_give_the_same_bytes(tmp_path):
    first, second = (
        [path.read_bytes() for path in write(study(RATES), tmp_path / name)] for name in "ab"
    )
    assert first == second


# The command

STUDY = """
title = "Formula only"
scenario = "laptop"
methods = ["analyse"]
[grid]
"event.rate" = ["1 kHz", "2 kHz"]
"""


@pytest.fixture
def computed(tmp_path):
    """A study's file and a store that holds all of it."""
    file, store = tmp_path / "mine.toml", tmp_path / "store"
    file.write_text(STUDY)
    made = load_study(file)
    with Store.open(store, create=True, command="daqloom study run mine.toml") as opened:
        run(made, opened, InProcess(opened))
    return file, store


def test_the_command_writes_the_report_of_a_store(computed, tmp_path):
    file, store = computed
    folder = tmp_path / "out"
    done = CliRunner().invoke(
        app, ["report", str(file), "--store", str(store), "--output", str(folder)]
    )
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        str(folder / name) for name in ("report.html", "lines.png", "lines.pdf", "results.parquet")
    ]
    page = (folder / "report.html").read_text()
    told = page.split("Where the numbers come from")[1]
    assert "daqloom study run mine.toml" in told
    assert "2 by 1 process" in told


def test_the_command_refuses_a_store_that_is_not_there(computed, tmp_path):
    done = CliRunner().invoke(app, ["report", str(computed[0]), "--store", str(tmp_path / "none")])
    assert done.exit_code == 2
    assert "no store" in done.stderr
    assert not (tmp_path / "mine-report").exists()


def test_a_store_is_asked_for_each_record_once_in_the_count(computed):
    file, store = computed
    with study_provenance.witnessed(store) as opened:
        for _ in range(2):
            list(replay(load_study(file), opened))
        [origin] = opened.origins
    assert origin.runs == 2


# Several variables side by side

LATENCY = "collection_latency_s.mean"


def with_latency(*axes, **attrs):
    """Of `study`, a peak of 10 MB as a latency of 1 ms."""
    dataset = study(*axes, **attrs)
    dataset[LATENCY] = (dataset[PEAK] * 1e-10).assign_attrs(units="s")
    return dataset


def test_a_report_draws_the_variables_of_the_study_side_by_side():
    dataset = with_latency(RATES, MODELS, methods=("simulate",), show=[LATENCY, PEAK])
    assert shown_variables(dataset) == [LATENCY, PEAK]
    assert shown_variables(dataset, PEAK) == [PEAK]
    left, right = {name: figure for name, _, _, figure in figures(dataset)}["lines"].axes
    assert left.get_ylabel() == "collection latency, mean (ms)"
    assert right.get_ylabel() == "most held by the top-of-rack switch (MB)"
    # 12 MB (1 + place of the rate), as 1.2 ms on the left.
    assert curve(left, 0)[:, 1] == pytest.approx([1.2, 2.4, 3.6, 4.8])
    assert curve(right, 0)[:, 1] == pytest.approx([12, 24, 36, 48])
    page = render(dataset, [("Lines", "", b"png")])
    assert len(re.findall(r'<script type="application/json">', page)) == 2
    assert study_table.head(dataset)[3:5] == [
        "collection latency, mean, simulation (ms)",
        "most held by the top-of-rack switch, simulation (MB)",
    ]


def test_a_metric_that_nobody_gave_is_not_shown():
    dataset = study(RATES, show=["packets_dropped", PEAK])
    assert shown_variables(dataset) == [PEAK]


def test_panels_of_a_third_axis_leave_room_for_one_variable():
    dataset = with_latency(RATES, SIZES, MODELS, show=[LATENCY, PEAK])
    with pytest.raises(StudyError, match="one or two axes"):
        study_figures.lines_beside(dataset, [LATENCY, PEAK])
    lines = {name: figure for name, _, _, figure in figures(dataset)}["lines"]
    assert "collection latency, mean (ms)" in texts(lines)


def test_the_thinnest_of_named_lines_is_the_last_drawn():
    # Of names, which often lie on one another; of numbers all are alike.
    [axes] = study_figures.lines(study(RATES, MODELS, methods=("simulate",))).axes
    first, second = (container.lines[0].get_linewidth() for container in axes.containers)
    assert first > second
    [axes] = study_figures.lines(study(RATES, SIZES, methods=("simulate",))).axes
    assert len({container.lines[0].get_linewidth() for container in axes.containers}) == 1


def test_steps_that_crowd_a_logarithmic_axis_have_no_number_each():
    sources = ("sources.count", [4, 8, 16, 20, 24, 28, 32, 64, 128, 240], "")
    [axes] = study_figures.lines(study(sources)).axes
    ticks = axes.get_xticks()
    assert (ticks[0], ticks[-1]) == (4, 240)
    ratio = (240 / 4) ** (1 / 8)  # room for eight
    assert min(ticks[1:] / ticks[:-1]) >= ratio
    assert set(ticks) <= set(sources[1])


def test_the_cost_follows_the_switch_of_a_variant() -> None:
    dataset = study(("variant", ["shallow", "deep"], ""))
    models = ("variant", ["qfx5120-48y", "acx7100-48l"])
    dataset = dataset.assign_coords({"switch.tor.model": models})
    place = study_table.head(dataset).index("relative cost")
    assert [row[place] for row in study_table.rows(dataset)] == ["1", "2.5"]
