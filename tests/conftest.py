"""Settings of all tests."""

import functools
import signal
from collections.abc import Generator
from typing import TypeVar

import pytest
import typer.testing
from hypothesis import settings

# Assertions of helpers show their values when they fail, as those of tests do.
pytest.register_assert_rewrite("support")

# A machine that is busy is no reason to fail: no test depends on how long it takes.
settings.register_profile("daqloom", deadline=None)
settings.load_profile("daqloom")

# The tree of commands is built once, and not anew each time that a test calls one.
typer.testing._get_command = functools.cache(typer.testing._get_command)

# Started in the background of a shell, these processes would ignore Ctrl-C, and so would the
# programs that the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Record the processes that the test starts and the networks that it uses."""
    from support import process_mark

    process_mark.watch(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that skips on a complete set-up, or lacks the mark `process`."""
    from support import process_mark

    report = refuse_skip((yield))
    if reason := process_mark.violation():
        report.outcome, report.longrepr = "failed", reason
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail a test file that skips on a complete set-up."""
    return refuse_skip((yield))


def refuse_skip(report: Report) -> Report:
    """Return the report of a test or a file, failed if it may not be skipped."""
    from support import skips

    if skips.is_complete() and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not skips.is_allowed(reason):
            report.outcome = "failed"
            report.longrepr = f"{reason}; skipped on a complete set-up (tests/support/skips.py)"
    return report


@pytest.fixture
def any_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests run beside one another: what is measured here is not the network's speed."""
    from daqloom.measure.lab import validity

    monkeypatch.setattr(validity, "MOST_PRESSURE", 2.0)
    monkeypatch.setattr(validity, "MOST_LATENESS", 2.0)
