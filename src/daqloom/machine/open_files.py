"""Open files of the processes in a run, and their limit.

Sockets, shared memory and doorbells (eventfd) count as files. The numbers are from /proc/PID/fd
during `daqloom measure laptop` with regroupings, rounded up. A unit had 16 + 7 for each unit + 6
for each stream over shared memory, 19 + 2 + 6 over tcp and 35 + 2 + 6 over libfabric:tcp; the run
control had 14 + 3 for each unit."""

import math
import resource

from daqloom.results.errors import MeasureError

FILES_OF_STRANGERS = 32
"""Allowance for connections to the run control that are not from units."""
AMPLE = 65_536
"""Limit to which a process raises its own limit if allowed, with room for unknown clients."""


def files_of_a_control(units: int) -> int:
    """Return the open files of the run control, including those for units as its children."""
    return 16 + 4 * units + FILES_OF_STRANGERS


def check_open_files(needed: int, user: str) -> None:
    """Raise the limit of this process, which children inherit, as far as allowed. Raises
    MeasureError, which names the `user` of the files, if the limit stays below `needed`."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (math.inf if limit == resource.RLIM_INFINITY else limit for limit in limits)
    if hard < needed:
        raise MeasureError(
            f"{user} needs {needed} open files, and the limit is {hard}; {raise_to(needed)}"
        )
    if soft < (ample := min(hard, max(needed, AMPLE))):
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(ample), limits[1]))


def raise_to(needed: int) -> str:
    """Return the remedy for a limit below `needed`, as a clause for messages."""
    return (
        f"put `* - nofile {max(4096, needed)}` into /etc/security/limits.d/daqloom.conf and log in "
        "anew, or use fewer units"
    )
