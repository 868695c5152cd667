"""A device for the time of a measurement: its buffers are what the scenario says, and afterwards
what they were before."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from daqloom.base.words import counted
from daqloom.device import saved_state
from daqloom.device.adapter import (
    AdapterError,
    Configures,
    PortBuffer,
    PortCount,
    RunsPrograms,
)
from daqloom.device.desired_state import desired_buffer
from daqloom.device.document import DeviceFile, load_device
from daqloom.device.limits import check_limits
from daqloom.device.registry import configuring, counting, name_conflicts
from daqloom.device.saved_state import SavedState
from daqloom.results.errors import MeasureError
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario

TINY = 1e-9
"""Relative difference of two values that are the same."""


class DeviceUnderTest:
    """The device; a context. Raises ScenarioError for what it cannot be set to, before anything is
    changed, and MeasureError on entering where the device does not do as it is told, and is then
    set back."""

    def __init__(self, scenario: Scenario) -> None:
        self._source = scenario.measure.device
        self.file: DeviceFile = load_device(self._source)
        check_limits(scenario, self.file.limits)
        self._configures = configuring(self.file, self._source)
        self._counts = counting(self.file, self._source)
        self.notes = name_conflicts([table["adapter"] for table in self.file.tables])
        """Sentences on packages that have an adapter of the same name."""
        self._stack = ExitStack()
        self.wanted = PortBuffer()
        if self._configures is not None:
            ports, settable = len(self.file.ports), self._configures.settable
            self.wanted = desired_buffer(scenario, self.file.level, ports, settable)

    def plan(self) -> list[str]:
        """Return what would be done to the device, a line for each step; it is asked, and nothing
        is changed. Raises MeasureError."""
        if self._configures is None or not self.wanted.given:
            return []
        with self._configures as adapter:
            return adapter.plan(self.wanted)

    def announced(self) -> Iterator[str]:
        """Yield what a measurement does with the device, without asking it: headings that begin
        with #, and the command lines of an adapter that runs programs. Raises MeasureError."""
        ports = counted(len(self.file.ports), "port")
        if self._configures is not None and self.wanted.given:
            given = self.wanted.given
            values = ", ".join(f"{name} = {_shown(value)}" for name, value in given.items())
            yield (
                f"# {self._source}: {self.file.configure['adapter']} sets {values} on {ports}; the "
                "old values are saved before, and set back in the end (`daqloom lab plan` asks the "
                "device for the steps)"
            )
            if isinstance(self._configures, RunsPrograms):
                yield from self._configures.commands(self.wanted)
        else:
            yield f"# {self._source}: nothing is set"
        if self._counts is not None:
            yield f"# {self._source}: {self.file.count['adapter']} reads the counters of {ports}"
            if isinstance(self._counts, RunsPrograms):
                yield from self._counts.commands(PortBuffer())

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            if self._counts is not None:
                stack.enter_context(self._counts)
                self._counts.read()
            if self._configures is not None and self.wanted.given:
                adapter = stack.enter_context(self._configures)
                path = stack.enter_context(saved_state.exclusive(adapter.identity(), self._source))
                old = SavedState(
                    self._source, self.file, as_json(adapter.save()), saved_state.now()
                )
                saved_state.write(path, old)
                stack.enter_context(_SetBack(adapter, old, path))
                adapter.apply(self.wanted)
                check_applied(self.wanted, adapter.applied(), adapter.rounding, self.file.ports)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._stack.__exit__(*error)

    def begin(self) -> Mapping[str, PortCount]:
        """Set peaks back, and return what the ports have counted; nothing without counters. Raises
        MeasureError."""
        if self._counts is None:
            return {}
        self._counts.begin()
        return self._counts.read()

    def read(self) -> Mapping[str, PortCount]:
        """Return what the ports have counted. Raises MeasureError."""
        return {} if self._counts is None else self._counts.read()


class _SetBack:
    """What sets a device back at the end of a context, however that ends."""

    def __init__(self, adapter: Configures, old: SavedState, path: Path) -> None:
        self._adapter, self._old, self._path = adapter, old, path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            set_back(self._adapter, self._old, self._path)
        except MeasureError as failed:
            before = f"{error}; besides, " if isinstance(error, MeasureError) else ""
            raise MeasureError(f"{before}{failed}") from None


def set_back(adapter: Configures, old: SavedState, path: Path) -> None:
    """Set a device back to what was saved of it, and forget that. Raises MeasureError."""
    try:
        adapter.restore(dict(old.configuration))
        found = as_json(adapter.save())
    except AdapterError as error:
        raise MeasureError(
            f"{old.source}: the device was not set back to what it had before: {error}; `daqloom "
            "lab restore` tries again"
        ) from None
    if found != old.configuration:
        raise MeasureError(
            f"{old.source}: the device took what it had before and does not have it; look at its "
            f"configuration: {path} has the one before"
        )
    path.unlink()


def as_json(configuration: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration as it comes back from a file."""
    found: dict[str, Any] = json.loads(json.dumps(configuration))
    return found


@dataclass(frozen=True)
class Restored:
    """A saved configuration that a device was set back to."""

    old: SavedState
    identity: str
    """Identity of the device that has answered."""
    is_had: bool = True
    """Whether the device has it; else it has that of an older one, which was restored later."""
    ports: Mapping[str, PortBuffer] = field(default_factory=dict)
    """Limits that the device has now, by port."""

    @property
    def sentence(self) -> str:
        """The limits that the device has now, in words."""
        by_buffer: dict[str, list[str]] = {}
        for port, buffer in self.ports.items():
            shown = ", ".join(f"{name} {_shown(value)}" for name, value in buffer.given.items())
            by_buffer.setdefault(shown or "no limits", []).append(port)
        has = "; ".join(f"{', '.join(ports)}: {each}" for each, ports in by_buffer.items())
        when = f"what it had at {self.old.at}"
        if self.is_had:
            return f"{self.old.source} has again {when} ({has[:500]})"
        return f"{self.old.source} has what it had before {self.old.at} ({has[:500]})"


def restore_left() -> tuple[list[Restored], list[str]]:
    """Set back the devices that earlier processes have left; return what they have at the end, and
    sentences about those that could not be set back. Raises MeasureError."""
    done, failures = [], []
    for path in saved_state.leftovers():
        try:
            done.append(restore(path))
        except (MeasureError, ScenarioError) as error:
            failures.append(str(error))
    checked = []
    for number, each in enumerate(done):
        try:
            found = _read_back(each)
            if not found.is_had and each.identity not in {of.identity for of in done[number + 1 :]}:
                raise MeasureError(
                    f"{each.old.source}: the device was set back and no longer has what it had at "
                    f"{each.old.at}; another program has changed it meanwhile"
                )
            checked.append(found)
        except (MeasureError, ScenarioError) as error:
            failures.append(str(error))
    return checked, failures


def restore(path: Path) -> Restored:
    """Set a device back that an earlier process has left. Raises MeasureError, and ScenarioError
    where its adapter is not there."""
    with saved_state.locked(path, str(path)):
        old = saved_state.read(path)
        with _adapter_of(old) as adapter:
            identity = adapter.identity()
            set_back(adapter, old, path)
    return Restored(old, identity)


def _adapter_of(old: SavedState) -> Configures:
    adapter = configuring(old.device, old.source)
    if adapter is None:
        raise MeasureError(f"{old.source}: the saved file names no adapter; it is damaged")
    return adapter


def _read_back(done: Restored) -> Restored:
    """Return it with what its device has now. Raises MeasureError."""
    with _adapter_of(done.old) as adapter:
        is_had = as_json(adapter.save()) == done.old.configuration
        return replace(done, is_had=is_had, ports=dict(adapter.applied()))


def check_applied(
    buffer: PortBuffer, found: Mapping[str, PortBuffer], rounding: float, ports: tuple[str, ...]
) -> None:
    """Refuse a device that has taken values and does not have them. Raises MeasureError."""
    for port in ports:
        has = found[port].given if port in found else {}
        for name, value in buffer.given.items():
            if name not in has or not math.isclose(has[name], value, rel_tol=max(rounding, TINY)):
                raise MeasureError(
                    f"{port}: the device took {name} = {_shown(value)} and has "
                    f"{_shown(has[name]) if name in has else 'none'}; it is set back, and this "
                    "value cannot be measured on it"
                )


def _shown(value: int | float) -> str:
    """Return a value for people, whole numbers with all their digits."""
    return str(value) if isinstance(value, int) else f"{value:g}"
