"""Registry of adapters, from entry points of the group `daqloom.adapters`."""

from collections.abc import Collection, Mapping, Set
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, cast

from daqloom.base import plugins
from daqloom.base.words import did_you_mean, printable
from daqloom.device.adapter import Adapter, AdapterOptions, Configures, Counts
from daqloom.device.credentials import credentials_of
from daqloom.device.document import DeviceFile, build
from daqloom.results.errors import MeasureError
from daqloom.scenario.errors import ScenarioError

GROUP = plugins.ADAPTERS
PACKAGE = "daqloom-adapters"
"""Name of the package with adapters for vendors' switches and time-series databases."""


def names() -> list[str]:
    """Return the names of all adapters."""
    return sorted(plugins.by_name(GROUP))


def adapter_type(name: str) -> type[Adapter]:
    """Return the adapter class with this name. Raises ScenarioError."""
    points = plugins.by_name(GROUP)
    if name not in points:
        known = sorted(points)
        hint = did_you_mean(name, known, "known are " + ", ".join(known))
        more = "".join(f"; {each}" for each in missing())
        raise ScenarioError(f'there is no adapter "{printable(name[:80])}"; {hint}{more}')
    return _load(points[name])


def missing() -> list[str]:
    """Return the advice to install daqloom's own adapters, if they are missing."""
    if any(point.dist and point.dist.name == PACKAGE for point in plugins.by_name(GROUP).values()):
        return []
    return [f"more adapters come with: pip install {PACKAGE}"]


def name_conflicts(among: Collection[str] | None = None) -> list[str]:
    """Return sentences about adapters that are ignored because another one of the same name is
    used: all such adapters, or those with a name in `among`."""
    points = plugins.by_name(GROUP)
    return [
        f'the adapter "{printable(point.name)}" of {_package(point)} is left out: {_package(used)} '
        "has one of that name; rename its entry point"
        for point in plugins.entry_points_of(GROUP)
        if (used := points[printable(point.name)]).value != point.value
        and (among is None or point.name in among)
    ]


def _package(point: EntryPoint) -> str:
    """Return the name of the package to which an entry point belongs."""
    name = point.dist.name if point.dist else point.module.partition(".")[0]
    return f"the package {printable(str(name))[:80]}"


def _load(point: EntryPoint) -> type[Adapter]:
    """Return the class to which an entry point refers. Raises ScenarioError."""
    try:
        kind = plugins.load(point)
    except plugins.LoadError as error:
        raise _load_error(point, error.reason) from None
    options: object = getattr(kind, "Options", None)
    settable: object = getattr(kind, "settable", frozenset())
    if not isinstance(kind, type) or not isinstance(options, type):
        raise _load_error(point, "it is no class with Options")
    if not isinstance(settable, Set):
        raise _load_error(point, "its settable is no set")
    if not issubclass(options, AdapterOptions):
        raise _load_error(point, "its Options are not derived from AdapterOptions")
    return cast(type[Adapter], kind)


def _load_error(point: EntryPoint, why: str) -> ScenarioError:
    return ScenarioError(
        f'the adapter "{printable(point.name)}" is broken: {printable(why[:300])}; update or '
        f"remove {_package(point)}"
    )


def configuring(device: DeviceFile, source: str) -> Configures | None:
    """Return the adapter that sets a device's buffers, not yet entered; None if the device file
    names none. Raises ScenarioError."""
    found = _make(device, "configure", source)
    if found is not None and not isinstance(found, Configures):
        lacks = [each for each in _CONFIGURES if not hasattr(found, each)]
        if len(lacks) < len(_CONFIGURES):
            raise ScenarioError(
                f'{source}: configure.adapter = "{device.configure["adapter"]}" lacks '
                f"{', '.join(lacks)}; expected the adapter of a newer version of its package"
            )
        raise ScenarioError(
            f'{source}: configure.adapter = "{device.configure["adapter"]}" reads counters alone; '
            "name it in [count]"
        )
    return found


def counting(device: DeviceFile, source: str) -> Counts | None:
    """Return the adapter that reads a device's counters, not yet entered; None if the device file
    names none. Raises ScenarioError."""
    found = _make(device, "count", source)
    if found is not None and not isinstance(found, Counts):
        raise ScenarioError(
            f'{source}: count.adapter = "{device.count["adapter"]}" has no counters; name it in '
            "[configure]"
        )
    return found


def _make(device: DeviceFile, name: str, source: str) -> Adapter | None:
    table: Mapping[str, Any] = getattr(device, name)
    if not table:
        return None
    kind = adapter_type(table["adapter"])
    credentials = credentials_of(Path(device.credentials) if device.credentials else None)
    keys = {key: table[key] for key in table if key != "adapter"}
    options = build(kind.Options, keys, f"{source}: {name}", Path(source).parent.absolute())
    try:
        return kind(options, device.ports, credentials)
    except (MeasureError, ScenarioError):
        raise
    except Exception as error:  # a foreign adapter may raise anything
        raise ScenarioError(
            f'{source}: {name}.adapter = "{table["adapter"]}" is broken: {type(error).__name__}: '
            f"{printable(credentials.without_secrets(str(error))[:300])}"
        ) from None


_CONFIGURES = (
    *("settable", "rounding", "identity", "plan"),
    *("save", "apply", "applied", "restore"),
)
