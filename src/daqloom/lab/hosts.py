"""The TCP of a laboratory's hosts: settings of the kernel that are what `[transport]` says."""

import math

from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.transport import Transport

LEAST_BUFFER_BYTES, MOST_BUFFER_BYTES = 131_072, 6 << 20
"""Linux's defaults of a receive buffer: at the beginning, and the most."""
BUFFER_OF_WINDOW = 4
"""A receive buffer has room for a window, with what the kernel spends on each packet besides."""


def settings(scenario: Scenario) -> dict[str, str]:
    """Return the settings, by their places below /proc/sys/net."""
    given = scenario.transport
    room = BUFFER_OF_WINDOW * _window_bytes(given)
    return {
        "ipv4/tcp_timestamps": f"{int(given.timestamps)}",
        "ipv4/tcp_recovery": f"{int(given.rack)}",
        "ipv4/tcp_early_retrans": "3" if given.tail_loss_probe else "0",
        "ipv4/tcp_slow_start_after_idle": f"{int(_restarts(given))}",
        "ipv4/tcp_rmem": f"4096 {max(LEAST_BUFFER_BYTES, room)} {max(MOST_BUFFER_BYTES, room)}",
    }


def route(scenario: Scenario) -> str:
    """Return the attributes of the route to the other hosts, for `ip`."""
    given = scenario.transport
    window = math.ceil(_window_bytes(given) / scenario.mss)
    first = given.initial_window
    if given.congestion == "static":
        first = max(1, given.static_window // scenario.mss)
    return (
        f"initcwnd {first} initrwnd {max(10, window)} "
        f"rto_min {max(1, round(1000 * given.rto_min))}ms"
    )


def _window_bytes(given: Transport) -> int:
    return given.static_window if given.congestion == "static" else LEAST_BUFFER_BYTES // 2


def _restarts(given: Transport) -> bool:
    return given.restart_after_idle and given.congestion != "static"
