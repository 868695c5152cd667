"""Reasons for which a test may be skipped on a complete set-up: Debian 12, as root.

Elsewhere something may be missing, so any test may be skipped. Here a skipped test fails.
"""

from __future__ import annotations

import functools
import os
import platform
import re

ALLOWED = {
    r"this machine gives ordinary users no namespaces": "a kernel setting",
    r"no IPv6 here": "a kernel without IPv6",
}
"""Patterns of reasons, each with what the set-up cannot provide."""


@functools.cache
def is_complete() -> bool:
    """Return whether the packages of the Makefile make every test possible here."""
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        return False
    return os.geteuid() == 0 and (system.get("ID"), system.get("VERSION_ID")) == ("debian", "12")


def is_allowed(reason: str) -> bool:
    """Return whether a test may be skipped for `reason` on a complete set-up."""
    return any(re.search(pattern, reason) for pattern in ALLOWED)
