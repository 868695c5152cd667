"""Settings of all tests."""

import functools
import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest
import typer.testing
from hypothesis import settings

# Fakes and data of one package alone are in its own tests/support, a part of the same namespace.
sys.path += map(str, sorted(Path(__file__).parent.glob("packages/*/tests")))

# Assertions of helpers show their values when they fail, as those of tests do.
pytest.register_assert_rewrite("support")

pytest_plugins = ["support.coroutines", "support.process_mark", "support.skips"]

# Where the shell exports its width, tables would wrap for programs that read them.
os.environ.pop("COLUMNS", None)

# A machine that is busy is no reason to fail: no test depends on how long it takes.
settings.register_profile("daqloom", deadline=None, derandomize=True)
# New examples on every run: `make soak`.
settings.register_profile("random", deadline=None)
settings.load_profile("daqloom")

# The tree of commands is built once, and not anew each time that a test calls one.
typer.testing._get_command = functools.cache(typer.testing._get_command)

# Started in the background of a shell, these processes would ignore Ctrl-C, and so would the
# programs that the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def runs_of_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The folder of the runs that tests record."""
    os.environ["DAQLOOM_RUNS"] = str(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def any_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests run beside one another: what is measured here is not the network's speed."""
    from daqloom.lab import validity

    monkeypatch.setattr(validity, "KINDS", ())


@pytest.fixture
def tmpdir_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files of this test and of the processes that it starts."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path
