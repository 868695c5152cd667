"""Declaration of metrics, and formatting of their values with units."""

import functools
import operator
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from daqloom.base.words import rows_of
from daqloom.scenario.schema.parts import Parts

_BESIDE = Parts.FLOWS | Parts.DATAGRAMS | Parts.STORED
_MEASURED = Parts.BUILT | Parts.FAULTED | Parts.LAB | Parts.DEVICE | _BESIDE
TAKES = {"analyse": Parts.ANALYSED | Parts.BROKEN, "simulate": Parts.EVERY, "measure": _MEASURED}
"""Systems that each method evaluates: those with at least one of these parts."""


class Metric(NamedTuple):
    """The declaration of a metric: everything except how it is computed."""

    name: str
    """Dotted path; a last part `*` means any name. The first part ends in the unit (`_s`, `_bytes`,
    `_bps`, `_hz`), except for counts and shares."""
    unit: str
    """"1" for shares, which are shown in per cent."""
    label: str
    """Name of the metric in tables and figures."""
    given: Mapping[str, Parts]
    """For each method, the parts of systems for which the method provides the metric."""
    meaning: str

    def given_by(self, method: str) -> Parts:
        """Return the parts of systems for which `method` provides the metric."""
        return self.given.get(method, Parts.NONE)

    def givers(self) -> str:
        """Return the methods that provide the metric, such as "analyse (shift), simulate"."""
        methods = ((method, self.given_by(method)) for method in TAKES)
        return ", ".join(
            method if parts == TAKES[method] else f"{method} ({parts})"
            for method, parts in methods
            if parts
        )

    def label_of(self, path: str) -> str:
        """Return the label of a metric's path, with the name that replaces the `*` appended."""
        root = self.name.removesuffix("*")
        if root == self.name:
            return self.label
        return f"{self.label}, {path.removeprefix(root).replace('.', ' ').replace('_', ' ')}"


def declared_in(table: str) -> tuple[Metric, ...]:
    """Return the metrics declared in a text table with the columns `name | unit | label | given by
    | meaning`. `given by` lists methods. Brackets restrict a method to systems with these parts."""
    return tuple(
        Metric(name, unit, label, dict(_parts_by_method(by)), meaning)
        for name, unit, label, by, meaning in rows_of(table)
    )


def _parts_by_method(by: str) -> Iterator[tuple[str, Parts]]:
    for method, parts in re.findall(r"(\w+)(?: \((.*?)\))?", by):
        named = (Parts[part] for part in parts.split(", ")) if parts else [TAKES[method]]
        yield method, functools.reduce(operator.or_, named)


_PREFIXES = {12: "T", 9: "G", 6: "M", 3: "k", 0: "", -3: "m", -6: "u", -9: "n"}
_PREFIXED = {"B": "B", "s": "s", "Hz": "Hz", "bit/s": "b/s"}


def with_unit(value: float, unit: str) -> str:
    """Return a readable number: 47.5e6, "B" → "47.5 MB"; shares (unit "1") in per cent."""
    if unit == "1":
        percent = f"{value:.1%}"
        return percent if value == 0 or percent != "0.0%" else f"{100 * value:.2g}%"
    if unit not in _PREFIXED:
        return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
    power = next((p for p in _PREFIXES if abs(value) >= 10.0**p), 0)
    return f"{value / 10.0**power:.4g} {_PREFIXES[power]}{_PREFIXED[unit]}"
