"""Names, units, steps and axes with which figures and tables show a study's dataset."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from daqloom.base.words import key_in_words
from daqloom.report import style
from daqloom.report.figure import Axis, Dash, Figure, Panel, evenly, in_grid
from daqloom.results.metrics import find_declaration, label
from daqloom.scenario.schema.switches import LEVELS
from daqloom.study import StudyError
from daqloom.study.file.points import axes_of, is_numeric, operating_point, spread

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

LOG_FROM = 60
"""Ratio of largest to smallest value from which an axis is logarithmic."""


class Look(NamedTuple):
    """Label and style of a method in figures."""

    label: str
    marker: str
    dash: Dash
    colour: str


LOOKS = {
    "analyse": Look("formula", "o", "dash", style.BLACK),
    "simulate": Look("simulation", "s", "solid", style.BLUE),
    "measure": Look("measurement", "D", "dot", style.ORANGE),
}

NAMED_COLOURS = (
    style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.BLACK, style.SKY, style.AMBER,
    style.GREY,
)  # fmt: skip
MOST_TICKS = 8
ONE_PANEL = (7.2, 4.2)
"""Size of a figure of one panel (inches)."""

_KEYS = {
    "readout.units": "readout units",
    "builders.units": "builder units",
    "network.links.uplink.count": "uplinks",
    "network.switch.tor.model": "top-of-rack switch",
    "network.switch.tor.queue_packets": "queue length of a switch output (packets)",
    "network.switch.tor.pace": "pace of each ring",
    "network.switch.spine.pace": "pace of each ring",
    "network.switch.tor.buffer": "buffer of the top-of-rack switch",
    "building.outstanding_fragments": "fragments requested in parallel",
    "hosts.polling_delay": "polling delay",
    "hosts.message_cost": "cost of a message",
    "building.barrier": "barrier",
    "building.credits": "credits",
    "building.parallel_sends": "parallel sends",
    "network.switch.buffer": "input buffer",
    "network.dumps": "fabric",
    "transport.mtu": "MTU",
}

NO_LIMIT_AT_ZERO = (
    "building.outstanding_fragments",
    "event.rate",
    "hosts.local_rate",
    "hosts.memory_rate",
    "hosts.pcie_rate",
    "hosts.receive_rate",
    "hosts.send_rate",
    "measure.pacing",
    "readout.buffer",
    *(
        f"network.switch.{level}.{key}"
        for level in LEVELS
        for key in ("port_limit", "queue_packets", "pace", "memory_bandwidth")
    ),
)
"""Keys for which the value 0 means "no limit"."""
NO_LIMIT = "no limit"
BASELINE = "as it is"
"""First of the names of an axis with which the others are compared."""


def on_axis(dataset: Dataset, axis: str) -> float | None:
    """Return the operating point's position on a numeric axis; None if outside of the axis."""
    point = operating_point(dataset)
    if axis not in point or not is_numeric(dataset, axis):
        return None
    values = dataset[axis].values
    inside = values.min() <= point[axis] <= values.max()
    return point[axis] if inside else None


def has_error(dataset: Dataset, variable: str) -> bool:
    """Whether seeds differ at any point, so that error bars are needed."""
    return bool((spread(dataset[variable]).deviation > 0).any())


def _four_digits(value: float) -> str:
    """Return a number with four digits, without an exponent for large counts: `14,000`."""
    return f"{value:,.0f}" if 9999.5 <= abs(value) < 1e15 else f"{value:.4g}"


@dataclass(frozen=True)
class Quantity:
    """A variable or an axis, with the unit used in figures and tables."""

    name: str
    unit: str
    divisor: float = 1.0
    values: Any = field(default=None, compare=False)
    is_unlimited_at_zero: bool = False

    @property
    def label(self) -> str:
        """Label of an axis: `event rate (kHz)`."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @property
    def places(self) -> Any:
        """Positions of the values on the axis, shape (n,): a value without a limit is behind the
        largest limit, by the distance between steps."""
        places = np.asarray(self.values, dtype=float) / self.divisor
        free = (places == 0) & self.is_unlimited_at_zero
        limits = np.sort(places[~free])
        if not free.any() or not limits.size:
            return places
        first, last, gaps = limits[0], limits[-1], limits.size - 1
        behind = last + (last - first) / gaps if gaps else 2 * last
        if is_log_spaced(limits):
            behind = last * (last / first) ** (1 / gaps)
        return np.where(free, behind, places)

    def place_text(self, place: float) -> str:
        """Return the text of a position on the axis, such as `12` or `no limit`."""
        has_unlimited = self.is_unlimited_at_zero and 0 in np.asarray(self.values)
        return NO_LIMIT if has_unlimited and place == self.places.max() else _four_digits(place)

    def text(self, value: float) -> str:
        """Return a value with its unit: `12 kHz`."""
        return (
            f"{_four_digits(value / self.divisor)} {self.unit}".rstrip()
            if np.isfinite(value)
            else style.NOTHING
        )

    def number(self, value: float) -> str:
        """Return a value for a table, with three digits; a dash if the value is unknown."""
        if not np.isfinite(value):
            return style.NOTHING
        scaled = value / self.divisor
        if abs(scaled) >= 100 or scaled == 0 or (scaled == round(scaled) and not self.unit):
            return f"{scaled:,.0f}"
        return f"{scaled:#.3g}".rstrip(".")


def axis_quantity(dataset: Dataset, axis: str) -> Quantity:
    """Return the quantity of an axis."""
    values = dataset[axis].values
    if not is_numeric(dataset, axis):
        return Quantity(key_name(axis), "", 1.0, values)
    unit = str(dataset[axis].attrs.get("units", ""))
    most = float(np.abs(values).max(initial=0))
    divisor, unit = style.binary(unit, values) or style.prefix(unit, most)
    return Quantity(key_name(axis), unit, divisor, values, axis in NO_LIMIT_AT_ZERO)


def variable_quantity(dataset: Dataset, variable: str) -> Quantity:
    """Return the quantity of a variable, in a unit that suits its median."""
    values = np.abs(dataset[variable].values)
    known = values[np.isfinite(values) & (values > 0)]
    unit = str(dataset[variable].attrs.get("units", ""))
    divisor, unit = style.prefix(unit, float(np.median(known)) if known.size else 0.0)
    return Quantity(variable_name(dataset, variable), unit, divisor)


def is_count(dataset: Dataset, variable: str) -> bool:
    """Whether a variable counts things, such as dropped packets: its known values are integers, and
    its unit has no prefixes."""
    values = dataset[variable].values
    known = values[np.isfinite(values)]
    is_scaled = dataset[variable].attrs.get("units", "") in ("s", "B", "Hz", "bit/s", "1")
    return bool(known.size and not is_scaled and (known == np.round(known)).all())


def key_name(key: str) -> str:
    """Return a scenario key in words: `event rate` for `event.rate`."""
    return _KEYS.get(key) or key_in_words(key)


def variable_name(dataset: Dataset, variable: str) -> str:
    """Return the label of a variable: its attribute `long_name`, else the label of its metric."""
    if variable == "boundary":
        about = dataset[variable].attrs
        return f"{about.get('find', '')} {key_name(str(about.get('key', 'value')))}".strip()
    if "long_name" in dataset[variable].attrs:
        return str(dataset[variable].attrs["long_name"])
    return label(variable) if find_declaration(variable) else key_in_words(variable)


def bounds_text(dataset: Dataset) -> tuple[str, str]:
    """Return the lowest and the highest value that a search tried, as texts with unit."""
    about = dataset["boundary"].attrs
    low, high = (amount(float(each), str(about.get("units", ""))) for each in about["bounds"])
    return low, high


def amount(value: float, unit: str) -> str:
    """Return a value with its unit and prefix: `12 kHz`."""
    divisor, name = style.prefix(unit, value)
    return Quantity("", name, divisor).text(value)


def rounded_amount(value: float, unit: str) -> str:
    """Return a value with three digits, unit and prefix: `12.3 kHz`."""
    return amount(float(f"{value:.3g}"), unit)


def step_text(dataset: Dataset, axis: str, value: Any) -> str:
    """Return a step of an axis in words, such as `5 MB`, `qfx5120-48y` or `no limit`."""
    if axis in NO_LIMIT_AT_ZERO and value == 0:
        return NO_LIMIT
    return axis_quantity(dataset, axis).text(value) if is_numeric(dataset, axis) else str(value)


def place_text(dataset: Dataset, at: Mapping[str, Any]) -> str:
    """Return a point as text, `12 kHz × 5 MB × builders 4`; values without unit have a name."""
    return " × ".join(_named_step(dataset, axis, value) for axis, value in at.items())


def _named_step(dataset: Dataset, axis: str, value: Any) -> str:
    text = step_text(dataset, axis, value)
    if text == NO_LIMIT:
        return f"{key_name(axis)} without a limit"
    bare = is_numeric(dataset, axis) and not axis_quantity(dataset, axis).unit
    return f"{key_name(axis)} {text}" if bare else text


def steps_of(dataset: Dataset, axis: str | None, most: int) -> list[tuple[dict[str, int], str]]:
    """Return selection and name of at most `most` evenly spread steps of an axis; a single empty
    selection if there is no axis."""
    if axis is None:
        return [({}, "")]
    values = dataset[axis].values
    return [
        ({axis: step}, step_text(dataset, axis, values[step])) for step in evenly(len(values), most)
    ]


def hold(dataset: Dataset, axes: Sequence[str]) -> dict[str, int]:
    """Return the step of each axis that a figure keeps fixed: the first for an axis of names; else
    the step nearest to the operating point, or without a limit, or in the middle."""
    point = operating_point(dataset)
    held = {}
    for axis in axes:
        values = dataset[axis].values
        if not is_numeric(dataset, axis):
            held[axis] = 0
        elif axis in point:
            held[axis] = int(np.abs(values - point[axis]).argmin())
        else:
            free = has_unlimited(dataset, axis)
            held[axis] = values.tolist().index(0) if free else len(values) // 2
    return held


def along(dataset: Dataset, axis: str) -> tuple[Any, list[int]]:
    """Return the positions of an axis, shape (n,), in its unit, and the step at each. A step
    without a limit comes last, after a gap of NaN (step -1), so that no line leads to it."""
    if not is_numeric(dataset, axis):
        return np.arange(dataset.sizes[axis]), list(range(dataset.sizes[axis]))
    places = axis_quantity(dataset, axis).places
    if not has_unlimited(dataset, axis) or places.size < 2:
        return places, list(range(places.size))
    *limited, free = map(int, np.argsort(places))
    return np.array([*places[limited], np.nan, places[free]]), [*limited, -1, free]


def has_unlimited(dataset: Dataset, axis: str) -> bool:
    """Whether an axis has a step without a limit."""
    return axis in NO_LIMIT_AT_ZERO and is_numeric(dataset, axis) and 0 in dataset[axis].values


def ordered_steps(dataset: Dataset, axis: str) -> list[int]:
    """Return the steps of an axis in the order of `along`."""
    return [step for step in along(dataset, axis)[1] if step >= 0]


def unlimited_last(dataset: Dataset) -> Dataset:
    """Return the dataset with the step without a limit as the last one of each axis."""
    return dataset.isel({axis: ordered_steps(dataset, axis) for axis in axes_of(dataset)})


def steps_text(dataset: Dataset, at: Mapping[str, int]) -> str:
    """Return steps with names of axes, such as `event size 5 MB, pace of each ring 1 MB`."""
    return ", ".join(
        f"{key_name(axis)} {step_text(dataset, axis, dataset[axis].values[step])}"
        for axis, step in at.items()
    )


def held_caption(dataset: Dataset, held: Mapping[str, int]) -> list[str]:
    """Return a sentence on the axes that a figure keeps fixed; empty if there are none."""
    return [f"Drawn for {steps_text(dataset, held)}."] * bool(held)


def is_log_spaced(values: Any) -> bool:
    """Whether the ratios of successive steps vary less than their differences."""
    numbers = np.sort(np.asarray(values, dtype=float))
    if numbers.size < 3 or numbers[0] <= 0 or numbers[-1] / numbers[0] < 8:
        return False
    ratios, gaps = np.diff(np.log(numbers)), np.diff(numbers)
    return bool(ratios.std() / ratios.mean() < gaps.std() / gaps.mean())


def wants_log(values: Any, ratio: float = LOG_FROM) -> bool:
    """Whether the range of the finite `values` requires a logarithmic axis."""
    known = values[np.isfinite(values)]
    return bool(known.size and known.min() > 0 and known.max() / known.min() > ratio)


@dataclass(frozen=True)
class Roles:
    """Axes shown as x, as colours and as panels, and the fixed steps of further axes."""

    x: str
    colour: str | None
    panel: str | None
    held: dict[str, int]


def roles(dataset: Dataset) -> Roles:
    """Return the roles of axes: x is numeric; colours are names before numbers; then panels."""
    axes = axes_of(dataset)
    if not axes:
        raise StudyError("the study has no axis: there is nothing to draw along")
    x = next((a for a in axes if is_numeric(dataset, a) and dataset.sizes[a] > 1), axes[0])
    rest = sorted((a for a in axes if a != x), key=lambda a: is_numeric(dataset, a))
    single = [a for a in rest if dataset.sizes[a] == 1]
    rest = [a for a in rest if dataset.sizes[a] > 1]
    colour, panel = [*rest, None, None][:2]
    return Roles(x, colour, panel, hold(dataset, [*rest[2:], *single]))


def same_along(values: DataArray, method: str | None, axis: str | None) -> bool:
    """Whether all values are from a formula and do not depend on `axis`."""
    if method is not None:
        values = values.sel({"by": method})
    if str(values["by"].values) != "analyse" or axis is None:
        return False
    first = values.isel({axis: 0})
    return bool(((values == first) | (values.isnull() & first.isnull())).all())


def step_axis(quantity: Quantity, label: str | None = None) -> Axis:
    """Return an axis with ticks at the study's steps, if space permits."""
    label = quantity.label if label is None else label
    log = is_log_spaced(quantity.places)
    steps = sorted(map(float, quantity.places))
    shown = _apart(steps, math.log if log else float)
    if not log and shown != steps and quantity.place_text(steps[-1]) != NO_LIMIT:
        return Axis(label)
    return Axis(label, log=log, ticks=shown, text=quantity.place_text)


def _apart(steps: list[float], scale: Callable[[float], float]) -> list[float]:
    """Return the first and last step, and inner steps with enough space for their numbers."""
    first, inner, last = steps[0], steps[1:-1], steps[-1]
    room = (scale(last) - scale(first)) / MOST_TICKS
    kept = [first]
    for step in inner:
        if min(scale(step) - scale(kept[-1]), scale(last) - scale(step)) >= room:
            kept.append(step)
    return [*kept, last] if last > first else kept


def height_axis(label: str, values: Any, reach: Any = None) -> Axis:
    """Return an axis from zero, or a logarithmic axis for values over orders of magnitude. `reach`:
    the ends of error bars, if any."""
    known = values[np.isfinite(values)]
    if not known.size or wants_log(known):
        return Axis(label, log=bool(known.size))
    if not known.any():
        return Axis(label, (0, 1), ticks=(0, 1))
    tops = known if reach is None or not np.isfinite(reach).any() else reach
    ends = (0, 1.05 * float(np.nanmax(tops)) or 1) if known.min() >= 0 else (None, None)
    return Axis(label, ends)


def panels_for(
    panels: Sequence[Panel], columns: int = 3, wide: float = 3.1, high: float = 2.7, **more: Any
) -> Figure:
    """Return a figure of panels with equal size and shared axes."""
    count = len(panels)
    columns = 2 if count == 4 else min(count, columns)
    rows = -(-count // columns)
    size = ONE_PANEL if count == 1 else (max(wide * columns + 1.6, 6.4), high * rows + 0.5)
    return Figure(in_grid(panels, columns), size, **{"shared": "xy"} | more)


def point_text(dataset: Dataset) -> str:
    """Return the operating point in words, such as `12 kHz × 5 MB`."""
    units = {"event.rate": "Hz", "event.size": "B"}
    return " × ".join(amount(v, units[key]) for key, v in operating_point(dataset).items())


def counts_text(reasons: Mapping[str, int]) -> str:
    """Return counts in words: "2 saturated, 1 never" for `{"saturated": 2, "never": 1}`."""
    return ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()) if count)
