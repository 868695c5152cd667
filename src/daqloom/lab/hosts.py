"""TCP of a laboratory's hosts: kernel settings that implement the scenario's `[transport]`."""

import math

from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.transport import Transport

LEAST_BUFFER_BYTES, MOST_BUFFER_BYTES = 131_072, 6 << 20
"""Linux's defaults for the initial and the largest receive buffer."""
BUFFER_OF_WINDOW = 4
"""Ratio of receive buffer to window, including the kernel's overhead for packets."""


def settings(scenario: Scenario) -> dict[str, str]:
    """Return the kernel settings, by path below /proc/sys/net."""
    transport = scenario.transport
    room = BUFFER_OF_WINDOW * _window_bytes(transport)
    restarts = transport.restart_after_idle and transport.congestion != "static"
    return {
        "ipv4/tcp_timestamps": f"{int(transport.timestamps)}",
        "ipv4/tcp_recovery": f"{int(transport.rack)}",
        "ipv4/tcp_early_retrans": "3" if transport.tail_loss_probe else "0",
        "ipv4/tcp_slow_start_after_idle": f"{int(restarts)}",
        "ipv4/tcp_rmem": f"4096 {max(LEAST_BUFFER_BYTES, room)} {max(MOST_BUFFER_BYTES, room)}",
    }


def route(scenario: Scenario) -> str:
    """Return the attributes of the route to other hosts, as arguments of `ip`."""
    transport = scenario.transport
    window = math.ceil(_window_bytes(transport) / scenario.mss)
    first = transport.initial_window
    if transport.congestion == "static":
        first = max(1, transport.static_window // scenario.mss)
    rto_ms = max(1, round(1000 * transport.rto_min))
    return f"initcwnd {first} initrwnd {max(10, window)} rto_min {rto_ms}ms"


def _window_bytes(transport: Transport) -> int:
    is_static = transport.congestion == "static"
    return transport.static_window if is_static else LEAST_BUFFER_BYTES // 2
