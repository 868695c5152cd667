"""How many files the processes of a run open, and the limit of it.

Sockets, shared memory and doorbells (eventfd) count as files. The numbers are those of
/proc/PID/fd while `daqloom measure laptop` runs, regroupings included, rounded up: a unit had
16 + 7 for each unit + 6 for each stream over shared memory, 19 + 2 + 6 over tcp and 35 + 2 + 6 over
libfabric:tcp, the run control 14 + 3 for each unit.
"""

import math
import resource

from daqloom.results.errors import MeasureError

FILES_OF_STRANGERS = 32
"""Connections to the run control besides those from units."""
AMPLE = 65_536
"""The limit that a process sets itself where it may, to have room for unknown clients."""


def files_of_a_control(units: int) -> int:
    """Return how many files the run control opens, units as its children included."""
    return 16 + 4 * units + FILES_OF_STRANGERS


def check_open_files(wanted: int, who: str) -> None:
    """Raise the limit of this process, which its children inherit, as far as allowed. Raises
    MeasureError if that is less than `wanted`."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (math.inf if limit == resource.RLIM_INFINITY else limit for limit in limits)
    if hard < wanted:
        raise MeasureError(
            f"{who} needs {wanted} open files, and the limit is {hard}; {raise_to(wanted)}"
        )
    if soft < (ample := min(hard, max(wanted, AMPLE))):
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(ample), limits[1]))


def raise_to(wanted: int) -> str:
    """Return how to raise the limit, as a clause."""
    return (
        f"put `* - nofile {max(4096, wanted)}` into /etc/security/limits.d/daqloom.conf and log in "
        "anew, or use fewer units"
    )
