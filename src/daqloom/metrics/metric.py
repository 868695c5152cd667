"""What a metric is, and how its values are written for people."""

from __future__ import annotations

from enum import Flag, auto
from typing import NamedTuple


class Systems(Flag):
    """Kinds of systems; a metric says for which of them a method gives it."""

    NONE = 0
    RACK = auto()
    SHIFT = auto()
    DAQPIPE = auto()
    FLOWS = auto()
    BUILDERS = SHIFT | DAQPIPE
    """Event builders on a fabric."""
    FABRIC = BUILDERS | FLOWS
    ALL = RACK | FABRIC

    @classmethod
    def of(cls, protocol: str) -> Systems:
        """Return the kind of event builders on a fabric with this `building.protocol`."""
        return cls.FLOWS if protocol == "none" else cls[protocol.upper()]

    def __str__(self) -> str:
        return ", ".join(_NAMES[one] for one in _NAMES if one in self)


_NAMES = {
    Systems.RACK: "rack",
    Systems.SHIFT: "shift",
    Systems.DAQPIPE: "DAQPIPE",
    Systems.FLOWS: "flows",
}
TAKES = {"analyse": Systems.RACK | Systems.BUILDERS, "simulate": Systems.ALL}
TAKES["measure"] = Systems.BUILDERS
"""Kinds of systems that each method takes."""


class Metric(NamedTuple):
    """The declaration of a metric: all that daqloom says of it, except how it is computed.

    `name` is a dotted path, whose last part may be `*` for any name; its first part ends in the
    unit (`_s`, `_bytes`, `_bps`, `_hz`) unless it is a count or a share. `unit` is "1" for shares,
    which are shown in per cent. `label` names the metric in tables and figures. `analyse`,
    `simulate` and `measure` are the kinds of systems for which each method gives it.
    """

    name: str
    unit: str
    label: str
    meaning: str
    analyse: Systems = Systems.NONE
    simulate: Systems = Systems.NONE
    measure: Systems = Systems.NONE

    def given_by(self, method: str) -> Systems:
        """Return the kinds of systems for which `method` gives the metric."""
        given = {"analyse": self.analyse, "simulate": self.simulate, "measure": self.measure}
        return given[method]

    def givers(self) -> str:
        """Return which methods give the metric, and for what: "analyse (shift), simulate"."""
        told = []
        for method, takes in TAKES.items():
            if given := self.given_by(method):
                told.append(method if given == takes else f"{method} ({given})")
        return ", ".join(told)

    def label_of(self, path: str) -> str:
        """Return the label of the metric under the dotted name `path`, which this one describes."""
        root = self.name.removesuffix("*")
        if root == self.name:
            return self.label
        return f"{self.label}, {path.removeprefix(root).replace('.', ' ').replace('_', ' ')}"


_PREFIXES = {12: "T", 9: "G", 6: "M", 3: "k", 0: "", -3: "m", -6: "u", -9: "n"}
_PREFIXED = {"B": "B", "s": "s", "Hz": "Hz", "bit/s": "b/s"}


def with_unit(value: float, unit: str) -> str:
    """Write a number for people: 47.5e6, "B" → "47.5 MB"; shares ("1") in per cent, counts bare."""
    if unit == "1":
        percent = f"{value:.1%}"
        return percent if value == 0 or percent != "0.0%" else f"{100 * value:.2g}%"
    if unit not in _PREFIXED:
        return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
    power = next((p for p in _PREFIXES if abs(value) >= 10.0**p), 0)
    return f"{value / 10.0**power:.4g} {_PREFIXES[power]}{_PREFIXED[unit]}"
