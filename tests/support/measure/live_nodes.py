"""Nodes without a run control, and the orders that configure them."""

import time
from typing import Any

from daqloom._engine import LiveNode
from daqloom.control.protocol.messages import Configure

TOKEN = bytes(16)
HUNG_S = 60.0
"""Ends a test that hangs; no test waits for it."""


def configure(unit: int = 0, **changes: Any) -> Configure:
    """Return the order to configure a unit."""
    fields = {"order": 1, "unit": unit, "run": "test", "units": 4, "heartbeat_s": 1.0}
    return Configure(**(fields | {"scenario": {}} | changes))


def halt(node: LiveNode) -> int:
    """Halt a node; return the first MEP that the next epoch may take."""
    until_s = time.monotonic() + HUNG_S
    node.close([])
    next_mep = node.drain(until_s, until_s)
    assert next_mep is not None
    return next_mep
