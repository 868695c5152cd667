"""Events that a run's file sinks could not write, and files that they left unfinished."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from daqloom.metrics import with_unit

if TYPE_CHECKING:
    from daqloom.measure.result import Counters
    from daqloom.scenario.models import Scenario

NOT_WRITTEN = "meps_not_written"
INCOMPLETE_NOT_WRITTEN = "incomplete_meps_not_written"
CAUSE = "not_written."
"""Prefix of counters of packets not written, by errno, such as ENOSPC."""
MOST_NAMED = 4


def causes(counters: Counters) -> str:
    """Return the causes, such as "No space left on device"."""
    names = [
        name.removeprefix(CAUSE)
        for name, packets in counters.items()
        if name.startswith(CAUSE) and packets
    ]
    told = (os.strerror(getattr(errno, name)) if hasattr(errno, name) else name for name in names)
    return " and ".join(dict.fromkeys(told)) or "unknown cause"


def lost_events(totals: Mapping[int, Counters], packing: int) -> Iterator[str]:
    """Return a sentence if sinks could not write everything, from the counters of each unit."""
    units = {unit: each for unit, each in totals.items() if each.get(NOT_WRITTEN)}
    if units:
        count = int(sum(each[NOT_WRITTEN] for each in units.values())) * packing
        numbers = ", ".join(map(str, sorted(units)))
        why = " and ".join(dict.fromkeys(causes(each) for each in units.values()))
        yield (
            f"{count:,} events were built, but not written or written without some sources, by "
            f"{'unit' if len(units) == 1 else 'units'} {numbers}: {why}"
        )


def unfinished_files(scenario: Scenario) -> Iterator[str]:
    """Return a sentence if the folder of the recording has files that no unit will finish."""
    from daqloom.data import unfinished

    folder = scenario.measure.sink_files
    if scenario.measure.sink != "file":
        return
    try:
        left = [each for each in unfinished(folder) if not each.in_use]
    except OSError:  # units on other machines wrote it there
        return
    if left:
        names = ", ".join(os.path.basename(each.file) for each in left[:MOST_NAMED])
        more = ", …" if len(left) > MOST_NAMED else ""
        size = with_unit(sum(each.nbytes for each in left), "B")
        yield (
            f"{len(left)} unfinished {'file' if len(left) == 1 else 'files'} in {folder}, {size}: "
            f"{names}{more}; `daqloom data recover {folder}` finishes or deletes files that killed "
            "units left"
        )
