"""Renderer that makes interactive plots with plotly, one for each panel of a figure."""

from __future__ import annotations

import base64
import json
import math
from dataclasses import replace
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from daqloom.report import style
from daqloom.report.figure import (
    Area,
    Axis,
    Band,
    Bars,
    Cells,
    ColourBar,
    Figure,
    Line,
    Panel,
    Rule,
    Scale,
    Surface,
    Text,
)

LEAST_HEIGHT, LINE = 300, 16
"""Height of a plot and of a line of text (pixels)."""
PIXELS = 4 / 3
"""Pixels per point on a screen."""
DASHES = {"sparse": "dot"}
SYMBOLS = {"s": "square", "D": "diamond", "P": "cross", "|": "line-ns", "_": "line-ew"}
STEPS = {"": "linear", "post": "hv", "pre": "vh"}
SCENE: dict[str, Any] = {
    "domain": {"x": [0, 0.79]},
    "camera": {"eye": {"x": -1.5, "y": -1.6, "z": 0.75}},
    "aspectmode": "manual",
    "aspectratio": {"x": 1.25, "y": 1.25, "z": 0.85},
}

Drawn = dict[str, Any]
"""A plotly figure: `data` and `layout`."""


class Plot(NamedTuple):
    """A plot of a page."""

    json: str
    """Argument for `Plotly.newPlot`, in JSON that is safe within a script element."""
    columns: int
    """Width in columns of the grid."""
    height: int
    """Height (pixels)."""


def plots(figure: Figure) -> list[Plot]:
    """Return a plot for each panel, in the grid of the figure."""
    rows = max(panel.cell[0] + panel.cell[2] for panel in figure.panels)
    ratios = figure.heights or [1.0] * rows
    found = []
    for number, panel in enumerate(figure.panels):
        row, _, tall, wide = panel.cell
        high = 96 * figure.size[1] * sum(ratios[row : row + tall]) / sum(ratios)
        least = 120 + LINE * len(panel.y.names or ())
        text = json.dumps(_draw(figure, number)).replace("<", "\\u003c")
        found.append(Plot(text, wide, max(LEAST_HEIGHT, least, round(high))))
    return found


def _draw(figure: Figure, number: int) -> Drawn:
    panel = figure.panels[number]
    x, y = panel.x, panel.y
    x = replace(x, label=x.label or figure.x_label)
    y = replace(y, label=y.label or figure.y_label)
    keys = figure.keys if number == 0 else ()
    layout: Drawn = {"shapes": [], "annotations": []}
    drawn: Drawn = {"data": [], "layout": layout}
    for mark in (*panel.marks, *keys):
        _add(mark, drawn, panel)
    for bar in figure.bars:
        if number in bar.panels:
            drawn["data"][0]["colorbar"] = _key(bar)
    named = any(each.get("showlegend") for each in (*drawn["data"], *layout["shapes"]))
    named &= figure.legend is None or number == 0
    is_unified = not panel.x.log and not any(isinstance(each, Bars | Cells) for each in panel.marks)
    title = f"<b>{_safe(panel.title)}</b>" if panel.title else ""
    above = bool(title), named, any(isinstance(each, Text) for each in panel.marks)
    layout |= {
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": style.BLACK},
        "title": {"text": title, "font": {"size": 13}, "x": 0.01, "y": 0.98},
        "margin": {"l": 60, "r": 20, "t": 10 + 30 * sum(above), "b": 50},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        "barmode": "overlay",
        "hovermode": "x unified" if is_unified else "closest",
        "showlegend": named,
        "plot_bgcolor": panel.ground or "white",
        "xaxis": _axis(panel, "x", x),
        "yaxis": _axis(panel, "y", y),
    }
    if panel.z is not None:
        scene = {f"{each}axis": _axis(panel, each, getattr(panel, each)) for each in "xyz"}
        drawn["layout"] = {
            "scene": scene | SCENE,
            "legend": {"x": 0.8, "y": 0.92, "title": {"text": _safe(figure.legend_title)}},
            "margin": {"l": 0, "r": 0, "t": 10, "b": 0},
            "font": layout["font"],
        }
    return drawn


def _safe(text: str) -> str:
    """Return the text with HTML escaped, as plotly reads HTML in labels."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\n", "<br>")


def _array(values: Any) -> dict[str, str]:
    """Return numbers with seven digits (float32), which suffices for a screen in half the size."""
    numbers = np.asarray(values, dtype="<f4")
    found = {"dtype": "f4", "bdata": base64.b64encode(numbers.tobytes()).decode()}
    return found | ({"shape": ", ".join(map(str, numbers.shape))} if numbers.ndim > 1 else {})


def _axis(panel: Panel, name: str, axis: Axis) -> dict[str, Any]:
    layout: dict[str, Any] = {
        "title": {"text": _safe(axis.label), "font": {"size": 13}},
        "showgrid": axis.grid,
        "gridcolor": "#ececec",
        "zeroline": False,
        "type": "log" if axis.log else "linear",
        "visible": not panel.blank,
    }
    if panel.z is None:
        layout["automargin"] = True
        layout["title"]["standoff"] = 10
    if None not in axis.ends:
        layout["range"] = [_position(axis, end) for end in axis.ends]
    elif axis.ends[0] == 0:
        layout["rangemode"] = "tozero"
    ticks, ends = axis.ticks, _ends(panel, name, axis)
    if ticks is None and ends and (axis.text or axis.log):
        ticks = style.round_steps(ends[0], ends[1], log=axis.log)
    if ticks is not None:
        text = axis.text or style.plain
        names = axis.names if axis.names is not None else [text(float(each)) for each in ticks]
        layout |= {"tickvals": [*map(float, ticks)], "ticktext": [*map(_safe, names)]}
    return layout


def _ends(panel: Panel, name: str, axis: Axis) -> list[float]:
    """Return the ends of an axis, as given or from the curves; empty if neither exists."""
    curves = [getattr(mark, name) for mark in panel.marks if isinstance(mark, Line)]
    known = np.concatenate([[], *(np.ravel(each) for each in curves if each is not None)])
    known = known.astype(float)
    known = known[np.isfinite(known) & ((known > 0) | (not axis.log))]
    ends = [float(each) for each in axis.ends if each is not None]
    ends += [float(known.min()), float(known.max())] if known.size and None in axis.ends else []
    return [min(ends), max(ends)] if ends else []


def _position(axis: Axis | Scale, value: Any) -> float:
    """Return a value as plotly expects it for ranges, annotations and colours: the logarithm if the
    axis or scale is logarithmic."""
    return math.log10(value) if axis.log else float(value)


def _entry(name: str) -> dict[str, Any]:
    return {"name": _safe(name), "showlegend": bool(name.strip())}


@singledispatch
def _add(mark: Any, drawn: Drawn, panel: Panel) -> None:
    raise TypeError(f"{type(mark).__name__} is not a mark of a figure")


@_add.register
def _(mark: Line, drawn: Drawn, panel: Panel) -> None:
    parts = (("lines", mark.width), ("markers", mark.marker))
    symbol = SYMBOLS.get(mark.marker, "circle") + ("-open" if mark.hollow else "")
    size = _array(PIXELS * np.asarray(mark.size)) if np.ndim(mark.size) else PIXELS * mark.size
    edge = {"color": mark.colour, "width": 1.5}
    trace: dict[str, Any] = {
        "type": "scatter" if mark.z is None else "scatter3d",
        "x": _array(mark.x) if len(mark.x) else [None],
        "y": _array(mark.y) if len(mark.y) else [None],
        "mode": "+".join(part for part, has in parts if has) or "none",
        "line": {"color": mark.colour, "width": PIXELS * mark.width},
        "marker": {"symbol": symbol, "size": size, "color": mark.colour, "line": edge},
        "opacity": mark.opacity,
        "visible": "legendonly" if mark.is_hidden else True,
    }
    if mark.z is None:
        trace["line"] |= {"shape": STEPS[mark.step], "dash": DASHES.get(mark.dash, mark.dash)}
    else:
        trace["z"] = _array(mark.z)
    if mark.hover:
        trace["hovertemplate"] = mark.hover
    if mark.error is not None and np.nansum(mark.error):
        bars = {"array": _array(mark.error[1]), "arrayminus": _array(mark.error[0])}
        look = {"symmetric": False, "color": mark.colour, "thickness": 1.5, "width": 3}
        trace[f"error_{mark.error_along}"] = {"type": "data"} | bars | look
    drawn["data"].append(trace | _entry(mark.name))


@_add.register
def _(mark: Area, drawn: Drawn, panel: Panel) -> None:
    x, low, high = np.broadcast_arrays(mark.x, mark.low, mark.high)
    if mark.step:
        x, low, high = np.repeat(x, 2)[1:], np.repeat(low, 2)[:-1], np.repeat(high, 2)[:-1]
    trace = {
        "x": _array([*x, *x[::-1]]),
        "y": _array([*low, *high[::-1]]),
        "fill": "toself",
        "fillcolor": style.translucent(mark.colour, mark.opacity),
        "mode": "none",
        "hoverinfo": "skip",
    }
    drawn["data"].append(trace | _entry(mark.name))


@_add.register
def _(mark: Bars, drawn: Drawn, panel: Panel) -> None:
    along, across = ("y", "x") if mark.upright else ("x", "y")
    colour = mark.colour if isinstance(mark.colour, str) else list(mark.colour)
    line = {"width": 1 if mark.edge else 0, "color": mark.edge or style.GREY}
    pattern = {"shape": "/", "fgcolor": mark.edge} if mark.hatched else {}
    look = {"color": colour, "opacity": mark.opacity, "line": line, "pattern": pattern}
    trace = {
        "type": "bar",
        across: _array(mark.at),
        along: _array(mark.length),
        "base": _array(np.broadcast_to(mark.base, np.shape(mark.at))),
        "width": _array(np.broadcast_to(mark.thickness, np.shape(mark.at))),
        "orientation": "v" if mark.upright else "h",
        "text": [*map(_safe, mark.texts)],
        "textposition": "outside" if mark.text_at == "end" else "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "constraintext": "none",
        "cliponaxis": False,
        "marker": look,
    }
    drawn["data"].append(trace | _entry(mark.name))


def _across(upright: bool, low: float, high: float) -> dict[str, Any]:
    """Return a shape that extends over the whole panel across one axis."""
    along, across = ("x", "y") if upright else ("y", "x")
    ends = {f"{along}0": low, f"{along}1": high, f"{across}0": 0, f"{across}1": 1}
    return ends | {f"{across}ref": f"{across} domain", "layer": "below"}


@_add.register
def _(mark: Band, drawn: Drawn, panel: Panel) -> None:
    look = {"type": "rect", "fillcolor": mark.colour, "opacity": mark.opacity, "line": {"width": 0}}
    place = _across(mark.upright, mark.low, mark.high)
    drawn["layout"]["shapes"].append(look | place | _entry(mark.name))


@_add.register
def _(mark: Rule, drawn: Drawn, panel: Panel) -> None:
    line = {"dash": DASHES.get(mark.dash, mark.dash), "color": mark.colour, "width": 1}
    place = _across(mark.upright, mark.at, mark.at) | {"layer": "above"}
    drawn["layout"]["shapes"].append({"type": "line", "line": line} | place | _entry(mark.name))
    x, y, shares = (mark.at, 0.02, "y") if mark.upright else (1, mark.at, "x")
    look: Any = {"size": 9, "across": "right", "down": "bottom", "shares": shares, "ground": 0.75}
    if mark.text:
        _add(Text(x, y, [mark.text], mark.colour, **look), drawn, panel)


@_add.register
def _(mark: Text, drawn: Drawn, panel: Panel) -> None:
    look: dict[str, Any] = {
        "font": {"color": mark.colour, "size": 1.1 * PIXELS * mark.size},
        "xanchor": mark.across,
        "yanchor": {"center": "middle"}.get(mark.down, mark.down),
        "xshift": mark.offset[0],
        "yshift": mark.offset[1],
        "textangle": -mark.turned,
        "showarrow": False,
        "bgcolor": style.translucent("white", mark.ground),
    }
    look |= {f"{each}ref": "paper" for each in mark.shares}
    for x, y, text in mark.words():
        at = [
            float(place) if name in mark.shares else _position(axis, place)
            for name, axis, place in (("x", panel.x, x), ("y", panel.y, y))
        ]
        words = {"x": at[0], "y": at[1], "text": _safe(text)}
        drawn["layout"]["annotations"].append(look | words)


@_add.register
def _(mark: Cells, drawn: Drawn, panel: Panel) -> None:
    trace = {
        "type": "heatmap",
        "x": _array(mark.x),
        "y": _array(mark.y),
        "customdata": _array(mark.values),
        "hovertemplate": "%{customdata:.4g}<extra></extra>",
        "xgap": mark.gap,
        "ygap": mark.gap,
    }
    if mark.texts is not None:
        texts = [[_safe(text) for text in row] for row in mark.texts]
        trace |= {"text": texts, "texttemplate": "%{text}"}
    drawn["data"].append(trace | _colours(mark.values, mark.scale, "z", "zmin", "zmax"))


@_add.register
def _(mark: Surface, drawn: Drawn, panel: Panel) -> None:
    grid = {"show": True, "color": "rgba(255, 255, 255, 0.35)", "width": 1}
    trace = {
        "type": "surface",
        **{name: _array(getattr(mark, name)) for name in "xyz"},
        "opacity": 0.85,
        "showscale": False,
        "contours": {"x": grid, "y": grid},
        "visible": "legendonly" if mark.is_hidden else True,
        "hovertemplate": mark.hover,
    }
    colours = _colours(mark.z, mark.scale, "surfacecolor", "cmin", "cmax")
    drawn["data"].append(trace | colours | _entry(mark.name))


def _colours(values: Any, scale: Scale, *names: str) -> dict[str, Any]:
    """Return the values, their logarithm on a log scale, the scale's ends and its colours."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shown = np.log10(values) if scale.log else values
    low, high = (_position(scale, each) for each in (scale.low, scale.high))
    colours = [[n / (len(scale.colours) - 1), each] for n, each in enumerate(scale.colours)]
    return dict(zip(names, (_array(shown), low, high), strict=True)) | {"colorscale": colours}


def _key(bar: ColourBar) -> dict[str, Any]:
    ticks = bar.steps()
    places = [_position(bar.scale, each) for each in ticks]
    title = {"text": _safe(bar.label), "font": {"size": 13}}
    texts = [*map(style.plain, ticks)]
    return {"title": title, "thickness": 14, "tickvals": places, "ticktext": texts}
