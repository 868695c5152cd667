"""Heat maps of a study: their cells and axes."""

import numpy as np
import pytest

from daqloom.report.figure import Cells, Line, Text
from daqloom.report.study.lines import lines
from daqloom.report.study.map import heat_map, heat_map_caption
from daqloom.study import StudyError
from support.figures import marks, titles
from support.study_datasets import MODELS, PEAK, POINT, RATES, SIZES, study


def test_a_heat_map_has_a_panel_for_each_method_and_their_ratio():
    dataset = study(RATES, SIZES, operating_point=POINT)
    figure = heat_map(dataset)
    assert titles(figure) == ["Formula", "Simulation", "Simulation ÷ formula"]
    [ratio] = marks(figure.panels[2], Cells)
    assert ratio.values.ravel() == pytest.approx([1.2] * 12)
    for panel in figure.panels:
        [cross] = marks(panel, Line)
        assert (cross.x, cross.y) == ([12], [5])
    assert "12 kHz × 5 MB" in heat_map_caption(dataset)


def test_a_map_names_the_step_without_a_limit_and_few_steps():
    builders = ("builders.units", [1, 2, 4], "")
    rates = ("event.rate", np.arange(1, 21) * 1e3, "Hz")
    panel = heat_map(study(rates, builders)).panels[0]
    assert panel.y.ticks == [1, 2, 4]
    assert panel.x.ticks is None  # left to the renderer
    requests = ("building.outstanding_fragments", [0, 4, 8], "")
    panel = heat_map(study(requests, RATES, methods=("simulate",))).panels[0]
    assert [panel.x.text(tick) for tick in panel.x.ticks] == ["4", "8", "no limit"]
    [cells] = marks(panel, Cells)
    # 12 MB × (1 + place in the file): no limit was the first step, and is the last column.
    assert cells.values[0] == pytest.approx([24, 36, 12])
    assert (np.diff(cells.x) > 0).all()
    with pytest.raises(StudyError, match="two numeric axes"):
        heat_map(study(RATES, MODELS))


def test_colours_of_counts_have_whole_numbers():
    dataset = study(RATES, SIZES, methods=("simulate",), seeds=2)
    dataset["packets_dropped"] = (np.round(dataset[PEAK] / 24e6)).assign_attrs(units="packets")
    [bar] = heat_map(dataset, "packets_dropped").bars
    assert bar.scale.high <= 3
    assert list(bar.steps()) == [0, 1, 2, 3][: int(bar.scale.high) + 1]
    [panel] = lines(dataset, "packets_dropped").panels[:1]
    assert panel.y.integer
    assert not lines(dataset).panels[0].y.integer


def test_the_cells_of_a_small_map_hold_their_values():
    dataset = study(RATES, SIZES, operating_point=POINT)
    formula, simulation, ratio = heat_map(dataset).panels
    for panel, by in ((formula, "analyse"), (simulation, "simulate")):
        mean = dataset[PEAK].sel({"by": by}).mean("seed").transpose("event.size", ...) / 1e6
        [cells], [crossed] = marks(panel, Cells), marks(panel, Text)
        assert crossed.text == [cells.texts.dtype.type(f"{float(mean[2, 3]):.3g}")]
        shown = np.where(cells.texts == "", crossed.text, cells.texts).astype(float)
        assert shown == pytest.approx(mean.values, rel=5e-3)
    assert set(marks(ratio, Cells)[0].texts.ravel()) == {"1.2", ""}
    rates = ("event.rate", [1e3 * n for n in range(1, 21)], "Hz")
    sizes = ("event.size", [1e6 * n for n in range(1, 17)], "B")
    [cells] = marks(heat_map(study(rates, sizes)).panels[0], Cells)
    assert cells.texts is None
