"""Adapters by their names: the entry points `daqloom.adapters` of what is installed."""

from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

from daqloom.measure.device.adapter import Adapter, Configures, Counts
from daqloom.measure.device.credentials import credentials_of
from daqloom.measure.device.document import DeviceFile, build
from daqloom.scenario.errors import ScenarioError
from daqloom.words import did_you_mean

GROUP = "daqloom.adapters"


def names() -> list[str]:
    """Return the names of all adapters."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def adapter_type(name: str) -> type[Adapter]:
    """Return the class of an adapter. Raises ScenarioError."""
    points = [point for point in entry_points(group=GROUP) if point.name == name]
    if not points:
        known = names()
        hint = did_you_mean(name, known, "known are " + ", ".join(known))
        raise ScenarioError(f'there is no adapter "{name[:80]}"; {hint}')
    try:
        return cast(type[Adapter], points[0].load())
    except ImportError as error:
        package = (error.name or "a package").partition(".")[0]
        raise ScenarioError(
            f'the adapter "{name}" needs the Python package {package}, which is not here; '
            "install it with: pip install daqloom[adapters]"
        ) from None


def configuring(device: DeviceFile, source: str) -> Configures | None:
    """Return the adapter that sets a device's buffers, not yet entered; None where there is none.
    Raises ScenarioError."""
    found = _made(device, "configure", source)
    if found is not None and not isinstance(found, Configures):
        raise ScenarioError(
            f'{source}: configure.adapter = "{device.configure["adapter"]}" reads counters alone; '
            "name it in [count]"
        )
    return found


def counting(device: DeviceFile, source: str) -> Counts | None:
    """Return the adapter that reads a device's counters; None where there is none. Raises
    ScenarioError."""
    found = _made(device, "count", source)
    if found is not None and not isinstance(found, Counts):
        raise ScenarioError(
            f'{source}: count.adapter = "{device.count["adapter"]}" has no counters; name it in '
            "[configure]"
        )
    return found


def _made(device: DeviceFile, name: str, source: str) -> Adapter | None:
    table: Mapping[str, Any] = getattr(device, name)
    if not table:
        return None
    kind = adapter_type(table["adapter"])
    given = {key: table[key] for key in table if key != "adapter"}
    options = build(kind.Options, given, f"{source}: {name}", Path(source).parent.absolute())
    file = Path(device.credentials) if device.credentials else None
    ports: Sequence[str] = device.ports
    return kind(options, ports, credentials_of(file))
