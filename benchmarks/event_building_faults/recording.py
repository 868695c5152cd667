"""All that a run has delivered, checked while it goes on, and its accounts of events."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from daqloom._engine import Counters, RunControl
from daqloom.control.counters.metrics import Part, accounts
from daqloom.control.persistence.store import STATE, StoredState
from daqloom.control.plan import Plan
from daqloom.control.protocol import wire
from daqloom.data import check_file, recover
from daqloom.data.coverage import Coverage
from daqloom.data.files import ENDINGS
from daqloom.measure.plan import plan_of
from daqloom.scenario.schema.models import Scenario

PERIOD_S = 2.0


class Recording:
    """Checker of the files in a folder, each of which is read once it is complete, and deleted; a
    context."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.coverage = folder, Coverage()
        self.files, self.mfps, self.faults = 0, 0, []
        self._ends, self._thread = threading.Event(), threading.Thread(target=self._follow)

    def __enter__(self) -> Recording:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def close(self) -> None:
        """Read all files that are left, those of killed units and consumers too."""
        self.__exit__()
        recover(self.folder)
        self._read_all()

    def _follow(self) -> None:
        while not self._ends.wait(PERIOD_S):
            self._read_all()

    def _read_all(self) -> None:
        for path in sorted(self.folder.iterdir()):
            if path.suffix in ENDINGS:
                self.coverage.begin_file(path.name)
                found = check_file(path, generated=True, visit=self.coverage.add)
                self.files, self.mfps = self.files + 1, self.mfps + found.mfps
                self.faults += [f"{path.name}: {each.reason}" for each in found.faults]
                path.unlink()  # its index stays: a later file of this name must not have it

    def record(self) -> dict[str, Any]:
        """Return the findings as a JSON object."""
        count, examples = self.coverage.duplicates()
        return {
            "files": self.files,
            "mfps": self.mfps,
            "events": self.coverage.gaps().events,
            "wrong": len(self.faults),
            "wrong_examples": self.faults[:10],
            "twice": count,
            "twice_examples": [f"source {e.source}: {e} in {e.file}" for e in examples],
        }


def books(folder: Path, sinks: list[str]) -> dict[str, int]:
    """Return the fates of all events of a run that has ended, from its stored state; `sinks`: the
    sink of each of its setups."""
    about = json.loads((folder / "run.json").read_bytes())
    state = StoredState.model_validate_json((folder / STATE).read_bytes())
    plan = plan_of(Scenario.model_validate(about["scenario"]))
    control = RunControl(plan.rules)
    control.resume(0.0, wire.record(state.snapshot))
    totals = {unit.number: unit.tally.totals for unit in control.units}
    ends = [*_former(state, plan), Part(plan.packing, totals, control.balance())]
    fates: Counter[str] = Counter()
    for begin, end, sink in zip([None, *ends], ends, sinks, strict=False):
        part = end.since(begin)
        fates.update(accounts(part.counted, part.balance, 0, plan.packing, sink))
    fates["twice"] = control.balance().twice * plan.packing
    fates["begun"] = control.next_mep * plan.packing
    return dict(fates)


def _former(state: StoredState, plan: Plan) -> list[Part]:
    return [
        Part(
            plan.packing,
            {unit: Counters(counters) for unit, counters in each.counted.items()},
            wire.record(each.balance),
        )
        for each in (state.setup.former if state.setup else ())
    ]


def problems_of(
    recorded: dict[str, Any], fates: dict[str, int], kills: int, packing: int
) -> list[str]:
    """Return what is wrong with what was delivered and with the accounts, as sentences."""
    found = []
    if recorded["wrong"]:
        found.append(f"{recorded['wrong']} places of delivered events are wrong")
    if recorded["twice"]:
        found.append(f"{recorded['twice']} (source, event) pairs were delivered twice")
    known = {fate: n for fate, n in fates.items() if fate not in ("begun", "twice")}
    if fates["twice"] or sum(known.values()) != fates["begun"] or min(known.values()) < 0:
        found.append(f"not all events are accounted for: {fates}")
    # Events after the last report of a killed unit, events without some of their sources on a disk
    # that was full, and packets that a kill has interrupted.
    uncertain = ("not_processed", "not_written", "unfinished", "skipped")
    unknown = sum(known.get(each, 0) for each in uncertain)
    more = recorded["events"] - known["built"] - known["incomplete"]
    if not -kills * packing <= more <= unknown:
        found.append(f"{more} more events were delivered than counted, of {unknown} uncertain ones")
    return found
