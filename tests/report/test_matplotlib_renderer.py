"""Pictures: legends beside the data, and equal bytes."""

from typing import Any

import numpy as np
import pytest

from daqloom.report.figure import Axis, Bars, Figure, Legend, Line, Panel, dots
from daqloom.report.matplotlib_renderer import canvas, svg

X, WAVE = np.linspace(0, 1, 50), np.linspace(0, 1, 2000)
FULL = [
    pytest.param([Line(WAVE, (1 + np.sin(100 * WAVE)) / 2, "a")], id="curves"),
    pytest.param([dots(np.tile(X, 50), np.repeat(X, 50), "a")], id="markers"),
    pytest.param([dots(np.tile(X, 50), np.repeat(X, 50), "a", size=np.full(2500, 3.0))], id="dots"),
    pytest.param([Bars(X, np.ones(50), thickness=0.02, upright=True, name="a")], id="bars"),
]


def is_below(figure: Figure) -> bool:
    """Whether the legend of the first panel is below its axes."""
    drawn = canvas(figure)
    drawn.draw_without_rendering()
    axes = drawn.axes[0]
    legend = axes.get_legend()
    assert legend is not None
    assert legend.get_window_extent().y0 >= 0
    return bool(legend.get_window_extent().y1 < axes.get_window_extent().y0)


@pytest.mark.parametrize("marks", FULL)
@pytest.mark.parametrize("where", ["best", "lower right", "upper left"])
def test_a_legend_that_would_hide_data_is_below_the_axes(marks: list[Any], where: str) -> None:
    panel = Panel(marks, Axis("x", (0, 1)), Axis("y", (0, 1)), legend=Legend(where))
    assert is_below(Figure([panel], (4, 3)))


@pytest.mark.parametrize("mark", [Line(X, X, "a"), dots(X, X, "a"), Bars(X, X / 9, name="a")])
def test_a_legend_in_a_free_corner_stays_there(mark: Any) -> None:
    panel = Panel([mark], Axis("x", (0, 1)), Axis("y", (0, 1)), legend=Legend("upper left"))
    ends = Axis("y", (0, 2))
    free = Panel([mark], Axis("x", (0, 1)), ends, legend=Legend("upper left"))
    assert not is_below(Figure([free if isinstance(mark, Bars) else panel], (4, 3)))


def test_the_same_figure_gives_the_same_vectors() -> None:
    figure = Figure([Panel([Line(X, X, "a")], legend=Legend())], (4, 3))
    assert svg(figure) == svg(figure)
