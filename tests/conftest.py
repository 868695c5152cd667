"""Settings of all tests."""

import signal

import pytest
from hypothesis import settings

# Assertions of helpers show their values when they fail, as those of tests do.
pytest.register_assert_rewrite("support")

# A machine that is busy is no reason to fail: no test depends on how long it takes.
settings.register_profile("daqloom", deadline=None)
settings.load_profile("daqloom")

# Started in the background of a shell, these processes would ignore Ctrl-C, and so would the
# programs that the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def any_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests run beside one another: what is measured here is not the network's speed."""
    from daqloom.measure.lab import validity

    monkeypatch.setattr(validity, "MOST_PRESSURE", 2.0)
    monkeypatch.setattr(validity, "MOST_LATENESS", 2.0)
