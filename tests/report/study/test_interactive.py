"""Three-dimensional surfaces of a study."""

import numpy as np
import pytest

from daqloom.report.figure import Surface
from daqloom.report.study import interactive as study_interactive
from support.figures import marks
from support.study_datasets import MODELS, POINT, RATES, SIZES, study


def test_the_surface_is_the_formula_with_solid_and_hollow_points_of_the_simulation():
    [panel] = study_interactive.surface(study(RATES, SIZES, operating_point=POINT)).panels
    surface, points, post = panel.marks
    assert isinstance(surface, Surface)
    assert post.name == "operating point, 12 kHz × 5 MB"
    assert surface.z[0] == pytest.approx([10, 20, 30, 40])
    assert len(points.z) == 12
    assert points.error[0][0] == pytest.approx(1.2)
    [panel] = study_interactive.surface(study(RATES, SIZES, bound_hz=9e3)).panels
    surface, solid, hollow = panel.marks
    assert np.isnan(surface.z[:, 3]).all()
    assert (len(solid.z), len(hollow.z)) == (9, 3)
    assert (hollow.hollow, hollow.is_hidden) == (True, True)


def test_a_third_axis_is_in_the_legend_and_a_step_without_a_limit_has_its_name():
    [panel] = study_interactive.surface(study(RATES, SIZES, MODELS)).panels
    shown = [mark.name for mark in panel.marks if not mark.is_hidden]
    assert shown == ["formula, qfx5120-48y", "simulation, qfx5120-48y"]
    assert "formula, acx7100-48l" in [mark.name for mark in panel.marks]
    requests = ("building.outstanding_fragments", [0, 4, 8], "")
    [panel] = study_interactive.surface(study(requests, RATES)).panels
    assert [panel.x.text(tick) for tick in panel.x.ticks] == ["4", "8", "no limit"]
    [surface] = marks(panel, Surface)
    assert surface.z[0] == pytest.approx([20, 30, 10])
