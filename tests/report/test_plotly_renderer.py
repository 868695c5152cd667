"""Plots of a page: plotly accepts every mark, and shows the figure's axes."""

import json
from typing import Any

import numpy as np
import pytest

from daqloom.report.figure import (
    Area,
    Axis,
    Band,
    Bars,
    Cells,
    ColourBar,
    Figure,
    Legend,
    Line,
    Panel,
    Rule,
    Scale,
    Surface,
    Text,
    dots,
)
from daqloom.report.matplotlib_renderer import svg
from daqloom.report.plotly_renderer import plots

SCALE = Scale(["#000000", "#ffffff"], 1, 100, log=True)
GRID = np.array([[1.0, 10.0], [100.0, np.nan]])
MARKS = (
    Line([1, 2], [1, 10], "a curve", step="post", error=[[1, 0], [2, 0]]),
    Line([1, 2], [1, 10], dash="sparse", is_peaks=True),
    dots([1], [2], marker="|", hollow=True),
    dots([1, 2], [2, 2], size=[3.0, 9.0]),
    Area([1, 2], 1, [2, 3], step="post"),
    Bars([1, 2], [3, 4], texts=["one", "two"], text_at="middle", hatched=True, edge="#000000"),
    Bars([1, 2], [3, 4], upright=True, colour=["#000000", "#ff0000"]),
    Band(1, 2),
    Rule(2, "a limit"),
    Rule(2, "a limit", upright=True),
    Text([1, 2], 0.5, ["one", "two"], shares="y", ground=1),
    Cells([1, 2, 3], [1, 2, 3], GRID, SCALE, np.array([["1", "10"], ["100", ""]])),
)


def plot(figure: Figure) -> dict[str, Any]:
    [only] = plots(figure)
    found: dict[str, Any] = json.loads(only.json)
    return found


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: type(mark).__name__)
@pytest.mark.parametrize("log", [False, True])
def test_every_mark_is_drawn_by_both(mark: Any, log: bool) -> None:
    from plotly.graph_objects import Figure as Checked

    axis = Axis("an axis", (1, 20), log=log)
    bars = [ColourBar(SCALE, "a scale", [0])] if isinstance(mark, Cells) else []
    figure = Figure([Panel([mark], axis, axis, "A title")], (4, 3), bars=bars)
    assert Checked(plot(figure)).layout.title.text == "<b>A title</b>"  # raises for what it lacks
    assert b"</svg>" in svg(figure)


def test_a_surface_is_turned() -> None:
    from plotly.graph_objects import Figure as Checked

    marks = [Surface([1, 2], [1, 2], GRID, SCALE, "formula"), dots([1], [1], z=[5], is_hidden=True)]
    panel = Panel(marks, z=Axis("height", (1, 100), log=True))
    checked = Checked(plot(Figure([panel], (4, 3), legend_title="switch")))
    surface, points = checked.data
    assert (surface.type, surface.cmin, surface.cmax) == ("surface", 0, 2)  # powers of ten
    assert (points.type, points.visible) == ("scatter3d", "legendonly")
    assert checked.layout.scene.zaxis.type == "log"


def test_the_visible_part_and_the_ticks_are_those_of_the_axis() -> None:
    x = Axis("duration", (1, 100), log=True, ticks=[1, 60], names=["1 s", "1 min"])
    y = Axis("rate", (0, None), text=lambda value: f"{value:g} %")
    layout = plot(Figure([Panel([Line([1, 50], [2, 9])], x, y)], (4, 3)))["layout"]
    assert layout["xaxis"]["range"] == [0, 2]
    assert layout["xaxis"]["ticktext"] == ["1 s", "1 min"]
    assert layout["yaxis"]["rangemode"] == "tozero"
    assert "4 %" in layout["yaxis"]["ticktext"]


def test_one_panel_has_the_legend_of_a_figure() -> None:
    panels = [Panel([Line([1], [1], "a")], cell=(0, place, 1, 1)) for place in range(2)]
    found = plots(Figure(panels, (4, 3), legend=Legend("outside right upper")))
    assert [json.loads(each.json)["layout"]["showlegend"] for each in found] == [True, False]
