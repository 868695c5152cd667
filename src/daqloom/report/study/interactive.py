"""Figures of a study to turn, zoom and hover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.study import view
from daqloom.study import StudyError, points

if TYPE_CHECKING:
    from plotly.graph_objects import Figure
    from xarray import DataArray, Dataset

MOST_SLICES = 6


def surface(dataset: Dataset, variable: str | None = None) -> Figure:
    """The formula as a surface over the first two numeric axes, every other method as points.

    Without a formula the first method is the surface. Steps of a third axis are switched on in the
    legend, the first one at the start; further axes are held. Raises StudyError where there are no
    two numeric axes of two steps or more.
    """
    from plotly.graph_objects import Figure

    plane = points.plane_of(dataset)
    if plane is None:
        raise StudyError("a surface requires two numeric axes with at least two steps each")
    third, held = surface_held(dataset)
    figure = Figure()
    drawing = _Surface(dataset.isel(held), points.shown_variable(dataset, variable), plane)
    for place, (at, name) in enumerate(view.steps_of(dataset, third, MOST_SLICES)):
        drawing.add(figure, at, name, place)
    drawing.mark(figure)
    figure.update_layout(**drawing.layout(view.key_name(third) if third else ""))
    return figure


def surface_held(dataset: Dataset) -> tuple[str | None, dict[str, int]]:
    """The axis that the legend of `surface` switches, and the steps of those that are held."""
    rest = [a for a in points.axes_of(dataset) if a not in (points.plane_of(dataset) or ())]
    rest.sort(key=lambda a: (dataset.sizes[a] == 1, points.is_numeric(dataset, a)))
    third = rest.pop(0) if rest and dataset.sizes[rest[0]] > 1 else None
    return third, view.hold(dataset, rest)


class _Surface:
    def __init__(self, dataset: Dataset, variable: str, plane: tuple[str, str]) -> None:
        self.dataset, self.plane = dataset, plane
        self.values = points.spread(dataset[variable])
        self.full = points.saturated(dataset)
        self.x, self.y = (view.axis_quantity(dataset, axis) for axis in plane)
        self.z = view.variable_quantity(dataset, variable)
        methods = points.methods_of(dataset, variable)
        methods.sort(key=lambda method: method != "analyse")
        self.under, self.over = methods[:1], methods[1:]
        solid = self.values.mean.where(~self.full) / self.z.divisor
        known = solid.values[np.isfinite(solid.values)]
        self.log = view.wants_log(known, 1000)
        self.floor = float(known.min()) if self.log else 0.0
        # The highest of what links carry; hollow points may lie far above.
        self.height = float(known.max(initial=0.0)) * 1.08 or 1.0

    def add(self, figure: Figure, at: dict[str, int], name: str, place: int) -> None:
        for method in self.under:
            self._under(figure, method, at, name, place)
        for method in self.over:
            self._over(figure, method, at, name, place)

    def _under(
        self, figure: Figure, method: str, at: dict[str, int], name: str, place: int
    ) -> None:
        from plotly.graph_objects import Surface

        mean = self._table(self.values.mean, method, at)
        mean = np.where(self._flat(self.full, at), np.nan, mean)  # links are full
        figure.add_trace(
            Surface(
                x=_thin(self.x.values / self.x.divisor),
                y=_thin(self.y.values / self.y.divisor),
                z=_thin(mean),
                surfacecolor=_thin(np.log10(mean) if self.log else mean),
                colorscale="Viridis",
                opacity=0.85,
                showscale=False,
                contours={"x": _grid(), "y": _grid()},
                name=_called(view.LOOKS[method].label, name),
                showlegend=True,
                visible=True if place == 0 else "legendonly",
                hovertemplate=self._hover(),
            )
        )

    def _over(self, figure: Figure, method: str, at: dict[str, int], name: str, place: int) -> None:
        from plotly.graph_objects import Scatter3d

        mean, error = (
            self._table(part, method, at).ravel()
            for part in (self.values.mean, self.values.deviation)
        )
        full = self._flat(self.full, at).ravel()
        x, y = np.meshgrid(self.x.values / self.x.divisor, self.y.values / self.y.divisor)
        label = view.LOOKS[method].label
        for hollow in (False, True):
            kept = np.isfinite(mean) & (full == hollow)
            if not kept.any():
                continue
            bars = {"type": "data", "array": _thin(error[kept]), "visible": True, "thickness": 1.5}
            figure.add_trace(
                Scatter3d(
                    x=_thin(x.ravel()[kept]),
                    y=_thin(y.ravel()[kept]),
                    z=_thin(mean[kept]),
                    error_z=bars if error[kept].any() else None,
                    mode="markers",
                    marker={
                        "size": 4,
                        "symbol": "circle-open" if hollow else "circle",
                        "color": _colour(method),
                    },
                    name=_called(label + (", links are full" if hollow else ""), name),
                    visible=True if place == 0 and not hollow else "legendonly",
                    hovertemplate=self._hover(),
                )
            )

    def mark(self, figure: Figure) -> None:
        """A post at the operating point."""
        from plotly.graph_objects import Scatter3d

        at = [view.on_axis(self.dataset, axis) for axis in self.plane]
        if at[0] is None or at[1] is None:
            return
        x, y = at[0] / self.x.divisor, at[1] / self.y.divisor
        figure.add_trace(
            Scatter3d(
                x=[x, x],
                y=[y, y],
                z=[self.floor, self.height],
                mode="lines",
                line={"color": style.BLACK, "width": 6},
                name=f"operating point, {self.x.text(at[0])} × {self.y.text(at[1])}",
                hoverinfo="name",
            )
        )

    def layout(self, legend: str) -> dict[str, Any]:
        # No label at 0: it would lie on the last one of the y axis.
        kinds: dict[str, Any] = {"range": [0, self.height], "tickvals": _ticks(self.height)}
        if self.log:
            kinds = {"type": "log", "dtick": 1, "tickformat": ",.6~g"}
            kinds["range"] = [float(np.log10(self.floor)), float(np.log10(self.height))]
        return {
            "template": "plotly_white",
            "font": {"family": "system-ui, sans-serif", "size": 13, "color": style.BLACK},
            "margin": {"l": 0, "r": 0, "t": 10, "b": 0},
            "legend": {"x": 0.8, "y": 0.92, "title": {"text": _escape(legend)}},
            "scene": {
                "domain": {"x": [0, 0.79]},
                "xaxis": _axis(self.x),
                "yaxis": _axis(self.y),
                "zaxis": {"title": {"text": _escape(self.z.label)}} | kinds,
                "camera": {"eye": {"x": -1.5, "y": -1.6, "z": 0.75}},
                "aspectmode": "manual",
                "aspectratio": {"x": 1.25, "y": 1.25, "z": 0.85},
            },
        }

    def _table(self, values: DataArray, method: str, at: dict[str, int]) -> Any:
        return self._flat(values.sel({"by": method}), at) / self.z.divisor

    def _flat(self, values: DataArray, at: dict[str, int]) -> Any:
        return values.isel(at).transpose(self.plane[1], self.plane[0]).values

    def _hover(self) -> str:
        parts = ((self.x, "x", ".4g"), (self.y, "y", ".4g"), (self.z, "z", ".4g"))
        lines = [f"{_escape(q.name)} %{{{v}:{form}}} {q.unit}" for q, v, form in parts]
        return "<br>".join(lines)


def _axis(quantity: view.Quantity) -> dict[str, Any]:
    """Title, and the steps as ticks where one of them is no number."""
    axis: dict[str, Any] = {"title": {"text": _escape(quantity.label)}}
    places = np.asarray(quantity.values, dtype=float) / quantity.divisor
    if quantity.is_unlimited_at_zero and 0 in places:
        axis |= {"tickvals": places.tolist(), "ticktext": [*map(quantity.place_text, places)]}
    return axis


def _called(label: str, step: str) -> str:
    return f"{label}, {_escape(step)}" if step else label


def _colour(method: str) -> str:
    """Points of a simulation stand out from the blue and green of a surface."""
    return style.ORANGE if method == "simulate" else view.LOOKS[method].colour


def _escape(text: str) -> str:
    """Plotly reads some HTML in labels."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _grid() -> dict[str, Any]:
    return {"show": True, "color": "rgba(255, 255, 255, 0.35)", "width": 1}


def _ticks(highest: float) -> list[float]:
    """About five round numbers above 0."""
    from matplotlib.ticker import MaxNLocator

    return [float(tick) for tick in MaxNLocator(5).tick_values(0, highest) if 0 < tick <= highest]


def _thin(values: Any) -> Any:
    return np.asarray(values).astype("float32")
