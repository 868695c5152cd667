"""Pins a unit's process to processor cores."""

import os
from collections.abc import Sequence

from daqloom.measure import MeasureError
from daqloom.scenario.measure import Measure, cores


def pin(given: Measure, unit: int, units: int) -> None:
    """Pin this thread, and those that it starts from now on, as `measure.cores` says.

    Memory comes from the NUMA node of the core that touches it first. Raises MeasureError for cores
    that this process may not use."""
    if given.cores:
        # By turns over hosts: those of one host count up in steps of as many.
        hosts = len(given.hosts) if given.launch == "ssh" else 1
        here = -(-(units - unit % hosts) // hosts)
        allowed = sorted(os.sched_getaffinity(0))
        wanted = allowed if given.cores == "auto" else cores(given.cores)
        if missing := [core for core in wanted if core not in allowed]:
            raise MeasureError(
                f"measure.cores = {given.cores}: unit {unit} may not use core {missing[0]} here; "
                f"it may use {', '.join(map(str, allowed[:64]))}"
            )
        os.sched_setaffinity(0, share(wanted, unit // hosts, here))


def share(wanted: Sequence[int], index: int, sharers: int) -> list[int]:
    """Return the cores of one of `sharers`: neighbours, equally many for each; one core each, in
    turn, if there are fewer cores than sharers."""
    if len(wanted) < sharers:
        return [wanted[index % len(wanted)]]
    each = len(wanted) // sharers
    return list(wanted[index * each : (index + 1) * each])
