"""Table of a study's results: a row for each point, with the methods side by side."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report.study import view
from daqloom.report.style import NOTHING
from daqloom.study.file import points, search_bounds
from daqloom.study.run.dataset import COST

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

BESIDE = (
    "boundary_shared",
    "event_rate_hz",
    "incast_margin_bytes",
    "drop_fraction",
    "retransmission_timeouts",
    "collection_latency_s.p99",
    "node_throughput_bps",
    "barrier_share",
    "phase_s",
    "xmit_wait_s.credits",
)
"""Metrics of runs that the table shows in addition to the chosen metric."""


@dataclass(frozen=True)
class _Column:
    head: str
    quantity: view.Quantity
    mean: Any
    error: Any
    """Mean and standard deviation, as arrays over the steps of the axes."""
    words: Any = None
    """Texts for searches without a boundary."""
    drifting: Any = None

    def cell(self, index: tuple[int, ...]) -> str:
        words = "" if self.words is None else str(self.words[index])
        text = self._number(index)
        if words:
            text = words if text == NOTHING else f"{text} ({words})"
        return text + " †" * (self.drifting is not None and bool(self.drifting[index]))

    def _number(self, index: tuple[int, ...]) -> str:
        mean, error = float(self.mean[index]), float(self.error[index])
        if not error > 0:
            return self.quantity.number(mean)
        mean, error = mean / self.quantity.divisor, error / self.quantity.divisor
        decimals = min(6, max(0, 1 - math.floor(math.log10(error))))  # two digits of the error
        return f"{mean:,.{decimals}f} ± {error:,.{decimals}f}"


def head(dataset: Dataset, variable: str | None = None) -> list[str]:
    """Return the names of the columns, with units."""
    axes = points.axes_of(dataset)
    names = [view.key_name(axis) for axis in axes]
    if switches := _switches(dataset):
        names.insert(axes.index(switches) + 1, "cost")
    names += [column.head for column in _columns(dataset, variable)]
    return [*names, *(["simulation ÷ formula"] if _ratio(dataset, variable) is not None else [])]


def rows(dataset: Dataset, variable: str | None = None) -> Iterator[list[str]]:
    """Yield a row for each point with a result: means over seeds ± their standard deviation. An
    asterisk marks saturated points, a dagger values of drifting runs; a search without a boundary
    is a text."""
    axes = points.axes_of(dataset)
    columns = _columns(dataset, variable)
    full = points.saturation_flags(dataset).values
    ratio = _ratio(dataset, variable)
    switches = _switches(dataset)
    sizes: Sequence[int] = [dataset.sizes[axis] for axis in axes]
    for index in itertools.product(*map(range, sizes)):
        at = dict(zip(axes, index, strict=True))
        cells = [column.cell(index) for column in columns]
        if all(cell == NOTHING for cell in cells):
            continue
        names = [view.step_text(dataset, axis, dataset[axis].values[at[axis]]) for axis in axes]
        if switches:
            cost = float(dataset[COST].values[at[switches]])
            names.insert(axes.index(switches) + 1, NOTHING if math.isnan(cost) else f"{cost:g}")
        if bool(full[index]):
            cells[0] += " *"
        compared = [] if ratio is None else [_plain(float(ratio[index]))]
        yield [*names, *cells, *compared]


def _switches(dataset: Dataset) -> str | None:
    """Return the axis along which the top-of-rack switch varies, with a cost at each step."""
    return str(dataset[COST].dims[0]) if COST in dataset.coords else None


def _columns(dataset: Dataset, variable: str | None) -> list[_Column]:
    shown = points.shown_variables(dataset, variable)
    columns = []
    for name in dict.fromkeys((*shown, *BESIDE)):
        if name not in dataset:
            continue
        quantity, values = view.variable_quantity(dataset, name), dataset[name]
        if name == "boundary":
            values = values.where(dataset["boundary_status"] == "found")
        found = points.spread(values)
        methods = points.methods_of(dataset, name)
        for method in methods:
            label = f", {view.LOOKS[method].label}" if name in shown or len(methods) > 1 else ""
            unit = f" ({quantity.unit})" if quantity.unit else ""
            mean, error = (each.sel({"by": method}) for each in (found.mean, found.deviation))
            columns.append(
                _Column(
                    f"{quantity.name}{label}{unit}",
                    quantity,
                    _table(dataset, mean),
                    _table(dataset, error),
                    unbounded_words(dataset, method) if name == "boundary" else None,
                    points.drifting(dataset, method).values if name in shown else None,
                )
            )
    return columns


def unbounded_words(dataset: Dataset, method: str) -> Any:
    """Return a text for each point where some search found no boundary; empty for others."""
    status = dataset["boundary_status"].sel({"by": method})
    table = status.transpose(*points.axes_of(dataset), "seed").values
    find, bounds = dataset["boundary"].attrs["find"], view.bounds_text(dataset)
    words = np.empty(table.shape[:-1], dtype=object)
    for index in np.ndindex(*words.shape):
        known = [str(each) for each in table[index] if each]
        ended = Counter(each for each in known if each != "found")
        words[index] = ", ".join(
            search_bounds.word(each, find, *bounds)
            + (f" for {count} of {len(known)} seeds" if count < len(known) else "")
            for each, count in sorted(ended.items())
        )
    return words


def _ratio(dataset: Dataset, variable: str | None) -> Any:
    """Return the ratio simulation / formula at every point; None unless both have the variable."""
    variable = points.shown_variable(dataset, variable)
    if not {"analyse", "simulate"} <= set(points.methods_of(dataset, variable)):
        return None
    mean = points.spread(dataset[variable]).mean
    formula = mean.sel({"by": "analyse"}, drop=True)
    run = mean.sel({"by": "simulate"}, drop=True)
    return _table(dataset, run / formula.where(formula != 0))


def _table(dataset: Dataset, values: DataArray) -> Any:
    return values.transpose(*points.axes_of(dataset)).values


def _plain(value: float) -> str:
    return f"{value:#.3g}" if np.isfinite(value) else NOTHING
