"""Records of runs that never took place."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from daqloom._engine import About as Subject
from daqloom._engine import Counters
from daqloom.control.protocol.states import Phase
from daqloom.control.record.folders import new_run_folder
from daqloom.control.record.meter import LOSSES, WAITS, Bin
from daqloom.control.record.record import About, Record, Summary
from daqloom.control.run_log import RunEvent

BEGAN = datetime(2026, 11, 30, 1, 0, tzinfo=UTC)


def entry(time_s: float, text: str, **more: Any) -> RunEvent:
    """An entry of a log."""
    usual = {
        "about": Subject.COURSE,
        "phase": Phase.RUNNING,
        "members": 4,
        "lost": None,
        "is_trouble": False,
    }
    return RunEvent(time_s=time_s, text=text, **usual | more)


def loss(time_s: float, unit: int, text: str) -> RunEvent:
    """The loss of a unit."""
    return entry(time_s, text, about=Subject.UNIT, lost=unit, is_trouble=True, members=3)


def second(begin_s: float, rate_hz: float = 100.0, units: int = 4, **more: Any) -> Bin:
    """A bin of a second, in which all units do the same."""
    waits = {name: more.pop(name, 0.0) for name in WAITS}
    run = dict.fromkeys(LOSSES, 0.0)
    run |= {"events": rate_hz, "bytes": 1000 * rate_hz, "unit_s": float(units)}
    run |= {name: units * value for name, value in waits.items()}
    run |= {"members": units, "epoch": 1, "units_lost": 0, "regroupings": 0}
    of_units: dict[int, dict[str, float]] = {
        number: {
            "events": rate_hz / units,
            "bytes": 1000 * rate_hz / units,
            "unit_s": 1.0,
            **waits,
            "lost": 0.0,
            "member": 1.0,
        }
        for number in range(units)
    }
    phase = more.pop("phase", Phase.RUNNING)
    return Bin(begin_s, 1.0, run | more, phase, of_units)


def record_of(
    name: str = "laptop",
    bins: Iterable[Bin] = (),
    events: Iterable[RunEvent] = (),
    summary: Mapping[str, Any] | None = None,
) -> Path:
    """The folder of a run that began at `BEGAN`."""
    folder = new_run_folder(name)
    about = About(method="control", scenario=name, began=BEGAN, units=4, packing=1)
    record = Record(folder, about)
    record.offset_s = 0.0
    for each in events:
        record.event(vars(each), epoch=1)
    record.add(0.0, list(bins))
    record.close(Summary(**{"state": "ended"} | dict(summary or {})))
    return folder


class Totals:
    """Counters of units as a run control has them, set by hand."""

    def __init__(self, units: int) -> None:
        self.units = [
            SimpleNamespace(number=number, tally=SimpleNamespace(totals=Counters()))
            for number in range(units)
        ]
        self.members = set(range(units))
        self.phase = Phase.RUNNING
        self.epoch = 1
        self.counts = {"units_lost": 0, "regroupings": 0}
        self.balance = SimpleNamespace(unfinished=0, skipped=0)

    def unit(self, number: int) -> SimpleNamespace:
        """A unit by its number."""
        return self.units[number]

    def balance_of_ended(self) -> SimpleNamespace:
        """The fates that are in no counter."""
        return self.balance

    def set(self, unit: int, **counters: float) -> None:
        """Set the totals of a unit."""
        self.units[unit].tally.totals = Counters(counters)
