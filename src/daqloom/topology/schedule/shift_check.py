"""Schedule check: the number of flows that share a link in each phase of linear shift.

In phase n of N, slot i sends to slot (i + n) mod N; in phase 0 a node sends to itself and uses no
link. A phase has no conflict if no link carries two flows. In a folded Clos, the nodes of a leaf
then use different links to the spines, and no spine sends two flows to a leaf by one link (the
conditions of the LHCb event builder).

The time of a phase also depends on the rates of cables. All transfers have one size, and the unit
of time is one transfer over the slowest host cable in the schedule.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daqloom.topology.fabric.wiring import NONE, Wiring
from daqloom.topology.routing.routes import Paths
from daqloom.topology.schedule.slots import Slots, hosts_of

Phases = tuple[NDArray[np.int32], NDArray[np.int32]]
"""Arrays (phases, flows) of senders and of receivers; negative: no flow."""

COUNTERS = 1 << 22
"""Limit on (phase, link) pairs whose flows are counted in one step: about 30 MB."""


@dataclass(frozen=True)
class ShiftCheck:
    """Numbers of flows on each directed link in the phases of a schedule."""

    worst: NDArray[np.int32]
    """(phases,): the most flows on one link."""
    worst_link: NDArray[np.int32]
    """(phases,): the first link with the most flows; `NONE` in a phase without flows."""
    histogram: NDArray[np.int64]
    """(worst flows + 1,): number of (phase, link) with 0, 1, 2 … flows, only links ever used."""
    transfers: NDArray[np.float64]
    """(phases,): largest flows / rate of a link, in transfers by the slowest host's cable."""
    slowest_link: NDArray[np.int32]
    """(phases,): the link with the value in `transfers`; `NONE` in a phase without flows."""
    link_worst: NDArray[np.int32]
    """(links,): the largest number of flows on a link in any phase."""
    link_conflicts: NDArray[np.int32]
    """(links,): number of phases in which a link carries more than one flow."""
    lost: int
    """Number of flows without a path; no other count includes them."""

    @property
    def phases(self) -> int:
        """Phases, phase 0 included."""
        return len(self.worst)

    @property
    def conflicting(self) -> int:
        """Number of phases in which some link carries more than one flow."""
        return int((self.worst > 1).sum())

    @property
    def worst_flows(self) -> int:
        """The most flows on one link in any phase."""
        return int(self.worst.max(initial=0))

    @property
    def worst_phase(self) -> int:
        """The first phase with `worst_flows`."""
        return int(self.worst.argmax())

    @property
    def round_time(self) -> float:
        """Least time of a round with a barrier after each phase, in the unit of `transfers`: the
        sum of the slowest links' times, where a phase without flows, such as 0, counts as one."""
        return float(np.maximum(self.transfers, 1).sum())

    @property
    def slowest_phase(self) -> int:
        """The first phase that takes longest."""
        return int(self.transfers.argmax())

    @property
    def links_unused(self) -> int:
        """Number of links that carry no flow in any phase."""
        return int((self.link_worst == 0).sum())


def check_shift(
    paths: Paths,
    slots: Slots,
    progress: Callable[[float], None] | None = None,
    builders: Slots | None = None,
) -> ShiftCheck:
    """Check linear shift over the slots, with as many phases as slots. `progress`: called with the
    share done. `builders`: the slots of receivers if they differ from `slots`."""
    at_once = max(1, COUNTERS // max(len(slots), paths.wiring.links, 1))
    receivers = slots if builders is None else builders
    return check(paths, hosts_of(slots), _shift(slots, receivers, at_once, progress))


def check(paths: Paths, hosts: list[int], batches: Iterable[Phases]) -> ShiftCheck:
    """Check any phases of some hosts; each batch may hold any number of phases."""
    links = paths.wiring.links
    time = _times(paths.wiring, hosts)
    none = _most(np.zeros((0, links), np.int32))
    found = [(*none, *none)]
    histogram = np.zeros(1, np.int64)
    link_worst, link_conflicts = np.zeros(links, np.int32), np.zeros(links, np.int32)
    lost = 0
    for senders, receivers in batches:
        flows = _flows(paths, senders, receivers)
        found.append((*_most(flows), *_most(flows * time)))
        counts = np.bincount(flows.reshape(-1), minlength=len(histogram))
        counts[: len(histogram)] += histogram
        histogram = counts
        link_worst = np.maximum(link_worst, flows.max(axis=0, initial=0))
        link_conflicts += (flows > 1).sum(axis=0, dtype=np.int32)
        lost += int(paths.are_broken(senders, receivers).sum())
    columns = map(np.concatenate, zip(*found, strict=True))
    worst, worst_link, transfers, slowest_link = columns
    histogram[0] -= len(worst) * int((link_worst == 0).sum())
    return ShiftCheck(
        worst.astype(np.int32),
        worst_link,
        histogram,
        transfers.astype(np.float64),
        slowest_link,
        link_worst,
        link_conflicts,
        lost,
    )


def _most(loads: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return (phases,): the largest load of a link, and the first such link, or `NONE`."""
    most = loads.max(axis=1, initial=0)
    link = loads.argmax(axis=1) if loads.shape[1] else NONE
    return most, np.where(most > 0, link, NONE).astype(np.int32)


def _times(wiring: Wiring, hosts: list[int]) -> NDArray[np.float64]:
    """(links,): time of a single flow on a link, in transfers by the slowest host's cable."""
    cables = wiring.uplink[hosts]
    slowest_bps = wiring.rate_bps[cables[cables != NONE]].min(initial=np.iinfo(np.int64).max)
    return np.asarray(slowest_bps / wiring.rate_bps, np.float64)


def _shift(
    slots: Slots, builders: Slots, at_once: int, progress: Callable[[float], None] | None
) -> Iterator[Phases]:
    count = len(slots)
    for first in range(0, count, at_once):
        phase = np.arange(first, min(first + at_once, count))[:, None]
        receivers = builders[(np.arange(count)[None, :] + phase) % count]
        yield np.broadcast_to(slots, receivers.shape), receivers
        if progress:
            progress((first + len(phase)) / count)


def _flows(paths: Paths, senders: NDArray[np.int32], receivers: NDArray[np.int32]) -> Slots:
    """Return (phases, links): the number of flows on each link."""
    phases, links = len(senders), paths.wiring.links
    used = paths.links(senders, receivers)
    counter = used + np.arange(phases)[None, :, None] * links
    flows = np.bincount(counter[used != NONE], minlength=phases * links)
    return flows.reshape(phases, links).astype(np.int32)
