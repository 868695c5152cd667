"""The version of daqloom that is installed."""

import functools


@functools.cache
def installed() -> str:
    """Return the version; "0+unknown" where daqloom runs from a source tree never installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("daqloom")
    except PackageNotFoundError:
        return "0+unknown"
