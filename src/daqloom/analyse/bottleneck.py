"""Two rules for a bottleneck's buffer size: the bandwidth-delay product and the incast rule."""

from collections.abc import Iterable
from dataclasses import dataclass

from daqloom.analyse.answer import Condition


@dataclass(frozen=True, slots=True)
class BandwidthDelay:
    """Buffer size by the bandwidth-delay rule, for one port and for all ports of the switch."""

    per_port_bytes: float
    switch_bytes: float
    conditions: tuple[Condition, ...]


def bandwidth_delay(
    rtt_s: float, port_bps: float, ports: int, first_windows_bytes: float
) -> BandwidthDelay:
    """Return the buffer by the rule B = RTT·C for every port with rate C.

    Source: Villamizar and Song, "High performance TCP in ANSNET", ACM CCR 24 (1994) 45-60; named
    as the usual rule in ATLAS HL-LHC buffer benchmarking.

    With this buffer a link stays busy while long flows halve their windows. The rule does not cover
    a burst that arrives before congestion control has seen one round trip. It is valid only if
    `first_windows_bytes`, the sum of the initial windows of all senders to one port, fits into the
    pipe and the buffer. `rtt_s` is the round trip of a full frame without queues.
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


@dataclass(frozen=True, slots=True)
class Incast:
    """The terms of the incast rule for one bottleneck, and the buffer that the rule requires."""

    windows_bytes: float
    bdp_bytes: float
    burst_bytes: float
    """Occupancy after all windows arrive together: Σ windows·(1 − output rate / input rate), or
    0."""
    conditions: tuple[Condition, ...]

    @property
    def peak_bytes(self) -> float:
        """Highest possible occupancy of the port for any events: all windows minus the data that
        has left. New data follows acknowledgements, so the departed data is the bandwidth-delay
        product. It is less if all windows arrive before the first acknowledgement returns."""
        return max(self.needed_bytes, self.burst_bytes) if self.burst_bytes else 0.0

    @property
    def needed_bytes(self) -> float:
        """The smallest buffer without loss: Σ windows − BDP, at least 0."""
        return max(0.0, self.windows_bytes - self.bdp_bytes)

    def satisfied_by(self, buffer_bytes: float) -> bool:
        """Whether BDP + buffer ≥ Σ windows."""
        return self.bdp_bytes + buffer_bytes >= self.windows_bytes


def incast(
    windows_bytes: Iterable[float], input_bps: float, output_bps: float, rtt_s: float
) -> Incast:
    """Return the rule BDP + buffer ≥ Σ window_i: a bottleneck without loss.

    Source: slides on the lossless software switch, under "TCP incast".

    `windows_bytes`: limit on the bytes in flight for each sender, as the buffer counts them.
    `input_bps`: sum of the senders' rates. `output_bps`: rate out of the bottleneck. `rtt_s`: round
    trip without queues. The condition is valid only for `input_bps` > `output_bps`.
    """
    windows = sum(windows_bytes)
    return Incast(
        windows_bytes=windows,
        bdp_bytes=output_bps / 8 * rtt_s,
        burst_bytes=windows * max(0.0, 1 - output_bps / input_bps),
        conditions=(
            Condition(
                "I > O",
                input_bps > output_bps,
                f"the builder's link, {output_bps / 1e9:.4g} Gb/s, has to be slower than the "
                f"input, {input_bps / 1e9:.4g} Gb/s",
            ),
        ),
    )
