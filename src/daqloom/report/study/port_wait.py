"""Comparison of configured buffers with those derived from PortXmitWait: text, figure, table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from daqloom.report import style
from daqloom.report.figure import Axis, Figure, Legend, Line, Panel, dots
from daqloom.report.page import Section
from daqloom.report.study.view import key_name, step_text
from daqloom.study.file.points import axes_of

if TYPE_CHECKING:
    from xarray import Dataset

LEAST, MOST = "inferred_buffer_bytes.least", "inferred_buffer_bytes.most"
CONFIGURED = "network.switch.buffer"
KIB = 1024


class _Bounds:
    """Bounds of the derived buffers by axis; one seed suffices, as the runs have no randomness."""

    def __init__(self, dataset: Dataset) -> None:
        self.least, self.most = (
            dataset[each].sel(by="simulate").isel(seed=0) for each in (LEAST, MOST)
        )
        self.known = np.isfinite(self.least.values) & np.isfinite(self.most.values)
        configured = dataset[CONFIGURED].broadcast_like(self.least).transpose(*self.least.dims)
        inside = (self.least <= configured) & (configured <= self.most)
        self.right = inside.transpose(*self.least.dims).values


def section(dataset: Dataset) -> Section | None:
    """Return the section of a report; None if the study does not both vary and derive buffers."""
    if not {LEAST, MOST} <= dataset.data_vars.keys() or CONFIGURED not in axes_of(dataset):
        return None
    bounds = _Bounds(dataset)
    if not bounds.known.any():
        return None
    return Section(
        "Buffers derived from PortXmitWait",
        _sentences(bounds),
        is_answer=True,
        figure=_figure(dataset, bounds),
        head=[*map(key_name, axes_of(dataset)), "at least (B)", "at most (B)", "result"],
        rows=_rows(dataset, bounds),
        name="port-wait",
    )


def _sentences(bounds: _Bounds) -> list[str]:
    """Return sentences: the number of points with the configured buffer, and without bounds."""
    known = bounds.known
    width = (bounds.most - bounds.least).values[known]
    text = [
        f"PortXmitWait gives the configured buffer at {int((known & bounds.right).sum())} of "
        f"{int(known.sum())} points: exact to the block of 64 B at {int((width == 0).sum())}, "
        f"within {width.max() / KIB:.3g} KiB at all of them."
    ]
    if missing := int((~known).sum()):
        text.append(
            f"It gives no bound at {missing} of the points: there was no waiting, or not for the "
            "burst alone."
        )
    return text


def _rows(dataset: Dataset, bounds: _Bounds) -> list[list[str]]:
    axes = axes_of(dataset)
    rows = []
    for place in np.ndindex(bounds.known.shape):
        steps = [
            step_text(dataset, axis, dataset[axis].values[step])
            for axis, step in zip(axes, place, strict=True)
        ]
        cells = [style.NOTHING] * 3
        if bounds.known[place]:
            cells = [f"{float(each.values[place]):,.0f}" for each in (bounds.least, bounds.most)]
            cells.append("as configured" if bounds.right[place] else "not as configured")
        rows.append([*steps, *cells])
    return rows


def _figure(dataset: Dataset, bounds: _Bounds) -> Figure:
    """Return derived against configured buffers; points with the same buffer are side by side."""
    sizes = dataset[CONFIGURED].values / KIB
    least, most = (
        each.transpose(CONFIGURED, ...).values.reshape(len(sizes), -1) / KIB
        for each in (bounds.least, bounds.most)
    )
    ends = 0, 1.05 * float(sizes.max())
    spread = np.linspace(-0.015, 0.015, least.shape[1]) * ends[1]
    reach = ((most - least) / 2).ravel()
    derived = dots(
        (sizes[:, None] + spread).ravel(),
        ((least + most) / 2).ravel(),
        "derived from PortXmitWait, bounds",
        size=2,
        error=[reach, reach],
    )
    diagonal = Line(ends, ends, "as configured", style.GREY, 0.9, "sparse")
    x, y = (Axis(f"{each} buffer (KiB)", ends) for each in ("configured", "inferred"))
    return Figure([Panel([diagonal, derived], x, y, legend=Legend("upper left"))], (6.4, 4.2))
