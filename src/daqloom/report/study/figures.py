"""Figures of a study for print: each a function from a dataset to a figure.

In a notebook:

    dataset = daqloom.open_study("studies/atlas-min-buffer.toml")
    study_figures.lines(dataset)
"""

from daqloom.report.study.boxes import box_plots, box_plots_caption
from daqloom.report.study.lines import lines, lines_beside, lines_caption, search_caption
from daqloom.report.study.map import heat_map, heat_map_caption
from daqloom.report.study.names import names, names_caption

__all__ = [
    "box_plots",
    "box_plots_caption",
    "heat_map",
    "heat_map_caption",
    "lines",
    "lines_beside",
    "lines_caption",
    "names",
    "names_caption",
    "search_caption",
]
