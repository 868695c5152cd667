"""Tests of what an ordinary user may not do, run by root."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

UNPRIVILEGED = 65534


@contextmanager
def ordinary_user(folder: Path) -> Iterator[None]:
    """Give a process of root the rights of `nobody` for a while, and `nobody` all of `folder`.

    Meanwhile anybody may pass through its parents, which pytest makes for root alone.
    """
    if os.geteuid() != 0:
        yield
        return
    with ExitStack() as undo:
        for parent in folder.parents:
            mode = parent.stat().st_mode
            if mode & 0o011 != 0o011:  # this process stays in the group of root
                parent.chmod(mode | 0o011)
                undo.callback(parent.chmod, mode)
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, UNPRIVILEGED, UNPRIVILEGED)
        os.seteuid(UNPRIVILEGED)
        undo.callback(os.seteuid, 0)
        yield
