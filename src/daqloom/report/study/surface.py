"""Fitted surfaces of a study over event rate and size: sentences, figure and table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.figure import Axis, Figure, Legend, Line, Mark, Panel, dots, evenly, in_grid
from daqloom.report.page import Section
from daqloom.report.study import view
from daqloom.study import StudyError
from daqloom.study.conclusions.fits import Fit, Prediction, fits, fitted_axes
from daqloom.study.file.points import ABOVE, EVENT_KEYS, axes_of, operating_point

if TYPE_CHECKING:
    from xarray import Dataset

MOST_LINES = 5
MOST_ANSWERS = 4
"""Limit on the methods whose answers are joined to one sentence list."""
FINE = 60
"""Number of points at which a fitted line is computed."""


def section(dataset: Dataset, variable: str | None = None) -> Section | None:
    """Return the section on the surface; None if the study has none over event rate and size."""
    if fitted_axes(dataset) != EVENT_KEYS:
        return None
    try:
        found = fits(dataset, variable)
    except StudyError:
        return None
    point = operating_point(dataset)
    text = sentences(dataset, found, point)
    answers = sum(_covers(fit, point) for fit in found)
    if 1 < answers <= MOST_ANSWERS:
        text = [" ".join(text[:answers]), *text[answers:]]
    head, rows = table(dataset, found, [point])
    picture = figure(dataset, _shown(dataset, found), point)
    more: dict[str, Any] = {"head": head, "rows": rows, "name": "surface"}
    is_answer = any(fit.predict(point).extrapolated for fit in found if _covers(fit, point))
    return Section("Surface", text, is_answer, picture, **more)


def _shown(dataset: Dataset, found: list[Fit]) -> list[Fit]:
    """Return the fits at the fixed steps of further axes that the figure shows."""
    others = [axis for axis in axes_of(dataset) if axis not in found[0].axes]
    steps = {a: dataset[a].values[step].item() for a, step in view.hold(dataset, others).items()}
    return [fit for fit in found if fit.held == steps] or found[:1]


def sentences(
    dataset: Dataset, fits: Sequence[Fit], point: Mapping[str, float], below: float | None = None
) -> list[str]:
    """Return sentences: the value of each surface at `point`, and points and terms of the fits."""
    quantity = view.variable_quantity(dataset, fits[0].variable)
    at_point = [fit.predict(point) for fit in fits if _covers(fit, point)]
    covering = [fit for fit in fits if _covers(fit, point)]
    text = [_answer(dataset, fit, at, quantity) for fit, at in zip(covering, at_point, strict=True)]
    kinds = " and ".join(dict.fromkeys(" + ".join(_names(fit)) for fit in fits))
    text.append(f"Least squares over {kinds}; intervals (95 %) are those of a new point.")
    if any(at.extrapolated for at in at_point):
        text.append(
            "Extrapolation relies on the shape of the surface; its interval includes only the "
            "scatter of the points about it."
        )
    if below is not None:
        text.append(f"Only points of at most {quantity.text(below)} are fitted.")
    if drifting := sum(fit.drifting for fit in fits):
        text.append(f"The runs of {drifting} fitted points were not stationary at their end.")
    return text


def _covers(fit: Fit, point: Mapping[str, float]) -> bool:
    return set(fit.axes) <= set(point)


def _answer(dataset: Dataset, fit: Fit, at: Prediction, quantity: view.Quantity) -> str:
    reach = " by extrapolation" if at.extrapolated else ""
    known = ""
    if at.known is not None:
        known = f"; the {view.LOOKS[fit.method].label} itself gives {quantity.text(at.known)} there"
        known += "" if at.low <= at.known <= at.high else ", outside of that interval"
    where = view.place_text(dataset, at.at)
    return (
        f"At {where} the surface through the {label(dataset, fit)} gives "
        f"{spread_text(quantity, at)}{reach}{known} (R² {r_squared(fit)})."
    )


def label(dataset: Dataset, fit: Fit) -> str:
    """Return the label of a fit: `simulation`, followed by the steps of further axes."""
    held = [view.place_text(dataset, {axis: value}) for axis, value in fit.held.items()]
    return ", ".join([view.LOOKS[fit.method].label, *held])


def spread_text(quantity: view.Quantity, at: Prediction) -> str:
    """Return a prediction with its interval, such as `79.7 MB (64.4 to 95.1 MB)`."""
    value, low, high = (quantity.number(number) for number in (at.value, at.low, at.high))
    return f"{value} {quantity.unit} ({low} to {high} {quantity.unit})".replace("  ", " ")


def r_squared(fit: Fit) -> str:
    """Return R² with enough digits to show its difference from 1."""
    lacking = 1 - fit.surface.r_squared
    digits = 2 if lacking <= 0 else int(min(6, max(2, np.ceil(-np.log10(lacking)) + 1)))
    return f"{fit.surface.r_squared:.{digits}f}"


def _names(fit: Fit) -> list[str]:
    """Return the terms of the fit in words: `1`, `event rate`, `event size²`."""
    words = [view.key_name(axis) for axis in fit.axes]
    signs = {1: "", 2: "²", 3: "³"}
    named = []
    for powers in fit.surface.terms:
        factors = zip(words, powers, strict=True)
        parts = [word + signs.get(power, f"^{power}") for word, power in factors if power]
        named.append("·".join(parts) or "1")
    return named


def polynomial(dataset: Dataset, fit: Fit) -> str:
    """Return a surface as a formula in the figure's units: `0.31 ± 0.02 + (1.2 ± 0.1)·x + …`."""
    z = view.variable_quantity(dataset, fit.variable)
    x, y = (view.axis_quantity(dataset, axis) for axis in fit.axes)
    parts = []
    for (in_x, in_y), (name, (value, error)) in zip(
        fit.surface.terms, fit.surface.coefficients.items(), strict=True
    ):
        unit = x.divisor**in_x * y.divisor**in_y / z.divisor
        sign = name.replace("**2", "²").replace("**3", "³").replace("*", "·")
        number = f"({value * unit:.3g} ± {error * unit:.2g})"
        parts.append(number if name == "1" else f"{number}·{sign}")
    return " + ".join(parts)


def variables(dataset: Dataset, fit: Fit) -> str:
    """Return what x and y mean, such as `x: event rate (kHz), y: event size (MB), in MB`."""
    x, y = (view.axis_quantity(dataset, axis) for axis in fit.axes)
    z = view.variable_quantity(dataset, fit.variable)
    return f"x: {x.label}, y: {y.label}" + (f", in {z.unit}" if z.unit else "")


def table(
    dataset: Dataset, fits: Sequence[Fit], places: Sequence[Mapping[str, float]]
) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of a table: the quality of each fit, and its values at `places`."""
    quantity = view.variable_quantity(dataset, fits[0].variable)
    unit = f" ({quantity.unit})" if quantity.unit else ""
    axes = fits[0].axes
    rate, size = map(view.key_name, axes)
    at = [place for place in places if _covers(fits[0], place)]
    texts = [view.place_text(dataset, {axis: place[axis] for axis in axes}) for place in at]
    names = [
        "fit to",
        "points",
        "left out",
        "R²",
        f"scatter{unit}",
        f"leaving out a point{unit}",
        f"leaving out a step of {rate}{unit}",
        f"leaving out a step of {size}{unit}",
        *(f"at {text}{unit}" for text in texts),
    ]
    return names, [_row(dataset, fit, quantity, at) for fit in fits]


def _row(
    dataset: Dataset, fit: Fit, quantity: view.Quantity, places: Sequence[Mapping[str, float]]
) -> list[str]:
    predicted = [fit.predict(place) for place in places]
    left = [fit.leave_one_out, fit.leave_step_out(0), fit.leave_step_out(1)]
    return [
        label(dataset, fit),
        str(fit.z.size),
        view.counts_text(fit.left_out) or style.NOTHING,
        r_squared(fit),
        quantity.number(fit.surface.residual_sd),
        *(style.NOTHING if value is None else quantity.number(value) for value in left),
        *(
            f"{quantity.number(at.value)} ({quantity.number(at.low)} to {quantity.number(at.high)})"
            + (", extrapolated" if at.extrapolated else "")
            for at in predicted
        ),
    ]


def figure(dataset: Dataset, fits: Sequence[Fit], point: Mapping[str, float]) -> Figure:
    """Return a panel for each method: points and surface along the first axis for each step of the
    second, dashed if extrapolated. A diamond is the surface at `point`, with its interval."""
    shown = next((fit for fit in fits if fit.variable == "boundary"), fits[0])
    quantity = view.variable_quantity(dataset, shown.variable)
    reach = [fit.z for fit in fits] + [fit.table.ravel() for fit in fits]
    reach += [np.array([fit.predict(point).high]) for fit in fits if _covers(fit, point)]
    highest = [float(np.nanmax(fit.table)) for fit in fits]
    highest += [fit.predict(point).value for fit in fits if _covers(fit, point)]
    top = min(1.05 * float(np.nanmax(np.concatenate(reach))), 1.2 * max(highest))
    y = Axis(ends=(0, top / quantity.divisor))  # limited, as extrapolation may diverge
    panels = [
        Panel(list(_marks(dataset, fit, point)), Axis(), y, label(dataset, fit).capitalize())
        for fit in fits
    ]
    panels[0] = replace(panels[0], y=replace(y, label=quantity.label))
    return Figure(
        in_grid(panels, len(panels)),
        (max(3.7 * len(fits) + 1.7, 5.6), 4.2),
        x_label=view.axis_quantity(dataset, fits[0].axes[0]).label,
        legend=Legend("outside right upper"),
        keys=[mark for mark in panels[0].marks if isinstance(mark, Line) and mark.name],
        shared="xy",
    )


def _marks(dataset: Dataset, fit: Fit, point: Mapping[str, float]) -> Iterator[Mark]:
    x, y = (view.axis_quantity(dataset, axis) for axis in fit.axes)
    z = view.variable_quantity(dataset, fit.variable).divisor
    at_point = fit.axes[1] in point and np.isclose(fit.steps[1], point[fit.axes[1]])
    own = np.flatnonzero(at_point).tolist()
    steps = sorted({*evenly(len(fit.steps[1]), MOST_LINES), *own}, reverse=True)
    colours = style.sequence(len(fit.steps[1]))
    ends = [float(fit.steps[0].min()), float(fit.steps[0].max())]
    if fit.axes[0] in point:
        ends = [min(ends[0], point[fit.axes[0]]), max(ends[1], point[fit.axes[0]])]
    fine = np.linspace(ends[0], ends[1], FINE)
    marker = view.LOOKS[fit.method].marker
    for step in steps:
        size, colour = fit.steps[1][step], colours[step]
        outside = fit.surface.extrapolates(fine, size)
        value = fit.surface.value(fine, size) / z
        text = view.step_text(dataset, fit.axes[1], y.values[step])
        name = f"{view.key_name(fit.axes[1])} {text}"
        for dash, shown in (("solid", ~outside), ("dash", outside)):
            curve = np.where(shown, value, np.nan)
            yield Line(fine / x.divisor, curve, "", colour, 1.3, dash)  # type: ignore[arg-type]
        look: dict[str, Any] = {"marker": marker, "size": 4, "colour": colour}
        fitted = fit.y == size
        yield dots(fit.x[fitted] / x.divisor, fit.z[fitted] / z, name, **look)
        beyond = np.isfinite(fit.table[:, step]) & ~np.isin(fit.steps[0], fit.x[fitted])
        rest = fit.steps[0][beyond] / x.divisor, fit.table[beyond, step] / z
        yield dots(*rest, hollow=True, **look)
    yield Line([], [], "surface", style.GREY, 1.3)
    yield Line([], [], "extrapolated", style.GREY, 1.3, "dash")
    if fit.left_out.get(ABOVE):
        yield dots([], [], "not fitted", size=4, colour=style.GREY, hollow=True)
    if _covers(fit, point):
        at = fit.predict(point)
        yield dots(
            [at.at[fit.axes[0]] / x.divisor],
            [at.value / z],
            "surface at\n" + view.place_text(dataset, at.at),
            marker="D",
            size=6,
            colour=style.ORANGE,
            error=[[(at.value - at.low) / z], [(at.high - at.value) / z]],
        )
