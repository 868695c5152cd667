"""Box plots of a study: the spread over seeds."""

import pytest

from daqloom.report.figure import Bars, Line
from daqloom.report.study.boxes import box_plots
from daqloom.study import StudyError
from support.figures import marks
from support.study_datasets import RATES, study


def test_box_plots_need_two_seeds():
    with pytest.raises(StudyError, match=r"repeat\.seeds"):
        box_plots(study(RATES, seeds=1))


def test_box_plots_show_every_seed():
    [panel] = box_plots(study(RATES)).panels
    seeds = marks(panel, Line, marker=".")
    assert seeds[0].y == pytest.approx([10.8, 12, 13.2])
    [boxes] = marks(panel, Bars)
    assert (boxes.base[0], boxes.base[0] + boxes.length[0]) == pytest.approx((11.4, 12.6))
