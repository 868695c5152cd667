"""Points of the incast, what either side measures there, and what the two are to each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

SENDERS = 20
REPLY_BYTES = 32_000
REQUEST_BYTES = 64
BOTTLENECK_BPS = 200_000_000
MTU_BYTES = 1500
SEGMENT_BYTES = MTU_BYTES - 20 - 20 - 12  # IP, TCP, timestamps
PACKETS_PER_REPLY = -(-REPLY_BYTES // SEGMENT_BYTES)
WIRE_OVERHEAD_BYTES = 14 + 4 + 8 + 12  # Ethernet header, FCS, preamble and start, gap
REPLY_WIRE_BYTES = REPLY_BYTES + PACKETS_PER_REPLY * (
    MTU_BYTES - SEGMENT_BYTES + WIRE_OVERHEAD_BYTES
)

WARMUP_S = 0.4
"""Drop thresholds are those of the rounds after this, on open windows and warm caches."""

LONGEST_ROUND_S = 120
"""A round that waits for doubled time-outs may outlast the time of its run by this much."""

UNBOUNDED = 1000
"""A buffer that holds everything that can be under way (packets)."""

EXACT = 0.05
COLLAPSE = 2.0
ENOUGH_TIMEOUTS = 20
"""Fewer in a run say nothing about a ratio."""


@dataclass(frozen=True)
class Load:
    """How the senders behave: CUBIC, or a congestion window of `window` segments for ever."""

    congestion: Literal["cubic", "static"]
    window: int = 0

    @property
    def name(self) -> str:
        return f"static {self.window}" if self.congestion == "static" else "cubic"

    @property
    def offered_packets(self) -> int:
        """Packets that all senders together send into an empty network at once."""
        return SENDERS * (min(self.window, PACKETS_PER_REPLY) or PACKETS_PER_REPLY)


@dataclass(frozen=True)
class Point:
    """A load and the bottleneck's buffer in packets, the one in service included."""

    load: Load
    buffer_packets: int

    @property
    def name(self) -> str:
        return f"{self.load.name}, {self.buffer_packets}"


@dataclass(frozen=True)
class Outcome:
    """What one run of a point shows. Time-outs and probes are those of all hosts."""

    rounds: int
    goodput_bps: float
    median_round_s: float
    longest_round_s: float
    drops: int
    timeouts: int
    loss_probes: int
    retransmissions: int


def drop_threshold(drops: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest buffer without drops in (low, high], by bisection.

    Raises ValueError where `low` does not drop or `high` does.
    """
    if not drops(low):
        raise ValueError(f"no packet is dropped at {low} packets; start lower")
    if drops(high):
        raise ValueError(f"packets are dropped at {high} packets; start higher")
    while high - low > 1:
        middle = (low + high) // 2
        if drops(middle):
            low = middle
        else:
            high = middle
    return high


def middle_run(runs: Sequence[Outcome]) -> Outcome:
    """The median of every figure by itself."""

    def of(figure: str) -> float:
        return float(median(getattr(run, figure) for run in runs))

    return Outcome(
        rounds=round(of("rounds")),
        goodput_bps=of("goodput_bps"),
        median_round_s=of("median_round_s"),
        longest_round_s=of("longest_round_s"),
        drops=round(of("drops")),
        timeouts=round(of("timeouts")),
        loss_probes=round(of("loss_probes")),
        retransmissions=round(of("retransmissions")),
    )


@dataclass(frozen=True)
class Check:
    """One figure of both sides against its tolerance; `within` is None where it is not judged."""

    figure: str
    kernel: float
    simulation: float
    ratio: float | None
    tolerance: str
    within: bool | None


def close(figure: str, kernel: float, simulation: float) -> Check:
    """Within 5 %."""
    ratio = _ratio(kernel, simulation)
    within = ratio is not None and abs(ratio - 1) <= EXACT
    return Check(figure, kernel, simulation, ratio, f"{EXACT:.0%}", within)


def comparable(figure: str, kernel: float, simulation: float, least: float = 0) -> Check:
    """Within a factor 2; not judged where both are below `least`."""
    judged = max(kernel, simulation) >= least
    within = min(kernel, simulation) * COLLAPSE >= max(kernel, simulation)
    return Check(
        figure,
        kernel,
        simulation,
        _ratio(kernel, simulation),
        f"factor {COLLAPSE:g}",
        within if judged else None,
    )


def _ratio(kernel: float, simulation: float) -> float | None:
    return simulation / kernel if kernel else None


def checks(point: Point, kernel: Outcome, simulation: Outcome) -> list[Check]:
    """The figures that count at a point: goodput alone where the kernel dropped nothing."""
    goodput = f"{point.name}: goodput (b/s)"
    if kernel.drops == 0:
        return [close(goodput, kernel.goodput_bps, simulation.goodput_bps)]
    return [
        comparable(goodput, kernel.goodput_bps, simulation.goodput_bps),
        comparable(
            f"{point.name}: time-outs", kernel.timeouts, simulation.timeouts, ENOUGH_TIMEOUTS
        ),
    ]
