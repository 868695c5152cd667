"""A panel for print, and the same to zoom and to hover."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.page import section

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray
    from plotly.graph_objects import Figure

    from daqloom.report.system.panels import XY, Axis, Panel

LAYERS = ("#d6e6f4", "#eaf2fa")
"""Fills of every other layer."""
LAYER = "one event: filled by all sources, drained by one link"
DASHES = {"dash": (0, (6, 4)), "dot": (0, (2, 2))}
BEHIND_WORDS = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1}
PIXELS = 4 / 3
"""In a point, on a screen."""

_LAYOUT: dict[str, Any] = {
    "template": "plotly_white",
    "font": {"family": "system-ui, sans-serif", "size": 14, "color": style.BLACK},
    "margin": {"l": 70, "r": 20, "t": 20, "b": 55},
    "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
}


def draw_panel(axes: Axes, panel: Panel) -> None:
    """Draws on matplotlib's axes, with a legend where curves need one."""
    axes.set_title(panel.title)
    for index, height in enumerate(panel.layers):
        below = panel.layers[index - 1] if index else 0
        label = None if index else LAYER
        colour = LAYERS[index % 2]
        axes.fill_between(panel.curves[-1].x, below, height, color=colour, lw=0, label=label)
    for curve in panel.curves:
        x, y = thinned(curve.x, curve.y) if panel.is_binned else (curve.x, curve.y)
        how: Any = {"drawstyle": "steps-post" if panel.is_binned else "default"}
        how |= {"color": curve.colour, "lw": curve.width, "alpha": curve.opacity}
        axes.plot(x, y, label=curve.name, **how)
    for limit in panel.limits:
        line = axes.axvline if limit.is_upright else axes.axhline
        line(limit.at, color=limit.colour, lw=0.9, ls=DASHES[limit.dash])
        place: Any = {"xy": (1.0, limit.at), "xycoords": ("axes fraction", "data")}
        place |= {"xytext": (-6, 4), "ha": "right", "bbox": BEHIND_WORDS}
        if limit.is_upright:  # its words are above the panel
            place = {"xy": (limit.at, 1.0), "xycoords": ("data", "axes fraction")}
            place |= {"xytext": (0, 2), "ha": "center", "fontsize": 8}
        axes.annotate(limit.text, textcoords="offset points", color=limit.colour, **place)
    axes.set(xlim=panel.x.ends, ylim=panel.y.ends, xlabel=_title(panel.x), ylabel=_title(panel.y))
    if panel.is_log:
        axes.set(xscale="log", yscale="log", xlabel=panel.x.title, ylabel=panel.y.title)
        axes.xaxis.set_major_formatter(lambda value, _: style.round_seconds(value / 1e3))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
    if panel.layers:
        axes.legend(loc="upper left", frameon=False, ncols=3, borderaxespad=0.2)
    elif panel.is_log and len(panel.curves) > 1:
        # Below the axes: curves may run anywhere within them.
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, frameon=False)
    style.quiet_grid(axes)


def thinned(times: NDArray[np.float64], most: NDArray[np.float64]) -> XY:
    """The same maxima in fewer, wider bins: at most 400, what a printed panel shows."""
    step = -(-times.size // 400) or 1
    starts = np.arange(0, times.size, step)
    return times[starts], np.maximum.reduceat(most, starts) if starts.size else most


def part(panel: Panel) -> str:
    """Return the panel as part of a page, with its title and what it is about."""
    return section(panel.title, panel.about, _interactive(panel))


def _interactive(panel: Panel) -> Figure:
    from plotly.graph_objects import Figure

    figure = Figure(layout=_LAYOUT | {"hovermode": "closest" if panel.is_log else "x unified"})
    for index, height in enumerate(panel.layers):
        figure.add_scatter(
            x=_thin(panel.curves[-1].x),
            y=_thin(height),
            fill="tonexty" if index else "tozeroy",
            fillcolor=LAYERS[index % 2],
            line={"width": 0, "color": LAYERS[0]},
            mode="lines",
            hoverinfo="skip",
            name=LAYER,
            showlegend=index == 0,
        )
    shape = "hv" if panel.is_binned else "linear"
    for curve in panel.curves:
        figure.add_scatter(
            x=_thin(curve.x),
            y=_thin(curve.y),
            name=curve.name,
            line={"color": curve.colour, "width": PIXELS * curve.width, "shape": shape},
            opacity=curve.opacity,
            hovertemplate=panel.hover,
        )
    for limit in panel.limits:
        line = {"dash": limit.dash, "color": limit.colour, "width": 1}
        if not limit.is_upright:
            words = {"font_color": limit.colour, "bgcolor": "rgba(255, 255, 255, 0.75)"}
            figure.add_hline(limit.at, line=line, annotation={"text": limit.text} | words)
            continue
        figure.add_vline(limit.at, line=line)
        # Plotly places annotations on the axis' logarithm.
        place = {"x": math.log10(limit.at), "y": 0.02, "yref": "paper", "xanchor": "right"}
        figure.add_annotation(text=limit.text, font_color=limit.colour, showarrow=False, **place)
    figure.update_xaxes(title=_title(panel.x), **_range(panel.x, panel))
    figure.update_yaxes(title=_title(panel.y), **_range(panel.y, panel))
    return figure


def _range(axis: Axis, panel: Panel) -> dict[str, Any]:
    if panel.is_log:
        return {"type": "log", "dtick": 1, "range": [math.log10(end) for end in axis.ends]}
    return {"range": axis.ends}


def _title(axis: Axis) -> str:
    return f"{axis.title} ({axis.unit})"


def _thin(values: Any) -> Any:
    """Seven digits are more than a screen shows, and half of the file."""
    return values.astype("float32")
