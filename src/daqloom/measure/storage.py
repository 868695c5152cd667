"""Storage units of a measured run, and the senders that accept events for them."""

from collections.abc import Iterator
from functools import reduce
from time import monotonic
from typing import Any

from daqloom.machine.launch import Launcher
from daqloom.machine.storing import StoredCount
from daqloom.measure.configure import places
from daqloom.measure.programs import Programs
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario


def check_storage(scenario: Scenario) -> None:
    """Raise ScenarioError for storage units that cannot be measured."""
    measure = scenario.measure
    if scenario.storage.units and measure.sink not in ("check", "discard"):
        raise ScenarioError(
            f'measure.sink = "{measure.sink}": with storage.units, the senders of accepted events '
            'read the output of builder units; use "check", which storage units do'
        )


class Storage(Programs):
    """The storage units of a scenario and the senders of its builder units. In a network of its
    own, each storage unit has a host there; else storage units are on the hosts of units in
    turn."""

    def __init__(self, scenario: Scenario, launcher: Launcher) -> None:
        where, units = places(scenario), range(scenario.storage.units)
        self._builders = sorted({unit for unit in where.builders if unit >= 0})
        is_apart, first = scenario.measure.is_apart, where.units
        self._storages = [first + i if is_apart else i % first for i in units]
        hosts = (*self._builders, *self._storages)
        measure = scenario.measure
        is_generated = measure.source != "user" and measure.content == "every"
        module = "daqloom.machine.storing"
        super().__init__(scenario, launcher, module, hosts, "storage", generated=is_generated)
        self._counts: list[tuple[float, StoredCount]] = []

    def prepare(self, run: str) -> None:
        """Let senders wait for the outputs of their builder units."""
        scenario = self._scenario
        storages = [tuple(self._addresses[unit].values()) for unit in self._storages]
        for unit in self._builders:
            orders = {
                "output": f"daqloom/{run}/{unit}/output",
                "storages": storages,
                "accepted": scenario.storage.accepted,
                "timeout_s": scenario.storage.timeout,
                "seed": scenario.run.seed,
            }
            self._ask(unit, {"accept": orders})

    def begin(self) -> None:
        """Nothing is to begin: senders have waited for the first event."""

    def count(self) -> None:
        """Count the events until now. Raises MeasureError if a program has ended."""
        answers = self._ask_all({"count": True}).values()
        counts = [StoredCount(**answer) for answer in answers]
        self._counts.append((monotonic(), reduce(StoredCount.plus, counts)))

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of storage between both counts."""
        if len(self._counts) < 2:
            return {}
        (begin_s, begin), (end_s, end) = self._counts
        return {
            "events_accepted": end.accepted - begin.accepted,
            "events_stored": end.stored - begin.stored,
            "events_unstored": end.unstored - begin.unstored,
            "events_storing": end.accepted - end.stored - end.unstored,
            "stored_throughput_bps": 8
            * (end.payload_bytes - begin.payload_bytes)
            / (end_s - begin_s),
        }

    def warnings(self) -> Iterator[str]:
        """Yield warnings about wrong bytes, and about events that were not stored."""
        if not self._counts:
            return
        _, end = self._counts[-1]
        if end.wrong:
            yield (
                f"{end.wrong:,} events had wrong bytes at storage units: their fragments are not "
                "what the sources generated"
            )
        if end.unstored:
            yield (
                f"{end.unstored:,} accepted events were given up, because no storage unit "
                "acknowledged them within storage.timeout"
            )
