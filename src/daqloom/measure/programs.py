"""Programs beside the units of a measured run, on the units' hosts."""

import secrets
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Self

from daqloom.machine.child import Child
from daqloom.machine.launch import Launcher
from daqloom.machine.namespace import NETWORK
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario

END_S = 5.0
"""Time after the end of its input at which a stalled program is killed (s)."""


def check_network(scenario: Scenario, key: str) -> None:
    """Raise ScenarioError if programs on several machines have no addresses for each other."""
    if scenario.measure.spans_machines and not scenario.measure.network:
        raise ScenarioError(
            f"{key}: its programs on several machines need addresses for each other; set "
            "measure.network to the network of the units' hosts"
        )


class Programs(ABC):
    """Programs of the Python module `module`; a context. `hosts` has the number of a unit on the
    host of each program, by a name that begins the message of its failure. Entering raises
    MeasureError if one cannot be started."""

    title: str
    """Heading of the commands in a dry run."""

    def __init__(
        self, scenario: Scenario, launcher: Launcher, module: str, hosts: Mapping[str, int]
    ) -> None:
        self._scenario, self._launcher = scenario, launcher
        self._module, self._hosts = module, hosts
        self._programs: dict[str, Child] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        measure = self._scenario.measure
        network = NETWORK if measure.is_apart else measure.network or "127.0.0.0/8"
        with ExitStack() as stack:
            for name, command in self.commands().items():
                child = self._programs[name] = stack.enter_context(Child(command, name))
                stack.callback(child.end, END_S)  # a killed mpirun leaves files
            self._open({"listen": network, "key": secrets.randbits(64)})
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all programs; a second call has no effect."""
        for program in self._programs.values():
            program.end_input()
        self._stack.close()

    def commands(self) -> dict[str, tuple[str, ...]]:
        """Return the command that starts each program, by its name."""
        program = (sys.executable, "-m", self._module)
        return {name: self._launcher.command_at(at, program) for name, at in self._hosts.items()}

    def check(self) -> None:
        """Raise MeasureError if a program has ended without which the run is not the scenario's."""
        for program in self._programs.values():
            program.check()

    def _ask(self, name: str, step: Mapping[str, Any], timeout_s: float | None = None) -> Any:
        """Return the answer of a program: see `_ask_all`."""
        return self._ask_all(step, [name], timeout_s)[name]

    def _ask_all(
        self, step: Mapping[str, Any], names: Iterable[str] = (), timeout_s: float | None = None
    ) -> dict[str, Any]:
        """Return the answers of programs, by default of all, to a step that they get at the same
        time. Raises MeasureError if one has ended, or has not answered within the timeout."""
        programs = {name: self._programs[name] for name in names} or self._programs
        for program in programs.values():
            program.send(step)
        return {name: program.answer(timeout_s) for name, program in programs.items()}

    @abstractmethod
    def _open(self, listen: dict[str, Any]) -> None:
        """Give the first steps to the started programs; `listen`: a step with their network, and
        the key of this run."""

    @abstractmethod
    def begin(self, run: str) -> None:
        """Begin when all units of this run build events. Raises MeasureError."""

    @abstractmethod
    def count(self) -> None:
        """Read the counters: after the warm-up, and at the end. Raises MeasureError."""

    @abstractmethod
    def finish(self) -> None:
        """Read final counters, when all units have ended. Raises MeasureError."""

    @abstractmethod
    def metrics(self, window_s: float, share: float) -> dict[str, Any]:
        """Return the metrics between both counts; none if there are not yet both. `window_s`: time
        between them; `share`: that of payload in multi-fragment packets."""

    @abstractmethod
    def warnings(self) -> Iterator[str]:
        """Yield warnings about these metrics."""
