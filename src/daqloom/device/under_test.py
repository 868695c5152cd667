"""Device under test: during a measurement its buffers have the scenario's values; afterwards they
are restored."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from daqloom.base.words import plural
from daqloom.device import saved_state
from daqloom.device.adapter import AdapterError, Configures, PortBuffer, PortCount, RunsPrograms
from daqloom.device.desired_state import desired_buffer
from daqloom.device.document import DeviceFile, load_device
from daqloom.device.limits import check_limits
from daqloom.device.registry import configuring, counting, name_conflicts
from daqloom.device.saved_state import SavedState
from daqloom.results.errors import MeasureError
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario

TINY = 1e-9
"""Largest relative difference at which values count as equal."""


class DeviceUnderTest:
    """Device under test; a context. Raises ScenarioError, before any change, for values that cannot
    be set. Entering raises MeasureError for a device that does not comply, after restoring it."""

    def __init__(self, scenario: Scenario) -> None:
        self._source = scenario.measure.device
        self.file: DeviceFile = load_device(self._source)
        check_limits(scenario, self.file.limits)
        self._configures = configuring(self.file, self._source)
        self._counts = counting(self.file, self._source)
        self.notes = name_conflicts([table["adapter"] for table in self.file.tables])
        """Sentences about packages whose adapters have the same name."""
        self._stack = ExitStack()
        self.desired = PortBuffer()
        if self._configures is not None:
            ports, settable = len(self.file.ports), self._configures.settable
            self.desired = desired_buffer(scenario, self.file.level, ports, settable)

    def plan(self) -> list[str]:
        """Return the steps of a change as lines, without any change. Raises MeasureError."""
        if self._configures is None or not self.desired.set_fields:
            return []
        with self._configures as adapter:
            return adapter.plan(self.desired)

    def effects(self) -> Iterator[str]:
        """Yield the effects of a measurement on the device, without connecting to it: headings that
        begin with #, and command lines of an adapter that runs programs. Raises MeasureError."""
        ports = plural(len(self.file.ports), "port")
        if self._configures is not None and self.desired.set_fields:
            given = self.desired.set_fields
            values = ", ".join(f"{name} = {_text(value)}" for name, value in given.items())
            yield (
                f"# {self._source}: {self.file.configure['adapter']} sets {values} on {ports}; the "
                "old values are saved before, and restored in the end (`daqloom lab plan` requests "
                "the steps from the device)"
            )
            if isinstance(self._configures, RunsPrograms):
                yield from self._configures.commands(self.desired)
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
            if self._configures is not None and self.desired.set_fields:
                adapter = stack.enter_context(self._configures)
                path = stack.enter_context(saved_state.exclusive(adapter.identity(), self._source))
                found = as_json(adapter.save())
                old = SavedState(self._source, self.file, found, saved_state.now())
                saved_state.write(path, old)
                stack.push(partial(_restore_at_end, adapter, old, path))
                adapter.apply(self.desired)
                check_applied(self.desired, adapter.applied(), adapter.rounding, self.file.ports)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._stack.__exit__(*error)

    def begin(self) -> Mapping[str, PortCount]:
        """Reset peaks; return the counters of the ports, if any. Raises MeasureError."""
        if self._counts is None:
            return {}
        self._counts.begin()
        return self._counts.read()

    def read(self) -> Mapping[str, PortCount]:
        """Return the counters of the device's ports. Raises MeasureError."""
        return {} if self._counts is None else self._counts.read()


def _restore_at_end(
    adapter: Configures, old: SavedState, path: Path, _: Any, error: BaseException | None, *__: Any
) -> None:
    """Restore a device at the end of a context, even after an error."""
    try:
        restore_saved(adapter, old, path)
    except MeasureError as failed:
        before = f"{error}; in addition, " if isinstance(error, MeasureError) else ""
        raise MeasureError(f"{before}{failed}") from None


def restore_saved(adapter: Configures, old: SavedState, path: Path) -> None:
    """Restore a device's saved configuration, and remove the saved file. Raises MeasureError."""
    try:
        adapter.restore(dict(old.configuration))
        found = as_json(adapter.save())
    except AdapterError as error:
        raise MeasureError(
            f"{old.source}: the device was not restored: {error}; `daqloom lab restore` tries again"
        ) from None
    if found != old.configuration:
        raise MeasureError(
            f"{old.source}: the device accepted its old configuration and does not have it; "
            f"compare its configuration with {path}"
        )
    path.unlink()


def as_json(configuration: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration as it would be read back from a JSON file."""
    found: dict[str, Any] = json.loads(json.dumps(configuration))
    return found


@dataclass(frozen=True)
class Restoration:
    """Saved configuration to which a device was restored, and its present state."""

    old: SavedState
    identity: str
    """Identity of the device."""
    is_current: bool = True
    """Whether the device has this configuration now; False if an older one was restored later."""
    ports: Mapping[str, PortBuffer] = field(default_factory=dict)
    """Present limits, by port."""

    @property
    def sentence(self) -> str:
        """Sentence that describes the present limits."""
        by_buffer: dict[str, list[str]] = {}
        for port, buffer in self.ports.items():
            shown = ", ".join(f"{name} {_text(value)}" for name, value in buffer.set_fields.items())
            by_buffer.setdefault(shown or "no limits", []).append(port)
        has = "; ".join(f"{', '.join(ports)}: {each}" for each, ports in by_buffer.items())
        when = f"what it had at {self.old.at}"
        if self.is_current:
            return f"{self.old.source} has again {when} ({has[:500]})"
        return f"{self.old.source} has what it had before {self.old.at} ({has[:500]})"


def restore_left() -> tuple[list[Restoration], list[str]]:
    """Restore devices that earlier processes left changed; return their final configurations, and
    sentences about failures. Raises MeasureError."""
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
            later = {other.identity for other in done[number + 1 :]}
            if not found.is_current and each.identity not in later:
                raise MeasureError(
                    f"{each.old.source}: the device was restored and no longer has what it had at "
                    f"{each.old.at}; another program has changed it meanwhile"
                )
            checked.append(found)
        except (MeasureError, ScenarioError) as error:
            failures.append(str(error))
    return checked, failures


def restore(path: Path) -> Restoration:
    """Restore a device that an earlier process left changed. Raises MeasureError, and ScenarioError
    if its adapter is missing."""
    with saved_state.lock(path, str(path)):
        old = saved_state.read(path)
        with _adapter_of(old) as adapter:
            identity = adapter.identity()
            restore_saved(adapter, old, path)
    return Restoration(old, identity)


def _adapter_of(old: SavedState) -> Configures:
    adapter = configuring(old.device, old.source)
    if adapter is None:
        raise MeasureError(f"{old.source}: the saved file names no adapter; it is damaged")
    return adapter


def _read_back(done: Restoration) -> Restoration:
    """Return `done` with the present state of its device. Raises MeasureError."""
    with _adapter_of(done.old) as adapter:
        is_current = as_json(adapter.save()) == done.old.configuration
        return replace(done, is_current=is_current, ports=dict(adapter.applied()))


def check_applied(
    buffer: PortBuffer, found: Mapping[str, PortBuffer], rounding: float, ports: tuple[str, ...]
) -> None:
    """Raise MeasureError if a device accepted values but does not report them."""
    for port in ports:
        has = found[port].set_fields if port in found else {}
        for name, value in buffer.set_fields.items():
            if name not in has or not math.isclose(has[name], value, rel_tol=max(rounding, TINY)):
                raise MeasureError(
                    f"{port}: the device accepted {name} = {_text(value)} and has "
                    f"{_text(has[name]) if name in has else 'none'}; it is restored, and "
                    "this value cannot be measured on it"
                )


def _text(value: int | float) -> str:
    """Return a value as text; whole numbers keep all digits."""
    return str(value) if isinstance(value, int) else f"{value:g}"
