"""Leases of MEPs: of the run control, which knows where the next epoch begins, and of a unit.

A unit may begin MEPs so long without hearing from its run control. It counts its lease from the
moment at which it sent the last report that the run control has received. The run control receives
that report later, so it declares the unit lost later than the unit stops beginning MEPs: no clocks
are compared, and message delays cannot reverse the order. Sans I/O.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from daqloom.measure.plan import Plan

LEASED_TIMEOUTS = 4
"""Length of a lease in fault timeouts, converted to MEPs at the pace of the run: enough not to
limit a run that becomes faster, and few enough to skip where that is necessary."""


@dataclass
class _Leased:
    """The lease of a member of the last epoch that was started."""

    session: int
    """Number of its connection at the start."""
    mep_end: int
    """It may have answered MEPs before this one."""
    is_settled: bool = False
    """Whether all MEPs that it answered are known."""
    has_told: bool = False
    """Whether it has itself reported them, with the MEPs that it wrote, after its epoch."""
    was_left_out: bool = False
    """Whether other units went on with MEPs of that epoch without it."""


class Leases:
    """The leases of a run. Times are in seconds of a monotonic clock."""

    def __init__(self, plan: Plan, now: float) -> None:
        self.next_mep = 0
        """The first MEP that no unit is known to have answered."""
        self._plan = plan
        self._epoch = 0
        self._units: dict[int, _Leased] = {}
        self._pace_hz = 0.0
        """MEPs per second, at most, of late."""
        self._paced_s, self._paced_mep = now, 0
        """Time of the last look at the pace, and the MEP number then."""

    def begin(self, now: float, epoch: int, first_mep: int, sessions: Mapping[int, int]) -> None:
        """Begin an epoch with these units, by the numbers of their connections."""
        self._epoch = epoch
        self._paced_s, self._paced_mep = now, first_mep
        self.answered(first_mep)
        mep_end = first_mep + self._length()
        self._units = {unit: _Leased(session, mep_end) for unit, session in sessions.items()}

    def answered(self, mep_end: int) -> None:
        """Take in that MEPs before this one have been answered: no later epoch has them again."""
        self.next_mep = max(self.next_mep, mep_end)

    def mep_end(self, unit: int) -> int:
        """Return the first MEP that a member of the epoch may not answer."""
        return self._units[unit].mep_end

    def renew(self, now: float, unit: int) -> int:
        """Renew the lease of a member that has reported; return its new `mep_end`."""
        if (passed_s := now - self._paced_s) >= self._plan.heartbeat_s:
            now_hz = (self.next_mep - self._paced_mep) / passed_s
            self._pace_hz = max(now_hz, self._pace_hz / 2)
            self._paced_s, self._paced_mep = now, self.next_mep
        leased = self._units[unit]
        leased.mep_end = max(leased.mep_end, self.next_mep + self._length())
        return leased.mep_end

    # ---- who will answer no more ---------------------------------------------------------------

    def prepared(self, unit: int, session: int) -> None:
        """Take in that a process has prepared a new epoch: it has reported on the previous one."""
        leased = self._units.get(unit)
        if leased and leased.session == session:  # else another process was in that
            leased.is_settled = leased.has_told = True

    def last_words(self, unit: int, ended: int) -> None:
        """Take in that a process last started in the epoch `ended` has reported on it."""
        leased = self._units.get(unit)
        if leased and ended == self._epoch:
            leased.is_settled = leased.has_told = True

    def read(self, unit: int) -> None:
        """Take in that the final counters of a process have been read from its memory."""
        if leased := self._units.get(unit):
            leased.is_settled = True

    def left_out(self, members: Iterable[int]) -> None:
        """Take in that these members finish the epoch without the others."""
        for unit in self._units.keys() - set(members):
            self._units[unit].was_left_out = True

    def first_free(self) -> int:
        """Return the first MEP that no unit has answered or can still answer.

        A readout unit that has reported how far it wrote in the previous epoch settles this for
        all others too, unless these went on without it: a MEP is built only when all have written
        it. Without such a unit, units of unknown progress, which may still run, keep the MEPs that
        were leased to them.
        """
        reads = self._plan.readouts or range(self._plan.units)
        for unit, leased in self._units.items():
            if leased.has_told and not leased.was_left_out and unit in reads:
                return self.next_mep
        unknown = [leased.mep_end for leased in self._units.values() if not leased.is_settled]
        return max([self.next_mep, *unknown])

    def _length(self) -> int:
        built = LEASED_TIMEOUTS * self._plan.fault_timeout_s * self._pace_hz
        return self._plan.leased_meps + round(built)


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
