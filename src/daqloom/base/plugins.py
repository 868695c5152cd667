"""Entry points of installed packages by name. A broken package of another author affects only its
own entries, and no package can replace an entry of daqloom."""

import warnings
from importlib.metadata import EntryPoint, entry_points

from daqloom.base.words import printable

ADAPTERS = "daqloom.adapters"
"""Group of adapters; see `daqloom.device.registry`."""
OWN = ("daqloom.", "daqloom_")
"""Prefixes of modules that belong to daqloom, in its core and its packages."""


class LoadError(Exception):
    """An entry point cannot be loaded."""

    def __init__(self, cause: BaseException) -> None:
        self.reason = f"{type(cause).__name__}: {cause}"
        super().__init__(str(cause))


def entry_points_of(group: str) -> list[EntryPoint]:
    """Return all entry points of a group. Those of daqloom come before those of other packages."""
    return sorted(entry_points(group=group), key=_rank)


def by_name(group: str) -> dict[str, EntryPoint]:
    """Return the entry point for each name of a group."""
    return {printable(point.name): point for point in reversed(entry_points_of(group))}


def load(point: EntryPoint) -> object:
    """Import and return the object that an entry point names. Warnings of the imported libraries
    are for their authors, and are ignored. Raises LoadError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return point.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an import may raise anything
        raise LoadError(error) from None


def _rank(point: EntryPoint) -> tuple[bool, str]:
    return not point.value.startswith(OWN), point.value
