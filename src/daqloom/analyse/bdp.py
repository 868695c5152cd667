"""The bandwidth-delay-product rule."""

from dataclasses import dataclass

from daqloom.analyse.answer import Condition


@dataclass(frozen=True, slots=True)
class BandwidthDelay:
    """Buffer by the rule, for one port and for all ports of the switch."""

    per_port_bytes: float
    switch_bytes: float
    conditions: tuple[Condition, ...]


def bandwidth_delay(
    rtt_s: float, port_bps: float, ports: int, first_windows_bytes: float
) -> BandwidthDelay:
    """B = RTT·C for every port of rate C.

    Source: Villamizar and Song, "High performance TCP in ANSNET", ACM CCR 24 (1994) 45-60; named
    as the usual rule in ATLAS HL-LHC buffer benchmarking.

    The rule keeps a link busy while the window of long flows halves. It says nothing about a burst
    that is there before congestion control has seen one round trip, so it holds only where
    `first_windows_bytes`, what all senders to one port send at once and unasked, fit into the pipe
    and the buffer that the rule gives. `rtt_s` is the round trip of a full frame without queues.
    """
    per_port = rtt_s * port_bps / 8
    fits = first_windows_bytes <= 2 * per_port
    return BandwidthDelay(
        per_port_bytes=per_port,
        switch_bytes=per_port * ports,
        conditions=(
            Condition(
                "first windows ≤ BDP + buffer",
                fits,
                f"the initial windows of all senders to one builder, "
                f"{first_windows_bytes / 1e3:.4g} kB, have to fit into the bandwidth-delay product "
                f"plus the buffer of the rule, {2 * per_port / 1e3:.4g} kB",
            ),
        ),
    )
