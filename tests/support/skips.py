"""Reasons for which a test may be skipped on a complete set-up: Debian 12, as root.

Elsewhere something may be missing, so any test may be skipped. Here a skipped test fails.
"""

import functools
import os
import platform
import re
from collections.abc import Generator
from typing import TypeVar

import pytest

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that skips on a complete set-up."""
    return refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail a test file that skips on a complete set-up."""
    return refuse_skip((yield))


def refuse_skip(report: Report) -> Report:
    """Return the report of a test or a file, failed if it may not be skipped."""
    if is_complete() and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not is_allowed(reason):
            report.outcome = "failed"
            report.longrepr = f"{reason}; skipped on a complete set-up (tests/support/skips.py)"
    return report
