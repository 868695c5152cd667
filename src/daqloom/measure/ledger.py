"""Accounts for the fate of every MEP number of a run, epoch by epoch.

Sans I/O. A run assigns each number once: an epoch has those from its first MEP to that of the
next epoch. Builder units share them in turn; in DAQPIPE the event manager assigns them, and only
all units together have a share. The counters of an epoch are compared with that share: MEPs
finished, MEPs granted to units that were lost, and MEPs never begun. A sum above the share means
that MEPs were answered twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from daqloom._engine import Counters


@dataclass(frozen=True)
class Counted:
    """MEPs of a unit, granted and finished."""

    finished: int = 0
    begun: int = 0
    """MEPs granted and not finished."""

    @staticmethod
    def of(totals: Counters) -> Counted:
        """Read them from the counters of the whole run; a unit that builds nothing has none."""
        ended = (totals.meps_built or 0) + (totals.meps_incomplete or 0)
        ended += totals.meps_dropped or 0
        return Counted(
            finished=ended + (totals.meps_discarded or 0),
            begun=max(0, (totals.meps_granted or 0) - ended),
        )

    def since(self, before: Counted) -> Counted:
        """Return the difference to an earlier count."""
        return Counted(self.finished - before.finished, max(0, self.begun - before.begun))

    def __add__(self, other: Counted) -> Counted:
        return Counted(self.finished + other.finished, self.begun + other.begun)


@dataclass(frozen=True)
class Balance:
    """Fates of a run's MEPs that no counter shows."""

    unfinished: int = 0
    """MEPs granted by builder units that were then lost."""
    skipped: int = 0
    """MEPs that no builder unit is known to have granted."""
    twice: int = 0
    """MEPs finished beyond their number: 0, unless MEPs were built twice."""

    def __add__(self, other: Balance) -> Balance:
        return Balance(
            self.unfinished + other.unfinished,
            self.skipped + other.skipped,
            self.twice + other.twice,
        )


@dataclass
class _Epoch:
    first: int
    builders: tuple[int, ...]
    before: dict[int, Counted]
    end: int | None = None
    counted: dict[int, Counted] = field(default_factory=dict)
    """Counts of units that report no more."""


class Ledger:
    """Keeps the accounts of a run. `takes_turns`: see Plan."""

    def __init__(self, takes_turns: bool) -> None:
        self._takes_turns = takes_turns
        self._epochs: list[_Epoch] = []
        """Epochs of which a unit may still report more; the last one has no end yet."""
        self._closed = Balance()

    def begin(self, first: int, builders: Sequence[int], totals: Callable[[int], Counters]) -> None:
        """Begin an epoch with MEP `first`. What its builder units have counted until now belongs
        to earlier epochs."""
        if self._epochs:
            self._epochs[-1].end = first
        before = {unit: Counted.of(totals(unit)) for unit in builders}
        for epoch in self._epochs:
            for unit in before.keys() & epoch.before.keys() - epoch.counted.keys():
                epoch.counted[unit] = before[unit].since(epoch.before[unit])
        for epoch in self._epochs:
            if epoch.counted.keys() == epoch.before.keys():
                self._closed += self._balance(epoch, first, epoch.counted)
        self._epochs = [e for e in self._epochs if e.counted.keys() != e.before.keys()]
        self._epochs.append(_Epoch(first, tuple(builders), before))

    def balance(self, next_mep: int, totals: Callable[[int], Counters]) -> Balance:
        """Return the balance up to MEP `next_mep`, the first that no unit is known to have
        answered."""
        return self._balance_of(self._epochs, next_mep, totals)

    def ended(self, totals: Callable[[int], Counters]) -> Balance:
        """Return the balance of the epochs that another has followed."""
        return self._balance_of([e for e in self._epochs if e.end is not None], 0, totals)

    def _balance_of(
        self, epochs: Iterable[_Epoch], next_mep: int, totals: Callable[[int], Counters]
    ) -> Balance:
        found = self._closed
        for epoch in epochs:
            counted = {
                unit: epoch.counted.get(unit) or Counted.of(totals(unit)).since(before)
                for unit, before in epoch.before.items()
            }
            found += self._balance(epoch, next_mep, counted)
        return found

    def _balance(self, epoch: _Epoch, next_mep: int, counted: Mapping[int, Counted]) -> Balance:
        meps = (next_mep if epoch.end is None else epoch.end) - epoch.first
        if not self._takes_turns:
            return _held_against(meps, sum(counted.values(), Counted()))
        builders = len(epoch.builders)
        return sum(
            (
                _held_against((meps + builders - 1 - turn) // builders, counted[unit])
                for turn, unit in enumerate(epoch.builders)
            ),
            Balance(),
        )


def _held_against(share: int, counted: Counted) -> Balance:
    rest = share - counted.finished
    unfinished = min(max(rest, 0), counted.begun)
    return Balance(unfinished, max(rest, 0) - unfinished, max(-rest, 0))
