"""Open files of the processes of a run, and their limit.

Sockets, shared memory and doorbells (eventfd) count as files. The numbers are those of /proc/PID/fd
while `daqloom measure laptop` runs, regroupings included, rounded up: a unit had 16 + 7 for each
unit + 6 for each stream over shared memory, 19 + 2 + 6 over tcp and 35 + 2 + 6 over libfabric:tcp,
the run control 14 + 3 for each unit."""

import math
import resource

from daqloom.results.errors import MeasureError

FILES_OF_STRANGERS = 32
"""Connections to the run control besides those from units."""
AMPLE = 65_536
"""Limit that a process sets itself if allowed, with room for unknown clients."""


def files_of_a_control(units: int) -> int:
    """Return the open files of the run control, with those for units as its children."""
    return 16 + 4 * units + FILES_OF_STRANGERS


def check_open_files(needed: int, user: str) -> None:
    """Raise the limit of this process, which its children inherit, as far as allowed. Raises
    MeasureError, which names the `user` of the files, for a limit below `needed`."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (math.inf if limit == resource.RLIM_INFINITY else limit for limit in limits)
    if hard < needed:
        raise MeasureError(
            f"{user} needs {needed} open files, and the limit is {hard}; {raise_to(needed)}"
        )
    if soft < (ample := min(hard, max(needed, AMPLE))):
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(ample), limits[1]))


def raise_to(needed: int) -> str:
    """Return the remedy for a limit below `needed`, as a clause."""
    return (
        f"put `* - nofile {max(4096, needed)}` into /etc/security/limits.d/daqloom.conf and log in "
        "anew, or use fewer units"
    )
