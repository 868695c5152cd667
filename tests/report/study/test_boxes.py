"""Box plots of a study: the spread over seeds."""

import pytest

from daqloom.report.figure import Bars, Line
from daqloom.report.study.boxes import box_plots
from daqloom.study import StudyError
from support.figures import marks
from support.study_datasets import RATES, study


def test_box_plots_show_every_seed_of_two_or_more():
    with pytest.raises(StudyError, match=r"repeat\.seeds"):
        box_plots(study(RATES, seeds=1))
    [panel] = box_plots(study(RATES)).panels
    seeds = marks(panel, Line, marker=".")
    assert seeds[0].y == pytest.approx([10.8, 12, 13.2])
    [boxes] = marks(panel, Bars)
    assert (boxes.base[0], boxes.base[0] + boxes.length[0]) == pytest.approx((11.4, 12.6))
