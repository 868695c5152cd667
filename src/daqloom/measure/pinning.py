"""Which processor cores a unit's process may use."""

from __future__ import annotations

import os
from collections.abc import Sequence

from daqloom.measure.errors import MeasureError
from daqloom.scenario.measure import Measure, cores


def pin(given: Measure, unit: int, units: int) -> None:
    """Restricts this thread, and all that it starts from now on, as `measure.cores` says; memory is
    taken from the NUMA node of whoever touches it first. Raises MeasureError for cores that this
    process cannot have."""
    if given.cores:
        # By turns over hosts: those of one host count up in steps of as many.
        hosts = len(given.hosts) if given.launch == "ssh" else 1
        here = -(-(units - unit % hosts) // hosts)
        allowed = sorted(os.sched_getaffinity(0))
        wanted = allowed if given.cores == "auto" else cores(given.cores)
        if missing := [core for core in wanted if core not in allowed]:
            raise MeasureError(
                f"measure.cores = {given.cores}: core {missing[0]} is not one that unit {unit} may "
                f"use here; it may use {', '.join(map(str, allowed[:64]))}"
            )
        os.sched_setaffinity(0, share(wanted, unit // hosts, here))


def share(wanted: Sequence[int], index: int, sharers: int) -> list[int]:
    """The cores of one of `sharers`: neighbours, as many as for the others; one each, by turns, if
    there are fewer cores than sharers."""
    if len(wanted) < sharers:
        return [wanted[index % len(wanted)]]
    each = len(wanted) // sharers
    return list(wanted[index * each : (index + 1) * each])
