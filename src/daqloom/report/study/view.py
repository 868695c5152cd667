"""What of a study's dataset is shown, and how it is called: shared by its figures and its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.metrics import described, label
from daqloom.report import style
from daqloom.study.points import is_numeric, spread
from daqloom.words import key_in_words

if TYPE_CHECKING:
    from xarray import Dataset

LOG_FROM = 60
"""Ratio of the largest to the least value from which on an axis is logarithmic."""

METHOD_LABELS = {"analyse": "formula", "simulate": "simulation", "measure": "measurement"}
METHOD_MARKERS = {"analyse": "o", "simulate": "s", "measure": "D"}
METHOD_DASHES: dict[str, Any] = {"analyse": "--", "simulate": "-", "measure": ":"}
METHOD_COLOURS = {"analyse": style.BLACK, "simulate": style.BLUE, "measure": style.ORANGE}

_KEYS = {
    "readout.units": "readout units",
    "builders.units": "builder units",
    "network.links.uplink.count": "uplinks",
    "network.switch.tor.model": "top-of-rack switch",
    "network.switch.tor.queue_packets": "queue length of a switch output (packets)",
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


def on_axis(dataset: Dataset, axis: str, point: Mapping[str, float]) -> float | None:
    """Where the operating point lies on a numeric axis; None where it does not."""
    if axis not in point or not is_numeric(dataset, axis):
        return None
    values = dataset[axis].values
    inside = values.min() <= point[axis] <= values.max()
    return point[axis] if inside else None


def has_error(dataset: Dataset, variable: str) -> bool:
    """Whether any point has two seeds or more that differ."""
    return bool((spread(dataset[variable]).deviation > 0).any())


@dataclass(frozen=True)
class Quantity:
    """A variable or an axis in the unit it is shown in."""

    name: str
    unit: str
    divisor: float = 1.0
    values: Any = field(default=None, compare=False)

    @property
    def label(self) -> str:
        """For an axis of a figure: `event rate (kHz)`."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def text(self, value: float) -> str:
        """A number with its unit: `12 kHz`."""
        if not np.isfinite(value):
            return "–"
        number = f"{value / self.divisor:.4g}"
        return number + ("" if not self.unit else f" {self.unit}")

    def number(self, value: float) -> str:
        """A number for a table: three digits, a dash where there is none."""
        if not np.isfinite(value):
            return "–"
        scaled = value / self.divisor
        if abs(scaled) >= 100 or scaled == 0 or (scaled == round(scaled) and not self.unit):
            return f"{scaled:,.0f}"
        return f"{scaled:#.3g}".rstrip(".")


def axis_quantity(dataset: Dataset, axis: str) -> Quantity:
    """An axis, by name and unit."""
    values = dataset[axis].values
    if not is_numeric(dataset, axis):
        return Quantity(key_name(axis), "", 1.0, values)
    unit = str(dataset[axis].attrs.get("units", ""))
    divisor, unit = style.binary(unit, values) or style.prefixed(
        unit, float(np.abs(values).max(initial=0))
    )
    return Quantity(key_name(axis), unit, divisor, values)


def variable_quantity(dataset: Dataset, variable: str) -> Quantity:
    """A variable, by name and the unit in which the middle one of its values reads well."""
    values = np.abs(dataset[variable].values)
    known = values[np.isfinite(values) & (values > 0)]
    unit = str(dataset[variable].attrs.get("units", ""))
    divisor, unit = style.prefixed(unit, float(np.median(known)) if known.size else 0.0)
    return Quantity(variable_name(dataset, variable), unit, divisor)


def method_name(method: str) -> str:
    """Return what figures call a method: `analyse` is "formula"."""
    return METHOD_LABELS.get(method, method)


def key_name(key: str) -> str:
    """A key of the scenario in words: `event.rate` → `event rate`."""
    return _KEYS.get(key) or key_in_words(key)


def variable_name(dataset: Dataset, variable: str) -> str:
    """Return the label of a variable: its attribute `long_name`, else that of its metric."""
    if variable == "boundary":
        about = dataset[variable].attrs
        return f"{about.get('find', '')} {key_name(str(about.get('key', 'value')))}".strip()
    if "long_name" in dataset[variable].attrs:
        return str(dataset[variable].attrs["long_name"])
    return label(variable) if described(variable) else key_in_words(variable)


def bounds_text(dataset: Dataset) -> tuple[str, str]:
    """The lowest and the highest value that a search tried, each with its unit."""
    about = dataset["boundary"].attrs
    low, high = (
        Quantity("", name, divisor).text(float(value))
        for value in about["bounds"]
        for divisor, name in (style.prefixed(str(about.get("units", "")), float(value)),)
    )
    return low, high


def step_text(dataset: Dataset, axis: str, value: Any) -> str:
    """One step of an axis: `5 MB`, `qfx5120-48y`."""
    return axis_quantity(dataset, axis).text(value) if is_numeric(dataset, axis) else str(value)


def place_text(dataset: Dataset, at: Mapping[str, Any]) -> str:
    """`12 kHz × 5 MB × builders 4`: numbers without a unit are named."""
    return " × ".join(_named_step(dataset, axis, value) for axis, value in at.items())


def _named_step(dataset: Dataset, axis: str, value: Any) -> str:
    text = step_text(dataset, axis, value)
    bare = is_numeric(dataset, axis) and not axis_quantity(dataset, axis).unit
    return f"{key_name(axis)} {text}" if bare else text


def chosen(count: int, most: int) -> list[int]:
    """At most `most` of `count` steps, evenly spread, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})


def hold(dataset: Dataset, axes: Sequence[str], point: Mapping[str, float]) -> dict[str, int]:
    """For axes that a figure has no room for: the step nearest to the operating point, or the
    middle one; the first of names."""
    held = {}
    for axis in axes:
        values = dataset[axis].values
        if not is_numeric(dataset, axis):
            held[axis] = 0
        elif axis in point:
            held[axis] = int(np.abs(values - point[axis]).argmin())
        else:
            held[axis] = len(values) // 2
    return held


def held_text(dataset: Dataset, held: Mapping[str, int]) -> str:
    """`event size 5 MB, top-of-rack switch qfx5120-48y`."""
    return ", ".join(
        f"{key_name(axis)} {step_text(dataset, axis, dataset[axis].values[step])}"
        for axis, step in held.items()
    )


def is_log_spaced(values: Any) -> bool:
    """Whether steps are spread over ratios rather than differences."""
    numbers = np.sort(np.asarray(values, dtype=float))
    if numbers.size < 3 or numbers[0] <= 0 or numbers[-1] / numbers[0] < 8:
        return False
    ratios, gaps = np.diff(np.log(numbers)), np.diff(numbers)
    return bool(ratios.std() / ratios.mean() < gaps.std() / gaps.mean())


def wants_log(values: Any, ratio: float = LOG_FROM) -> bool:
    """Whether the known `values` span so much that a logarithmic axis shows more of them."""
    known = values[np.isfinite(values)]
    return bool(known.size and known.min() > 0 and known.max() / known.min() > ratio)
