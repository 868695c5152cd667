"""What a metric is, and how its values are written for people."""

from __future__ import annotations

from enum import Flag, auto
from typing import NamedTuple


class Parts(Flag):
    """What a system may be made of. A method gives a metric where the system has one of the parts
    that the metric names for it."""

    NONE = 0
    PULL = auto()
    SHIFT = auto()
    DAQPIPE = auto()
    FLOWS = auto()
    """Alone or beside a building protocol."""
    FLOWS_ALONE = auto()
    TCP = auto()
    RDMA = auto()
    ETHERNET = auto()
    INFINIBAND = auto()
    RACKS = auto()
    """A rack or a farm of them."""
    INCAST = auto()
    """Pull building over TCP in one rack as a whole, which closed forms are about."""
    PHASES = auto()
    """Linear shifting by RDMA on paths that no hash decides, likewise."""
    CREDITS = auto()
    """DAQPIPE likewise."""
    TREES = auto()
    """Ethernet of any other shape than racks."""
    WAITING_FLOWS = auto()
    """Flows alone over InfiniBand as a whole, whose ports wait for credits."""
    BUILDERS = SHIFT | DAQPIPE
    """Event builders of multi-fragment packets."""
    BUILT = PULL | BUILDERS
    ANALYSED = INCAST | PHASES | CREDITS
    EVERY = BUILT | FLOWS

    def __str__(self) -> str:
        return ", ".join(_NAMES[one] for one in _NAMES if one in self)


_NAMES = {
    Parts.PULL: "pull",
    Parts.SHIFT: "shift",
    Parts.DAQPIPE: "DAQPIPE",
    Parts.FLOWS: "flows",
    Parts.FLOWS_ALONE: "flows alone",
    Parts.TCP: "TCP",
    Parts.RDMA: "RDMA",
    Parts.ETHERNET: "Ethernet",
    Parts.INFINIBAND: "InfiniBand",
    Parts.RACKS: "racks",
    Parts.INCAST: "pull over TCP in a rack",
    Parts.PHASES: "shift by RDMA on fixed paths",
    Parts.CREDITS: "DAQPIPE by RDMA on fixed paths",
    Parts.TREES: "Ethernet outside racks",
    Parts.WAITING_FLOWS: "flows alone over InfiniBand",
}
TAKES = {"analyse": Parts.ANALYSED, "simulate": Parts.EVERY, "measure": Parts.BUILT}
"""Of which parts a system needs one for each method to take it."""


class Metric(NamedTuple):
    """The declaration of a metric: all that daqloom says of it, except how it is computed.

    `name` is a dotted path, whose last part may be `*` for any name; its first part ends in the
    unit (`_s`, `_bytes`, `_bps`, `_hz`) unless it is a count or a share. `unit` is "1" for shares,
    which are shown in per cent. `label` names the metric in tables and figures. `analyse`,
    `simulate` and `measure` name parts of systems: each method gives it where one of them is.
    """

    name: str
    unit: str
    label: str
    meaning: str
    analyse: Parts = Parts.NONE
    simulate: Parts = Parts.NONE
    measure: Parts = Parts.NONE

    def given_by(self, method: str) -> Parts:
        """Return the parts of systems with any of which `method` gives the metric."""
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
