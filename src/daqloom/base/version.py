"""The version of daqloom that is installed."""

import functools

from daqloom.base import lazy

with lazy.imports():
    from importlib import metadata


@functools.cache
def installed_version() -> str:
    """Return the installed version; "0+unknown" in a source tree that is not installed."""
    try:
        return metadata.version("daqloom")
    except metadata.PackageNotFoundError:
        return "0+unknown"
