"""Renderer that draws figures with matplotlib, as PNG, PDF or SVG."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import replace
from functools import singledispatch
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from daqloom.base import lazy
from daqloom.base.output import written_whole
from daqloom.report import style
from daqloom.report.figure import (
    Area,
    Axis,
    Band,
    Bars,
    Cells,
    ColourBar,
    Figure,
    Legend,
    Line,
    Panel,
    Rule,
    Scale,
    Text,
)

with lazy.imports():
    import matplotlib as mpl
    from matplotlib import cm, colors, ticker, transforms
    from matplotlib import figure as canvases

RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": style.BLACK,
    "text.parse_math": False,
    "axes.edgecolor": style.GREY,
    "axes.labelcolor": style.BLACK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.axisbelow": True,
    "grid.color": "#ececec",
    "grid.linewidth": 0.7,
    "xtick.color": style.GREY,
    "ytick.color": style.GREY,
    "xtick.labelcolor": style.BLACK,
    "ytick.labelcolor": style.BLACK,
}
DASHES: dict[str, Any] = {
    "solid": "-",
    "dash": "--",
    "longdash": (0, (6, 4)),
    "dot": ":",
    "sparse": (0, (2, 3)),
}
MOST_PEAKS = 400
"""Limit on the steps of a curve of peaks (`is_peaks`)."""
FAINT = 0.3
"""Opacity up to which an area may lie below a legend."""
MOST_COLUMNS = 4
"""Columns of a legend that is moved to below its axes."""
BELOW = -32.0
"""Distance between the axes and a legend below, which leaves space for ticks and label (points)."""


def save(figure: Figure, path: Path, dpi: int = 130) -> None:
    """Write png, pdf or svg; equal figures give identical png and pdf files. Raises OutputError."""
    about = {"CreationDate": None} if path.suffix.lower() == ".pdf" else {}
    with written_whole(path) as scratch:
        canvas(figure).savefig(scratch, dpi=dpi, metadata=about)


def svg(figure: Figure) -> bytes:
    """Return the vectors of the figure for a page; equal figures give equal bytes."""
    stream = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "daqloom"}):
        canvas(figure).savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def canvas(figure: Figure) -> canvases.Figure:
    """Return matplotlib's figure."""
    is_placed = any(panel.place for panel in figure.panels)
    with mpl.rc_context(RC):
        drawn = canvases.Figure(figsize=figure.size, layout=None if is_placed else "constrained")
        places = _places(drawn, figure)
        for axes, panel in zip(places, figure.panels, strict=True):
            _panel(axes, panel)
        for bar in figure.bars:
            _bar(drawn, [places[number] for number in bar.panels], bar)
        title: Any = {"x": 0.01, "ha": "left", "fontsize": figure.title_size, "fontweight": "bold"}
        for write, text, look in (
            (drawn.suptitle, figure.title, title),
            (drawn.supxlabel, figure.x_label, {"fontsize": 9}),
            (drawn.supylabel, figure.y_label, {"fontsize": 9}),
        ):
            if text:
                write(text, **look)
        if figure.legend:
            shown = [_keys(figure)] if figure.keys else places
            _legend(drawn, shown, figure.legend, loc=figure.legend.where)
        _move_legends(drawn, zip(places, figure.panels, strict=True))
        return drawn


def _move_legends(drawn: canvases.Figure, places: Iterable[tuple[Any, Panel]]) -> None:
    """Move each legend that hides data to below its axes."""
    within = [
        (axes, panel, panel.legend)
        for axes, panel in places
        if panel.legend and panel.legend.where != "below" and not panel.blank and axes.get_legend()
    ]
    if within:
        drawn.draw_without_rendering()
    for axes, panel, legend in [each for each in within if _hides_data(each[0])]:
        axes.get_legend().remove()
        moved = replace(legend, where="below", columns=MOST_COLUMNS)
        _legend(axes, [axes], moved, **_legend_place(axes, panel, "below"))


def _hides_data(axes: Any) -> bool:
    """Return whether the legend of drawn axes lies on a curve, a marker, a bar or an error bar."""
    box, data = axes.get_legend().get_window_extent(), axes.transData
    # Rules across the panel have other coordinates than data.
    lines = [line for line in axes.lines if line.get_transform() == data]
    dots = [each for each in axes.collections if each.get_offset_transform() == data]
    areas = [each for each in axes.collections if each not in dots and each.get_transform() == data]
    points = [line.get_xydata() for line in lines if line.get_marker() not in ("", "None")]
    points += [each.get_offsets() for each in dots]
    paths = [line.get_path() for line in lines if line.get_linestyle() != "None"]
    for each in areas:
        if each.get_alpha() is None or each.get_alpha() > FAINT:
            paths += each.get_paths()
    bars = [bar.get_window_extent() for bar in axes.patches]
    return (
        any(_has_point(data.transform(each), box) for each in points)
        or any(data.transform_path(path).intersects_bbox(box, filled=False) for path in paths)
        or any(bar.width and bar.height and bar.overlaps(box) for bar in bars)
    )


def _has_point(points: Any, box: Any) -> bool:
    known: Any = np.ma.filled(np.ma.asarray(points, dtype=float), np.nan).reshape(-1, 2)
    x, y = known[np.isfinite(known).all(axis=1)].T
    return bool(((x >= box.x0) & (x <= box.x1) & (y >= box.y0) & (y <= box.y1)).any())


def _places(drawn: canvases.Figure, figure: Figure) -> list[Any]:
    """Return axes for each panel; of shared axes, only those at the outer edge have numbers."""
    width, height = (72 * length for length in figure.size)
    cells = [panel.cell for panel in figure.panels]
    rows = max(row + tall for row, _, tall, _ in cells)
    columns = max(column + wide for _, column, _, wide in cells)
    grid = drawn.add_gridspec(rows, columns, height_ratios=figure.heights or None)
    folders = drawn.subfigures(rows, 1, squeeze=False)[:, 0] if figure.is_by_row else ()
    places: list[Any] = []
    for number, panel in enumerate(figure.panels):
        row, column, tall, wide = panel.cell
        if panel.place:
            left, top, across, down = panel.place
            box = left / width, 1 - (top + down) / height, across / width, down / height
            places.append(drawn.add_axes(box, label=str(number)))
        elif figure.is_by_row:
            count = sum(each[0] == row for each in cells)
            places.append(folders[row].add_subplot(1, count, column + 1))
        else:
            shared = {f"share{name}": places[0] for name in figure.shared if places}
            cell = grid[row : row + tall, column : column + wide]
            places.append(drawn.add_subplot(cell, **shared))
            is_last = (row + 1, column) not in [each[:2] for each in cells]
            places[-1].tick_params(labelbottom="x" not in figure.shared or is_last)
            places[-1].tick_params(labelleft="y" not in figure.shared or not column)
    return places


def _panel(axes: Any, panel: Panel) -> None:
    axes.set(**{f"{name}scale": "log" for name in "xy" if getattr(panel, name).log})
    for place, mark in enumerate(panel.marks):
        _draw(mark, axes, 1 + place / len(panel.marks))
    if panel.title:
        title = axes.set_title(panel.title, fontsize=panel.title_size)
        title.set_x(-panel.title_left / panel.place[2] if panel.place else 0.0)
    axes.set_facecolor(panel.ground or "white")
    if not panel.frame:
        axes.spines[:].set_visible(False)
    if panel.legend:
        _legend(axes, [axes], panel.legend, **_legend_place(axes, panel, panel.legend.where))
    _axis(axes, "x", panel.x)
    _axis(axes, "y", panel.y)
    if panel.blank:
        axes.set_axis_off()


def _axis(axes: Any, name: str, axis: Axis) -> None:
    drawn = getattr(axes, f"{name}axis")
    drawn.set_label_text(axis.label, fontsize=axis.size)
    if axis.margin is not None:
        axes.margins(**{name: axis.margin})
    if axis.ends != (None, None):
        getattr(axes, f"set_{name}lim")(*axis.ends)
    if axis.ticks is not None:
        drawn.set_major_locator(ticker.FixedLocator(axis.ticks))
        drawn.set_minor_locator(ticker.NullLocator())
    elif axis.log:
        ends = sorted(getattr(axes, f"get_{name}lim")())
        drawn.set_major_locator(ticker.FixedLocator(style.round_steps(*ends, log=True)))
    elif axis.integer:
        drawn.set_major_locator(ticker.MaxNLocator(integer=True))
    if axis.names is not None:
        drawn.set_ticks(axis.ticks, axis.names)
    elif text := axis.text or (style.plain if axis.log else None):
        drawn.set_major_formatter(lambda value, _: text(value))
        drawn.set_minor_formatter(ticker.NullFormatter())
    look: dict[str, Any] = {"labelrotation": axis.turned} | ({"length": 0} if axis.bare else {})
    axes.tick_params(axis=name, **look | ({"labelsize": axis.size} if axis.size else {}))
    axes.grid(axis.grid, axis=name)


def _legend_place(axes: Any, panel: Panel, where: str) -> dict[str, Any]:
    if where != "below":
        return {"loc": where}
    down = transforms.ScaledTranslation(0, BELOW / 72, axes.figure.dpi_scale_trans)
    at, loc = ((0, 0), "upper left") if panel.place else ((0.5, 0), "upper center")
    return {"loc": loc, "bbox_to_anchor": at, "bbox_transform": axes.transAxes + down}


def _keys(figure: Figure) -> Any:
    """Return hidden axes with the marks that the legend lists (`figure.keys`)."""
    axes = canvases.Figure().add_subplot()
    for mark in figure.keys:
        _draw(mark, axes, 1)
    return axes


def _legend(owner: Any, shown: list[Any], legend: Legend, **place: Any) -> None:
    found = [axes.get_legend_handles_labels() for axes in shown]
    handles, labels = (list(chain(*parts)) for parts in zip(*found, strict=True))
    look: Any = {"ncols": legend.columns, "fontsize": legend.size, "frameon": False}
    if handles:
        owner.legend(handles, labels, borderaxespad=0.2, **look, **place)


def _bar(drawn: canvases.Figure, places: list[Any], bar: ColourBar) -> None:
    look: Any = {"location": bar.where, "shrink": bar.shrink, "aspect": bar.aspect}
    look |= {"label": bar.label, "format": lambda value, _: style.plain(value)}
    key = drawn.colorbar(cm.ScalarMappable(**_colours(bar.scale)), ax=places, **look)
    key.set_ticks(bar.steps())
    key.ax.minorticks_off()


def _colours(scale: Scale) -> dict[str, Any]:
    norm = (colors.LogNorm if scale.log else colors.Normalize)(scale.low, scale.high)
    return {"norm": norm, "cmap": colors.LinearSegmentedColormap.from_list("", list(scale.colours))}


@singledispatch
def _draw(mark: Any, axes: Any, order: float) -> None:
    raise TypeError(f"{type(mark).__name__} is not a mark of a picture")


@_draw.register
def _(mark: Line, axes: Any, order: float) -> None:
    x, y = np.asarray(mark.x), np.asarray(mark.y)
    x, y = highest(x, y) if mark.is_peaks else (x, y)
    look: dict[str, Any] = {"color": mark.colour, "alpha": mark.opacity, "zorder": order}
    look |= {"marker": mark.marker, "label": mark.name or None}
    if np.ndim(mark.size):
        axes.scatter(x, y, s=np.asarray(mark.size) ** 2, linewidths=0, **look)
        return
    look |= {"linewidth": mark.width, "markersize": mark.size, "markeredgecolor": mark.colour}
    look["linestyle"] = DASHES[mark.dash] if mark.width else ""
    look["markerfacecolor"] = "white" if mark.hollow else mark.colour
    look["markeredgewidth"] = 1.4 if mark.marker in "_|" else 1.1 if mark.hollow else 0.6
    look["drawstyle"] = f"steps-{mark.step}" if mark.step else "default"
    if mark.error is None or not np.nansum(mark.error):
        axes.plot(x, y, **look)
        return
    error = np.asarray(mark.error, dtype=float)
    look[f"{mark.error_along}err"] = np.where(error.max(axis=0) > 0, error, np.nan)
    axes.errorbar(x, y, capsize=2.5, elinewidth=1.1, **look)


def highest(x: Any, y: Any) -> tuple[Any, Any]:
    """Return a curve with the same maxima, reduced to fewer and wider bins."""
    step = -(-x.size // MOST_PEAKS) or 1
    starts = np.arange(0, x.size, step)
    return x[starts], np.maximum.reduceat(y, starts) if starts.size else y


@_draw.register
def _(mark: Area, axes: Any, order: float) -> None:
    look: Any = {"color": mark.colour, "alpha": mark.opacity, "lw": 0, "zorder": order}
    look |= {"step": mark.step or None, "label": mark.name or None}
    axes.fill_between(mark.x, mark.low, mark.high, **look)


@_draw.register
def _(mark: Bars, axes: Any, order: float) -> None:
    look: dict[str, Any] = {"color": mark.colour, "alpha": mark.opacity, "zorder": order}
    look |= {"label": mark.name or None, "linewidth": 0.8 if mark.edge and not mark.hatched else 0}
    look |= {"edgecolor": mark.edge} if mark.edge else {}
    look |= {"hatch": "////"} if mark.hatched else {}
    draw = axes.bar if mark.upright else axes.barh
    drawn = draw(mark.at, mark.length, mark.thickness, mark.base, **look)
    if any(mark.texts):
        is_inside = mark.text_at == "middle" and isinstance(mark.colour, str)
        colour = style.text_colour(str(mark.colour)) if is_inside else style.BLACK
        place: Any = {"label_type": "center"} if mark.text_at == "middle" else {"padding": 3}
        axes.bar_label(drawn, mark.texts, fontsize=mark.text_size, color=colour, zorder=3, **place)


@_draw.register
def _(mark: Band, axes: Any, order: float) -> None:
    look: dict[str, Any] = {"color": mark.colour, "alpha": mark.opacity, "lw": 0, "zorder": order}
    span = axes.axvspan if mark.upright else axes.axhspan
    span(mark.low, mark.high, label=mark.name or None, **look)


@_draw.register
def _(mark: Rule, axes: Any, order: float) -> None:
    look: Any = {"color": mark.colour, "lw": mark.width, "ls": DASHES[mark.dash]}
    line = axes.axvline if mark.upright else axes.axhline
    line(mark.at, label=mark.name or None, zorder=order, **look)
    if mark.text and mark.upright:  # above the panel
        look = {"down": "bottom", "offset": (0, 2), "shares": "y"}
        _draw(Text(mark.at, 1.0, [mark.text], mark.colour, **look), axes, 3)
    elif mark.text:
        look = {"across": "right", "down": "bottom", "offset": (-6, 4), "shares": "x"}
        _draw(Text(1.0, mark.at, [mark.text], mark.colour, 9, ground=0.75, **look), axes, 3)


@_draw.register
def _(mark: Text, axes: Any, order: float) -> None:
    look: dict[str, Any] = {"ha": mark.across, "va": mark.down, "rotation": mark.turned}
    look |= {"fontsize": mark.size, "color": mark.colour, "zorder": order + 2}
    look |= {"xytext": mark.offset, "textcoords": "offset points", "annotation_clip": False}
    look["fontweight"] = "bold" if mark.bold else "normal"
    look["xycoords"] = tuple("axes fraction" if each in mark.shares else "data" for each in "xy")
    if mark.ground:
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": mark.ground}
        look["bbox"] = ground
    for x, y, text in mark.words():
        axes.annotate(text, (x, y), **look)


@_draw.register
def _(mark: Cells, axes: Any, order: float) -> None:
    values = np.ma.masked_invalid(np.asarray(mark.values, dtype=float))
    colours = _colours(mark.scale)
    look: dict[str, Any] = {"edgecolors": "white" if mark.gap else "none", "linewidth": mark.gap}
    look["rasterized"] = values.size > 5000 or not mark.gap
    axes.pcolormesh(mark.x, mark.y, values, zorder=order, **look, **colours)
    texts = np.full(values.shape, "") if mark.texts is None else mark.texts
    for row, column in zip(*np.nonzero(texts != ""), strict=True):
        red, green, blue, _ = colours["cmap"](colours["norm"](values[row, column]))
        # Middle between the edges on the screen, also on a logarithmic axis.
        edges = axes.transData.transform([(mark.x[column + n], mark.y[row + n]) for n in (0, 1)])
        x, y = axes.transData.inverted().transform(edges.mean(axis=0))
        _draw(
            Text(x, y, [texts[row, column]], style.text_colour((red, green, blue)), 7), axes, order
        )
