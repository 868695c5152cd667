"""Figures of many named steps: a row for each name, a panel for each point."""

import numpy as np
import pytest
import xarray

from daqloom.report.figure import Line, Text
from daqloom.report.study import names as study_names
from daqloom.report.study.report import pictures
from support.figures import marks, titles

PEAK = "buffer_peak_bytes.tor"
MANY = [f"variant {i}" for i in range(9)]


def study(names: list[str], sizes: list[float] | None = None, seeds: int = 3) -> xarray.Dataset:
    """The peak is 10 MB times (1 + place of the name), ± 10 % over the seeds; twice that at the
    second size, and so on. The formula gives 10 MB everywhere."""
    sizes = sizes or [5e6]
    shape = (2, len(names), len(sizes), seeds)
    grow = 1 + np.arange(len(names))[:, None, None]
    per_size = 1 + np.arange(len(sizes))[:, None]
    values = np.empty(shape)
    values[0] = 10e6
    values[1] = 10e6 * grow * per_size * np.linspace(0.9, 1.1, seeds)
    dims = ("by", "variant", "event.size", "seed")
    return xarray.Dataset(
        {
            PEAK: (dims, values, {"units": "B"}),
            "saturated": (dims, np.zeros(shape, dtype=bool)),
            "equilibrium": (dims, np.full(shape, "")),
        },
        coords={
            "by": ["analyse", "simulate"],
            "variant": names,
            "event.size": ("event.size", sizes, {"units": "B"}),
            "seed": list(range(1, seeds + 1)),
        },
        attrs={"operating_point": {"event.rate": 12e3, "event.size": 5e6}},
    )


def test_names_become_rows_and_are_drawn_where_no_other_axis_has_room() -> None:
    assert study_names.axis_of_names(study(["one", "two"])) == "variant"
    assert study_names.axis_of_names(study(["one", "two"], [1e6, 5e6])) is None  # colours
    assert study_names.axis_of_names(study(MANY, [1e6, 5e6])) == "variant"
    assert study_names.axis_of_names(study(["one"], [1e6, 5e6])) is None
    assert [each.name for each in pictures(study(MANY))] == ["names"]
    assert "lines" in [each.name for each in pictures(study(["one", "two"], [1e6, 5e6]))]


def test_every_name_has_a_row_and_another_axis_panels() -> None:
    figure = study_names.names(study(MANY))
    [panel] = figure.panels
    assert panel.y.names == MANY
    low, high = panel.y.ends
    assert low > high  # the first one above
    [bars] = marks(panel, Line, error_along="x")
    assert bars.x == pytest.approx(10 * (1 + np.arange(9)))  # MB
    assert list(bars.y) == list(range(9))
    [formula] = marks(panel, Line, marker="|")
    assert set(formula.x) == {10.0}
    figure = study_names.names(study(MANY, [1e6, 2e6, 5e6]))
    assert titles(figure) == ["event size 1 MB", "event size 2 MB", "event size 5 MB"]
    sizes = [1e6 * k for k in range(1, 8)]
    assert len(study_names.names(study(MANY, sizes)).panels) == 1
    assert study_names.names_caption(study(MANY, sizes)).endswith("Drawn for event size 5 MB.")


def test_saturated_points_are_hollow() -> None:
    dataset = study(["one", "two"])
    dataset["saturated"].loc[{"variant": "two"}] = True
    [panel] = study_names.names(dataset).panels
    hollow = marks(panel, Line, hollow=True)
    assert [list(np.isfinite(line.x)) for line in hollow] == [[False, True]]
    assert "Hollow points" in study_names.names_caption(dataset)


def test_a_search_without_a_boundary_is_a_text_in_its_row() -> None:
    dataset = study(["one", "two"])
    boundary = dataset[PEAK].where(dataset["by"] == "simulate")
    status = np.where(boundary.notnull(), "found", "").astype("<U8")
    boundary[1, 1], status[1, 1] = np.nan, "never"
    about = {"units": "B", "key": "network.switch.tor.buffer", "find": "smallest"}
    dataset["boundary"] = boundary.assign_attrs(about, bounds=[1e6, 50e6])
    dataset["boundary_status"] = (boundary.dims, status)
    [panel] = study_names.names(dataset, "boundary").panels
    assert [(text.text, text.y) for text in marks(panel, Text)] == [(["never up to 50 MB"], 1)]
