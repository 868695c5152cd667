"""The version of daqloom that is installed, and the commit of its sources."""

import functools

from daqloom.base import lazy

with lazy.imports():
    from importlib import metadata

    from daqloom.base import sources

UNINSTALLED = "0+unknown"
"""Version of a source tree that is not installed."""


@functools.cache
def installed_version() -> str:
    """Return the installed version, or `UNINSTALLED`."""
    try:
        return metadata.version("daqloom")
    except metadata.PackageNotFoundError:
        return UNINSTALLED


@functools.cache
def commit() -> str:
    """Return the commit of the sources; see `daqloom.base.sources.commit`."""
    return sources.commit()
