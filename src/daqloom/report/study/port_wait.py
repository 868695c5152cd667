"""Buffers read off PortXmitWait beside the configured ones: sentences, figure and table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from daqloom.report import style
from daqloom.report.study.finding import NOTHING, Finding
from daqloom.report.study.view import key_name, step_text
from daqloom.study.points import axes_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from xarray import DataArray, Dataset

LEAST, MOST = "inferred_buffer_bytes.least", "inferred_buffer_bytes.most"
CONFIGURED = "network.switch.buffer"
KIB = 1024


def finding(dataset: Dataset) -> Finding | None:
    """The section of a report; None unless the study varies buffers and reads them off."""
    if not {LEAST, MOST} <= dataset.data_vars.keys() or CONFIGURED not in axes_of(dataset):
        return None
    known = _known(dataset)
    if not known.any():
        return None
    return Finding(
        "port-wait",
        "Buffers derived from PortXmitWait",
        tuple(sentences(dataset)),
        figure(dataset),
        [*(key_name(axis) for axis in axes_of(dataset)), "at least (B)", "at most (B)", "so"],
        rows(dataset),
    )


def sentences(dataset: Dataset) -> list[str]:
    """How many are as configured, how well they are known, and what is missing."""
    known = _known(dataset)
    least, most = _simulated(dataset[LEAST]), _simulated(dataset[MOST])
    right = known & _is_right(dataset)
    width = (most - least).values[known]
    exact = int((width == 0).sum())
    told = [
        f"PortXmitWait gives the configured buffer at {int(right.sum())} of {int(known.sum())} "
        f"points: exact to the block of 64 B at {exact}, within {width.max() / KIB:.3g} KiB at "
        "all of them."
    ]
    if missing := int((~known).sum()):
        told.append(
            f"It gives no bound at {missing} of the points: there was no waiting, or not for the "
            "burst alone."
        )
    return told


def rows(dataset: Dataset) -> list[list[str]]:
    """Return the rows of the table, one for each point."""
    axes, known, right = axes_of(dataset), _known(dataset), _is_right(dataset)
    least, most = _simulated(dataset[LEAST]), _simulated(dataset[MOST])
    told = []
    for place in np.ndindex(known.shape):
        steps = [
            step_text(dataset, axis, dataset[axis].values[step])
            for axis, step in zip(axes, place, strict=True)
        ]
        found = [NOTHING, NOTHING, NOTHING]
        if known[place]:
            found = [f"{float(each.values[place]):,.0f}" for each in (least, most)]
            found.append("as configured" if right[place] else "not as configured")
        told.append([*steps, *found])
    return told


def figure(dataset: Dataset) -> Figure:
    """What is told over what is configured; points with the same buffer side by side."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    sizes = dataset[CONFIGURED].values / KIB
    least, most = (
        _simulated(dataset[each]).transpose(CONFIGURED, ...).values.reshape(len(sizes), -1) / KIB
        for each in (LEAST, MOST)
    )
    with mpl.rc_context(style.RC):
        drawn = Figure(figsize=(6.4, 4.2), layout="constrained")
        axes = drawn.subplots()
        ends = [0, 1.05 * float(sizes.max())]
        axes.plot(ends, ends, color=style.GREY, lw=0.9, ls=(0, (2, 3)), label="as configured")
        spread = np.linspace(-0.015, 0.015, least.shape[1]) * ends[1]
        axes.errorbar(
            (sizes[:, None] + spread).ravel(),
            ((least + most) / 2).ravel(),
            yerr=((most - least) / 2).ravel(),
            fmt="o",
            ms=2,
            elinewidth=0.9,
            color=style.BLUE,
            label="derived from PortXmitWait, bounds",
        )
        axes.set(
            xlim=ends, ylim=ends, xlabel="configured buffer (KiB)", ylabel="inferred buffer (KiB)"
        )
        axes.legend(loc="upper left", frameon=False)
        style.quiet_grid(axes)
    return drawn


def _simulated(values: DataArray) -> DataArray:
    """By axis; all seeds agree, since nothing is drawn."""
    return values.sel(by="simulate").isel(seed=0)


def _known(dataset: Dataset) -> NDArray[np.bool_]:
    """Where both ends are told; in the order of the axes."""
    both = np.isfinite(_simulated(dataset[LEAST]).values)
    known: NDArray[np.bool_] = both & np.isfinite(_simulated(dataset[MOST]).values)
    return known


def _is_right(dataset: Dataset) -> NDArray[np.bool_]:
    least, most = _simulated(dataset[LEAST]), _simulated(dataset[MOST])
    configured = dataset[CONFIGURED].broadcast_like(least).transpose(*least.dims).values
    right: NDArray[np.bool_] = (least.values <= configured) & (configured <= most.values)
    return right
