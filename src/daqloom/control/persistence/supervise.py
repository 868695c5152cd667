"""Supervisor of a run control: starts it again if a signal or a failure of the program has ended
it."""

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from logging import WARNING

from daqloom.base.log import report

SUPERVISED = "DAQLOOM_SUPERVISED"
"""Environment variable of a run control that has a supervisor."""
MOST_STARTS, WITHIN_S = 5, 60.0
"""Starts of the run control within a time (s), after which its end is final."""
FINAL = (0, 1, 2, 130)
"""Exit codes of a run control that has ended its run, or cannot run."""


def supervise(command: Sequence[str]) -> int:
    """Run the command of a run control until its run is over; return its exit code."""
    starts: deque[float] = deque(maxlen=MOST_STARTS)
    while True:
        starts.append(time.monotonic())
        with subprocess.Popen(command, env=os.environ | {SUPERVISED: "1"}) as control:
            signal.signal(signal.SIGTERM, lambda number, _: control.send_signal(number))
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the run control itself
            code = control.wait()
        often = len(starts) == MOST_STARTS and starts[-1] - starts[0] < WITHIN_S
        if code in FINAL or often:
            return code if code >= 0 else 128 - code
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        report(f"the run control has ended {how}; it is started again", WARNING)
