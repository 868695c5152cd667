"""Transports of measurements."""

import pytest

TRANSPORTS = pytest.mark.parametrize("transport", ["shm", "tcp", "libfabric:tcp"])
"""A test that runs once over each."""
