"""Node orders that mend a conflicting schedule, each checked before it is proposed."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from daqloom.topology.fabric import Fabric
from daqloom.topology.routes import Paths
from daqloom.topology.schedule import DUMMY, Slots, alike, by_port, whole_pods
from daqloom.topology.shift_check import ShiftCheck, check_shift

WHOLE_PODS = "leaf after leaf, by port, dummies for whole pods"


@dataclass(frozen=True)
class Schedule:
    """A node order and what the check says of linear shift over it."""

    what: str
    slots: Slots
    check: ShiftCheck

    @property
    def hosts(self) -> int:
        """Slots that are no dummies, R."""
        return int((self.slots != DUMMY).sum())

    @property
    def dummies(self) -> int:
        """Slots of nodes that exist in the schedule only, D."""
        return len(self.slots) - self.hosts

    @property
    def rate_share(self) -> float:
        """Event rate as a share of what as many hosts reach where only their own cables bound it.

        An upper bound: a round builds R events and takes at least `round_time` transfers by the
        slowest of these cables, with a barrier after each phase; R + D where no other link takes
        longer.
        """
        return self.hosts / max(1, self.check.round_time)


def check_order(
    what: str, paths: Paths, slots: Slots, progress: Callable[[float], None] | None = None
) -> Schedule:
    """A node order, checked."""
    return Schedule(what, slots, check_shift(paths, slots, progress))


def suggest(
    fabric: Fabric, paths: Paths, given: Schedule, progress: Callable[[float], None] | None = None
) -> list[Schedule]:
    """Other schedules of the same hosts with a higher `rate_share`, best first.

    Tried are the slots by leaf and port, and the slots' own order of leaves with the same order of
    ports on each; both as they are, and with dummies so that every leaf has the same ports. If all
    conflict, dummies for the leaves that pods lack are tried too. Empty if none is better.
    """
    wiring, slots = paths.wiring, given.slots
    orders = {
        "leaf after leaf, by port": by_port(fabric, wiring, slots, dummies=False),
        "same order of ports on every leaf": alike(wiring, slots, dummies=False),
        "leaf after leaf, by port, dummies": by_port(fabric, wiring, slots, dummies=True),
        "same order of ports on every leaf, dummies": alike(wiring, slots, dummies=True),
        WHOLE_PODS: whole_pods(fabric, wiring, slots),
    }
    tried: list[Schedule] = []
    for what, order in orders.items():
        if what == WHOLE_PODS and not all(other.check.conflicting for other in tried):
            continue
        tried.append(check_order(what, paths, order, _part(progress, len(tried), len(orders))))
    better: list[Schedule] = []
    for other in tried:
        new = not any(np.array_equal(other.slots, seen.slots) for seen in better)
        if new and other.rate_share > given.rate_share:
            better.append(other)
    return sorted(better, key=lambda other: -other.rate_share)


def _part(
    progress: Callable[[float], None] | None, done: int, parts: int
) -> Callable[[float], None] | None:
    return progress and (lambda share: progress((done + share) / parts))
