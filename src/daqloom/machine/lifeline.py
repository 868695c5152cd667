"""Lifelines: a program ends when its parent process ends, even if the parent crashes."""

import ctypes
import os
import signal
import sys
import threading
import time

GRACE_S = 2.0
"""Time limit for an orderly shutdown (s)."""
_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent process ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended already
        sys.exit(0)


def end_with_input(*, grace_s: float = 0.0) -> None:
    """End this process when its standard input, a pipe from its parent, is closed. With `grace_s`,
    send SIGTERM first and wait for that time (s)."""
    threading.Thread(target=_end_with_input, args=(grace_s,), daemon=True).start()


def _end_with_input(grace_s: float) -> None:
    while os.read(0, 4096):
        pass
    if grace_s:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(grace_s)
    os._exit(1)
