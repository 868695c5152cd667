"""Number of links that are down at the same time, over the time of a log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from daqloom.faults.costs.network import HOST_LINK, Network
from daqloom.faults.logs.clock import DAY_S
from daqloom.faults.statistics.failure import Failure, Period, time_without

Array = NDArray[np.float64]
MOST_BLOCKS = 3660
"""Limit on the number of blocks; in longer logs, a block covers several days."""
MOST_AT_ONCE = 1000
"""Limit on the number of simultaneously broken cables that is counted exactly."""


@dataclass(frozen=True)
class Overlap:
    """Links that are down, in steps of constant state. Times are on a clock that starts with the
    log and stops during test periods; a step ends at the next change."""

    at_s: Array
    """(steps + 1,): start of each step, and the end of the log."""
    broken: NDArray[np.int64]
    """(steps,): number of cables between switches that are down."""
    cut: Array
    """(steps,): share of the units cut off by host links that are down."""
    span_s: Array
    """(failures, 2): start and end of each failure."""

    @property
    def length_s(self) -> float:
        """Length of the log outside test periods."""
        return float(self.at_s[-1])

    @property
    def block_s(self) -> float:
        """Length of a block: a day, or several days in a log of more than `MOST_BLOCKS` days."""
        return _block_s(self.length_s)

    @cached_property
    def time_s(self) -> Array:
        """(blocks, largest k + 1): time in each block with k cables down."""
        return self._by_block(np.ones_like(self.cut))

    @cached_property
    def cut_s(self) -> Array:
        """(blocks, largest k + 1): `time_s`, weighted by the share of units that are cut off."""
        return self._by_block(self.cut)

    def integral(self, weight: Array) -> Array:
        """(failures,): integral over each failure of `weight`, which has a value for each step."""
        until = np.concatenate(([0.0], np.cumsum(weight * np.diff(self.at_s))))
        begin, end = np.interp(self.span_s, self.at_s, until).T
        return np.asarray(end - begin)

    def _by_block(self, weight: Array) -> Array:
        blocks = max(1, int(np.ceil(self.length_s / self.block_s)))
        columns = np.minimum(self.broken, MOST_AT_ONCE)
        found = np.zeros((blocks, int(columns.max(initial=0)) + 1))
        rows = np.minimum((self.at_s[:-1] // self.block_s).astype(int), blocks - 1)
        np.add.at(found, (rows, columns), weight * np.diff(self.at_s))
        return found


def overlap(
    failures: Sequence[Failure], network: Network, observed: Period, tests: Sequence[Period] = ()
) -> Overlap:
    """Return the links that are down over time. Failures of one link must not overlap (see
    `merge`), nor test periods (see `union`)."""
    ends = [observed.end_s if each.end_s is None else each.end_s for each in failures]
    ends_s = np.array([[each.begin_s for each in failures], ends], dtype=float).reshape(2, -1)
    origin_s = time_without(observed.begin_s, tests)
    span_s = _running_s(np.clip(ends_s, *observed), tests).T - origin_s
    length_s = time_without(observed.end_s, tests) - origin_s
    is_cable = np.array([network.kind[each.link] != HOST_LINK for each in failures], dtype=int)
    share = np.array([network.share.get(each.link, 0.0) for each in failures], dtype=float)
    edges = np.arange(0.0, length_s, _block_s(length_s))  # a step lies within one block
    still = np.zeros(len(edges))
    at_s = np.concatenate((span_s[:, 0], span_s[:, 1], edges))
    order = np.argsort(at_s, kind="stable")
    broken = np.cumsum(np.concatenate((is_cable, -is_cable, still.astype(int)))[order])
    cut = np.cumsum(np.concatenate((share, -share, still))[order])
    at_s = np.append(at_s[order], length_s)
    lasts = np.diff(at_s) > 0
    return Overlap(
        np.append(at_s[:-1][lasts], length_s),
        broken[lasts],
        np.clip(np.where(cut < 1e-12, 0.0, cut)[lasts], 0.0, 1.0),
        span_s,
    )


def _block_s(length_s: float) -> float:
    return DAY_S * max(1, math.ceil(length_s / DAY_S / MOST_BLOCKS))


def _running_s(at_s: Array, tests: Sequence[Period]) -> Array:
    """Return times on a clock that stops during test periods, as in `time_without`."""
    if not tests:
        return at_s
    lengths_s = np.array([end_s - begin_s for begin_s, end_s in tests])
    stood_s = np.repeat(np.concatenate(([0.0], np.cumsum(lengths_s))), 2)[1:-1]
    return np.asarray(at_s - np.interp(at_s, np.array(tests).ravel(), stood_s))
