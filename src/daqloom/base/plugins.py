"""Entry points of installed packages by name.

A broken foreign package costs its own entry alone, and none replaces an entry of daqloom.
"""

from importlib.metadata import EntryPoint, entry_points

from daqloom.base.words import printable

OWN = ("daqloom.", "daqloom_")
"""Beginnings of the modules of daqloom, in its core and in its packages."""


class LoadError(Exception):
    """An entry point cannot be loaded."""

    def __init__(self, cause: BaseException) -> None:
        self.reason = f"{type(cause).__name__}: {cause}"
        super().__init__(str(cause))


def installed(group: str) -> list[EntryPoint]:
    """Return all entry points of a group; of several with one name, daqloom's own comes first."""
    return sorted(entry_points(group=group), key=_rank)


def by_name(group: str) -> dict[str, EntryPoint]:
    """Return the entry point for each name of a group."""
    return {printable(point.name): point for point in reversed(installed(group))}


def load(point: EntryPoint) -> object:
    """Return what an entry point names. Raises LoadError."""
    try:
        return point.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an import may raise anything
        raise LoadError(error) from None


def _rank(point: EntryPoint) -> tuple[bool, str]:
    return not point.value.startswith(OWN), point.value
