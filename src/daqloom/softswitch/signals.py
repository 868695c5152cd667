"""SIGINT and SIGTERM handling that ends the switch soon, even if its threads wait."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

NUMBERS = (signal.SIGINT, signal.SIGTERM)
LONGEST_END_S = 1.8
"""Time from the first signal until the process ends itself by force (s)."""
_BY_FORCE = (
    f"daqloom: the switch did not end within {LONGEST_END_S:g} s of the signal and is ended by "
    "force, without its last counts\n"
)


class Signals:
    """Watcher of signals in a thread. Until `end` is set, a signal raises KeyboardInterrupt in the
    main thread."""

    def __init__(self, reads: int) -> None:
        self.end: Callable[[], object] | None = None
        """Called in the watcher thread for each signal; must not block."""
        self._reads = reads
        self._deadline_s = float("inf")
        threading.Thread(target=self._watch, daemon=True).start()

    def interrupt(self, *_: object) -> None:
        """Handle a signal in the main thread."""
        if self.end is None:
            raise KeyboardInterrupt

    def _watch(self) -> None:
        while (left_s := self._deadline_s - time.monotonic()) > 0:
            if not select.select([self._reads], [], [], min(left_s, 3600.0))[0]:
                continue
            if not (data := os.read(self._reads, 1)):
                os.close(self._reads)
                return
            if data[0] in NUMBERS:
                self._deadline_s = min(self._deadline_s, time.monotonic() + LONGEST_END_S)
                if self.end is not None:
                    self.end()
        os.write(2, _BY_FORCE.encode())
        os._exit(1)


@contextmanager
def watched_signals() -> Iterator[Signals]:
    """Watch for signals; may only be used in the main thread."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    signals = Signals(reads)
    # Python's C handler writes to the pipe even while the main thread runs library code.
    before = signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    handlers = {number: signal.signal(number, signals.interrupt) for number in NUMBERS}
    try:
        yield signals
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before)
        os.close(writes)
