"""The lease of a unit: how long it may begin MEPs without hearing from its run control.

A unit counts its lease from the moment at which it sent the last report that the run control has
received. The run control receives that report later, so it declares the unit lost later than the
unit stops beginning MEPs: no clocks are compared, and message delays cannot reverse the order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock

MOST_UNHEARD = 1000
"""Number of reports whose times are kept; the lease of an older one would be over anyway."""


class Lease:
    """The lease of one unit. Two threads call it: one as reports are sent, one as they are
    acknowledged."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.length_s = 0.0
        self.epoch = 0
        self._clock = clock
        self._sent: deque[tuple[int, float]] = deque(maxlen=MOST_UNHEARD)
        self._number = 0
        self._until_s = 0.0
        self._mep_end = 0
        self._lock = Lock()

    def sending(self) -> int:
        """Note that a report is about to be sent; return its number."""
        with self._lock:
            self._number += 1
            self._sent.append((self._number, self._clock()))
            return self._number

    def begin(self, epoch: int) -> None:
        """Begin a new epoch, of which nothing is leased yet."""
        with self._lock:
            self.epoch, self._mep_end = epoch, 0

    def heard(self, epoch: int, report: int, mep_end: int) -> tuple[int, float]:
        """Return the new lease once the run control has received a report: the first MEP that may
        not be answered, and until when it holds (seconds of the clock)."""
        with self._lock:
            while self._sent and self._sent[0][0] <= report:
                number, sent_s = self._sent.popleft()
                if number == report:
                    self._until_s = max(self._until_s, sent_s + self.length_s)
            if epoch == self.epoch:
                self._mep_end = max(self._mep_end, mep_end)
            return self._mep_end, self._until_s
