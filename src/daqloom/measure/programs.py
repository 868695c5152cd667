"""Programs beside the units of a measured run, on the units' hosts."""

import secrets
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, Self

from daqloom.machine.child import Child
from daqloom.machine.launch import Launcher
from daqloom.machine.namespace import NETWORK
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario


def check_network(scenario: Scenario, key: str) -> None:
    """Raise ScenarioError if programs on several machines have no addresses for each other."""
    if scenario.measure.spans_machines and not scenario.measure.network:
        raise ScenarioError(
            f"{key}: its programs on several machines need addresses for each other; set "
            "measure.network to the network of the units' hosts"
        )


class Programs(ABC):
    """A program of Python, `module`, on each of the `hosts`, given by number of their units; a
    context. `launcher` starts them; `what` begins the message of a failure; `settings` are in the
    first step of all. Entering raises MeasureError if one cannot be started."""

    def __init__(
        self,
        scenario: Scenario,
        launcher: Launcher,
        module: str,
        hosts: Iterable[int],
        what: str,
        **settings: Any,
    ) -> None:
        self._scenario, self._launcher, self._settings = scenario, launcher, settings
        self._module, self.what, self._used = module, what, sorted(set(hosts))
        self._programs: dict[int, Child] = {}
        self._addresses: dict[int, dict[str, Any]] = {}
        """Address of each program, by number of the host's unit."""
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        measure = self._scenario.measure
        network = NETWORK if measure.is_apart else measure.network or "127.0.0.0/8"
        with ExitStack() as stack:
            for unit, command in self.commands().items():
                child = Child(command, f"{self.what} of unit {unit}'s host")
                self._programs[unit] = stack.enter_context(child)
            step = {"listen": network, "key": secrets.randbits(64), **self._settings}
            self._addresses = self._ask_all(step)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all programs; a second call has no effect."""
        self._stack.close()

    def commands(self) -> dict[int, tuple[str, ...]]:
        """Return the command that starts each program, by number of the host's unit."""
        program = (sys.executable, "-m", self._module)
        return {unit: self._launcher.command_at(unit, program) for unit in self._used}

    def check(self) -> None:
        """Raise MeasureError if a program has ended."""
        for program in self._programs.values():
            program.check()

    def _ask(self, unit: int, step: dict[str, Any]) -> Any:
        """Return the answer of a host's program. Raises MeasureError if it has ended."""
        self._programs[unit].send(step)
        return self._programs[unit].answer()

    def _ask_all(self, step: dict[str, Any]) -> dict[int, Any]:
        """Return the answers of all programs, which get the step at the same time."""
        for program in self._programs.values():
            program.send(step)
        return {unit: program.answer() for unit, program in self._programs.items()}

    @abstractmethod
    def prepare(self, run: str) -> None:
        """Give orders before the units of this run start. Raises MeasureError."""

    @abstractmethod
    def begin(self) -> None:
        """Begin when all units build events. Raises MeasureError."""

    @abstractmethod
    def count(self) -> None:
        """Read the counters: after the warm-up, and at the end. Raises MeasureError."""

    @abstractmethod
    def metrics(self) -> dict[str, Any]:
        """Return the metrics between both counts; none if there are not yet both."""

    @abstractmethod
    def warnings(self) -> Iterator[str]:
        """Yield warnings about these metrics."""
