"""The time course of a run and the cost of its faults: series and metrics that simulated and
measured runs have in common. Times are in seconds and begin when the run first builds events."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import fmean

from daqloom.results.recovery import Bin, Ending, Members, recovery

MOST_BINS = 20_000
LOST = ("incomplete", "dropped", "discarded", "unfinished", "skipped")
"""Outcomes with which events count as lost; see the metric `events_accounted`."""
_NAMES = ("name", "what", "which", "how")


@dataclass
class Break:
    """One occurrence of an injected fault: a unit, cable or switch that breaks."""

    name: str
    """NAME in the scenario table [faults.injected.NAME]."""
    what: str
    which: str
    """The broken item, such as "2" for a unit or "leaf00 port 3" for a cable."""
    how: str
    begin_s: float
    lost_before: int = 0
    """Number of events that the run had lost before the fault."""
    detected_s: float | None = None
    """Time of detection: the unit counts as lost, or both ends of the link are down."""
    end_s: float | None = None
    """Time of the repair; None if the run ends before, or for a killed unit that stays lost."""


class Bins:
    """Histogram over time with at most `MOST_BINS` bins, whose width doubles if needed."""

    def __init__(self, width_s: float) -> None:
        self.width_s = width_s
        self._amounts: list[float] = []

    def add(self, begin_s: float, end_s: float, amount: float) -> None:
        """Add an amount, spread evenly from `begin_s` to `end_s` (not before 0)."""
        while end_s > MOST_BINS * self.width_s:
            self._amounts.extend([0.0] * (len(self._amounts) % 2))
            self._amounts = list(map(sum, zip(*[iter(self._amounts)] * 2, strict=True)))
            self.width_s *= 2
        first, last = int(begin_s / self.width_s), int(end_s / self.width_s)
        self._amounts.extend([0.0] * (last + 1 - len(self._amounts)))
        if end_s <= begin_s:
            self._amounts[last] += amount
            return
        for place in range(first, last + 1):
            begin, end = place * self.width_s, (place + 1) * self.width_s
            share = max(0.0, min(end, end_s) - max(begin, begin_s)) / (end_s - begin_s)
            self._amounts[place] += share * amount

    def rates(self, until_s: float, factor: float = 1.0) -> list[Bin]:
        """Return the complete bins until `until_s`, with `factor` times their amount per second."""
        whole = int(until_s / self.width_s + 1e-9)
        amounts = (self._amounts + [0.0] * whole)[:whole]
        return [
            Bin(place * self.width_s, (place + 1) * self.width_s, factor * amount / self.width_s)
            for place, amount in enumerate(amounts)
        ]


def series(
    breaks: Iterable[Break], bins: Sequence[Bin], members: Members
) -> dict[str, dict[str, object]]:
    """Return the time series `throughput`, `members` and, for a run with faults, `faults`."""
    found: dict[str, dict[str, object]] = {
        "throughput": {name: [getattr(each, name) for each in bins] for name in Bin._fields},
        "members": {
            "time_s": [time_s for time_s, _ in members],
            "members": [count for _, count in members],
        },
    }
    kinds = {"begins": "begin_s", "detected": "detected_s", "ends": "end_s"}
    rows = [
        {"time_s": time_s, **{key: getattr(each, key) for key in _NAMES}, "change": change}
        for each in breaks
        for change, name in kinds.items()
        if (time_s := getattr(each, name)) is not None
    ]
    rows.sort(key=itemgetter("time_s"))
    if rows:
        found["faults"] = {name: [row[name] for row in rows] for name in rows[0]}
    return found


def fault_metrics(
    breaks: Sequence[Break],
    bins: Sequence[Bin],
    members: Members,
    end_s: float,
    lost: int,
    endings: Sequence[Ending] = (),
) -> dict[str, int | Mapping[str, float]]:
    """Return a run's fault metrics; `lost`: number of lost events; `breaks`: sorted by
    `begin_s`."""
    detection_s: dict[str, list[float]] = defaultdict(list)
    recovery_s: dict[str, list[float]] = defaultdict(list)
    cost = dict.fromkeys((each.name for each in breaks), 0)
    counted = set()
    settled_s: dict[float, float] = {}
    """Time of recovery from a fault, keyed by the beginning of the fault."""
    for each in breaks:
        if each.detected_s is not None:
            detection_s[each.name].append(each.detected_s - each.begin_s)
        following = next((other for other in breaks if other.begin_s > each.begin_s), None)
        until_s = following.begin_s if following else end_s
        since_s = max((end for begin, end in settled_s.items() if begin < each.begin_s), default=0)
        recovered_s = recovery(
            each.begin_s,
            until_s,
            bins,
            members,
            since_s=since_s,
            detected_s=each.detected_s,
            mended_s=each.end_s,
            endings=endings,
        )
        settled_s[each.begin_s] = until_s if recovered_s is None else each.begin_s + recovered_s
        if recovered_s is not None:
            recovery_s[each.name].append(recovered_s)
        if (each.name, each.begin_s) not in counted:  # one fault may break several items at once
            counted.add((each.name, each.begin_s))
            after = following.lost_before if following else lost
            # A unit that returns may report events that had been counted as lost.
            cost[each.name] += max(0, after - each.lost_before)
    found: dict[str, int | Mapping[str, float]] = {
        "faults_begun": len(breaks),
        "faults_detected": sum(map(len, detection_s.values())),
        "faults_recovered": sum(map(len, recovery_s.values())),
    }
    for name, times_s in (("fault_detection_s", detection_s), ("fault_recovery_s", recovery_s)):
        if times_s:
            found[name] = {fault: fmean(of_it) for fault, of_it in times_s.items()}
    if cost:
        found["fault_events_lost"] = cost
    return found
