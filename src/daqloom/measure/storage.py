"""Storage in a measured run: programs of storage units, and of builder units' senders."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from daqloom.machine.launch import Launcher
from daqloom.measure.configure import kernel_congestion, places
from daqloom.measure.programs import Programs
from daqloom.results.errors import MeasureError
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario

MOST_UNDER_WAY = 16
"""Limit on the accepted events that a builder unit's sender has under way."""
ANSWER_S = 5.0
"""Time limit for the counts of a storage unit (s)."""


def check_storage(scenario: Scenario) -> None:
    """Raise ScenarioError for storage units that cannot be measured."""
    measure, why = scenario.measure, ""
    if measure.sink != "check":
        why = f'storage units check events, and measure.sink = "{measure.sink}"; use "check"'
    elif measure.launch != "local" or measure.device:
        why = "storage units are started on this machine only; use no device, and launch locally"
    if scenario.storage.units and why:
        raise ScenarioError(
            f"storage.units = {scenario.storage.units}: {why}, or set storage.units to 0"
        )


class Storage(Programs):
    """The storage units of a scenario, and the senders of its builder units. If the network is
    apart, the hosts of storage units come behind those of units."""

    title = "storage units and senders of accepted events, on their hosts"

    def __init__(self, scenario: Scenario, launcher: Launcher) -> None:
        where, first = places(scenario), 0
        if scenario.measure.is_apart:
            first = where.units
        units = {_unit(i): first + i if first else 0 for i in range(scenario.storage.units)}
        readers = {_sender(unit): unit for unit in sorted({*where.builders, *where.spares} - {-1})}
        super().__init__(scenario, launcher, "daqloom.machine.storage", units | readers)
        self._units, self._senders = list(units), readers
        self._order: dict[str, Any] = {}
        self._counts: list[Counter[str]] = []
        """Counts of senders: at the end of the warm-up, of the measurement, and of all units."""
        self._lost: list[str] = []
        """Failures of storage units, as sentences."""
        self._received: Counter[str] = Counter()

    def _open(self, listen: dict[str, Any]) -> None:
        scenario = self._scenario
        is_generated = scenario.measure.source == "generator"
        answers = self._ask_all(listen | {"generated": is_generated}, self._units)
        self._order = {
            "storages": [answers[unit] for unit in self._units],
            "accepted": scenario.storage.accepted,
            "timeout_s": scenario.storage.timeout,
            "seed": scenario.run.seed,
            "window": min(scenario.building.concurrent_events, MOST_UNDER_WAY),
            "congestion": kernel_congestion(scenario),
            "key": listen["key"],
        }

    def begin(self, run: str) -> None:
        """Let senders read the outputs of the run's units. Raises MeasureError."""
        for name, unit in self._senders.items():
            self._ask(name, self._order | {"output": f"daqloom/{run}/{unit}/output"})

    def check(self) -> None:
        """Raise MeasureError if a sender has ended; the events of a lost storage unit go to the
        next."""
        for name in self._senders:
            self._programs[name].check()

    def count(self, what: str = "count") -> None:
        """Count the events of all senders. Raises MeasureError if a sender has ended."""
        self._counts.append(Counter())
        for answer in self._ask_all({what: True}, self._senders).values():
            self._counts[-1].update(answer)

    def finish(self) -> None:
        """Count again, when the units of the run have ended, and at storage units too."""
        self.count("finish")
        for name in self._units:
            try:
                self._programs[name].send({"count": True})
                self._received.update(self._programs[name].answer(ANSWER_S))
            except MeasureError as error:
                self._lost.append(f"{error}; its counts are missing")

    def metrics(self, window_s: float, share: float) -> dict[str, Any]:
        """Return the metrics of storage between the warm-up and the end."""
        if len(self._counts) < 2:
            return {}
        return storage_metrics((self._counts[0], self._counts[-1]), window_s, share)

    def warnings(self) -> Iterator[str]:
        """Yield warnings about events that were not stored, or not once, by the final counts."""
        if not self._counts:
            return
        end = self._counts[-1]
        late = 0 if self._lost else self._received["received"] - end["stored"]
        faults = {
            "accepted events were given up: no storage unit acknowledged them": end["unstored"],
            "events arrived at storage units with wrong content": end["wrong"],
            "copies of events arrived after storage.timeout, and do not count as stored": late,
        }
        yield from self._lost
        yield from (f"{count:,} {what}" for what, count in faults.items() if count)


def _unit(number: int) -> str:
    return f"storage unit {number}"


def _sender(unit: int) -> str:
    return f"the sender of unit {unit}"


def storage_metrics(
    counts: Sequence[Counter[str]], window_s: float, share: float
) -> dict[str, Any]:
    """Return the metrics of storage between two moments; `share`: that of payload in MFPs."""
    begin, end = counts
    values = {f"events_{n}": end[n] - begin[n] for n in ("accepted", "stored", "unstored")}
    values["events_storing"] = end["accepted"] - end["stored"] - end["unstored"]
    stored_bytes = end["stored_bytes"] - begin["stored_bytes"]
    return values | {"stored_throughput_bps": 8 * share * stored_bytes / window_s}
