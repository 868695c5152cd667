"""Supervised thread: it restarts failed work, and its state can be read."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future

from daqloom.base.words import printable
from daqloom.results.errors import MeasureError

SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
"""Least and largest pause before failed work restarts; it doubles until there is progress (s)."""
PATIENCE_S = 0.2
"""Time limit for the work to end, since a silent peer may delay it (s)."""


class Supervision:
    """Work in a thread until closed. `name`: beginning of sentences about failures. `work` must end
    when `ends` is set, and must call `started` once and `goes_on` after progress."""

    def __init__(self, name: str, work: Callable[[Supervision], None]) -> None:
        """Wait until the work has started. Raises MeasureError if it cannot start."""
        self.failure = ""
        """Sentence on the last failure; empty if there was progress since."""
        self.restarts = 0
        self._name, self._work = name, work
        self._pause_s = SHORTEST_PAUSE_S
        self.ends = threading.Event()
        self._first: Future[None] = Future()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()
        self._first.result()

    def report_start(self) -> None:
        """Report that the work has started, so that the constructor returns."""
        if not self._first.done():
            self._first.set_result(None)

    def goes_on(self) -> None:
        """Report progress, which clears the last failure."""
        self.failure = ""
        self._pause_s = SHORTEST_PAUSE_S

    def close(self) -> None:
        """Stop the work."""
        self.ends.set()
        self._thread.join(PATIENCE_S)

    def _live(self) -> None:
        while not self.ends.is_set():
            try:
                self._work(self)
            except Exception as error:  # libraries raise any error for a peer's answers
                failure = self._sentence(error)
                if not self._first.done():
                    self._first.set_exception(MeasureError(failure))
                if self.ends.is_set() or self._first.exception():
                    return
                if failure != self.failure:
                    print(f"daqloom: {failure}; trying again", file=sys.stderr, flush=True)
                self.failure = failure
            if self.ends.wait(self._pause_s):
                return
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
            self.restarts += 1

    def _sentence(self, error: Exception) -> str:
        if isinstance(error, MeasureError):
            return printable(str(error))[:1000]
        reason = ": ".join(part for part in (type(error).__name__, str(error)) if part)
        return printable(f"{self._name}: {reason}")[:1000]
