"""Box plots of a study: how far the seeds lie apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.study import view
from daqloom.study import StudyError, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset

MOST_BOXES = 12


def box_plots(dataset: Dataset, variable: str | None = None) -> Figure:
    """The seeds of every step of the first axis: median, quartiles, and each seed as a dot. Methods
    without random numbers are a line. Further axes as in `lines`. Raises StudyError where the study
    has a single seed."""
    variable = points.shown_variable(dataset, variable)
    if dataset.sizes["seed"] < 2:
        raise StudyError("box plots require at least two seeds; set repeat.seeds in the study")
    return _Boxes(dataset, variable).draw()


def box_plots_caption(dataset: Dataset) -> str:
    """What a reader of `box_plots` has to know."""
    used = view.roles(dataset)
    return " ".join(
        [
            f"Each dot is one of {dataset.sizes['seed']} seeds; boxes show quartiles and median, "
            "whiskers the range of all seeds.",
            *view.held_caption(dataset, used.held | _box_held(dataset, used)),
        ]
    )


def _box_held(dataset: Dataset, used: view.Roles) -> dict[str, int]:
    """Boxes have room for names as colours, not for a second axis of numbers."""
    axes = [a for a in (used.colour, used.panel) if a]
    named = [a for a in axes if not points.is_numeric(dataset, a)][:1]
    return view.hold(dataset, [a for a in axes if a not in named])


class _Boxes:
    def __init__(self, dataset: Dataset, variable: str) -> None:
        used = view.roles(dataset)
        held = used.held | _box_held(dataset, used)
        self.x = view.axis_quantity(dataset, used.x)
        order = [step for step in view.along(dataset, used.x)[1] if step >= 0]
        self.steps = [order[place] for place in view.chosen(len(order), MOST_BOXES)]
        steps = dataset[used.x].values[self.steps]
        numeric = points.is_numeric(dataset, used.x)
        self.texts = [f"{v / self.x.divisor:.4g}" if numeric else str(v) for v in steps]
        if numeric and view.step_text(dataset, used.x, steps[-1]) == view.NO_LIMIT:
            self.texts[-1] = view.NO_LIMIT
        self.y = view.variable_quantity(dataset, variable)
        values = dataset[variable].isel(held).isel({used.x: self.steps}) / self.y.divisor
        self.groups = list(
            self._groups(dataset, values, used, held, points.methods_of(dataset, variable))
        )

    def _groups(
        self,
        dataset: Dataset,
        values: DataArray,
        used: view.Roles,
        held: Mapping[str, int],
        methods: list[str],
    ) -> Iterator[tuple[str, str, bool, Any]]:
        """Label, colour, whether all seeds agree, and values by step and seed."""
        named = next((a for a in (used.colour, used.panel) if a and a not in held), None)
        for method in methods:
            of_method = values.sel({"by": method})
            label = view.LOOKS[method].label
            if named is None or view.same_along(of_method, None, named):
                of_method = of_method if named is None else of_method.isel({named: 0})
                table = of_method.transpose(used.x, "seed").values
                yield label, view.LOOKS[method].colour, method == "analyse", table
                continue
            for colour, name in zip(view.NAMED_COLOURS, dataset[named].values, strict=False):
                table = of_method.sel({named: name}).transpose(used.x, "seed").values
                text = f"{name}" if len(methods) == 1 else f"{name}, {label}"
                yield text, colour, method == "analyse", table

    @style.in_style
    def draw(self) -> Figure:
        from matplotlib.lines import Line2D

        boxes = [group for group in self.groups if not group[2]]
        width = 0.72 / max(1, len(boxes))
        figure, (axes,) = view.panels_for(1)
        for place, group in enumerate(boxes):
            offset = (place - (len(boxes) - 1) / 2) * width
            _boxes(axes, group[3], offset, width * 0.8, group[1])
        for _, colour, alike, table in self.groups:
            if alike:
                middle = np.nanmax(np.where(np.isfinite(table), table, -np.inf), axis=1)
                middle = np.where(np.isfinite(middle), middle, np.nan)
                at = np.arange(len(middle))
                axes.hlines(middle, at - 0.42, at + 0.42, color=colour, lw=1.4, ls="--")
        axes.set_xticks(range(len(self.steps)), self.texts)
        if max(map(len, self.texts)) * len(self.texts) > 75:
            axes.tick_params("x", rotation=30)
        axes.set_xlim(-0.6, len(self.steps) - 0.4)
        axes.set(xlabel=self.x.label, ylabel=self.y.label)
        view.height_from(axes, np.concatenate([g[3].ravel() for g in self.groups]))
        style.quiet_grid(axes)
        handles = [
            Line2D([], [], color=colour, lw=1.4 if alike else 5, ls="--" if alike else "-")
            for _, colour, alike, _ in self.groups
        ]
        labels = [group[0] for group in self.groups]
        figure.legend(handles, labels, loc="outside right upper", frameon=False)
        return figure


def _boxes(axes: Axes, table: Any, offset: float, width: float, colour: str) -> None:
    found = [(i, row[np.isfinite(row)]) for i, row in enumerate(table)]
    found = [(i, row) for i, row in found if row.size]
    if not found:
        return
    places = [i + offset for i, _ in found]
    axes.boxplot(
        [row for _, row in found],
        positions=places,
        widths=width,
        whis=(0, 100),
        manage_ticks=False,
        patch_artist=True,
        boxprops={"facecolor": _pale(colour), "edgecolor": colour},
        medianprops={"color": colour, "linewidth": 1.8},
        whiskerprops={"color": colour},
        capprops={"color": colour},
    )
    for place, (_, row) in zip(places, found, strict=True):
        # Beside one another, so that equal values show; the same in every rendering.
        shift = (np.arange(row.size) - (row.size - 1) / 2) * min(0.12, width * 0.7 / row.size)
        axes.plot(place + shift, row, ".", color=colour, ms=4, alpha=0.75)


def _pale(colour: str) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple(0.82 + 0.18 * part for part in to_rgb(colour))
