"""Measured costs of a packet and of a batch on a core of this machine. The simulated switch uses
them: its turn takes a time for each batch and each packet.

Measured turns have one incoming and one outgoing batch of 1 to 32 packets; a line is fitted to
their times."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

TURNS = 2_000
"""Turns in one measurement, whose result is the mean of the middle half."""
ROUNDS = 10
"""Repetitions, of which the shortest time counts, because other programs only add time."""
BATCH = 32
"""Largest number of packets in a batch."""
IN_CACHES, IN_MEMORY = 64, 40_000
"""Numbers of buffers in use: 150 kB fit into the caches of a core, 90 MB do not."""
DESTINATIONS, RING_PACKETS = 144, 512

TurnTime = Callable[[int, int, int], float]
"""Function of packets in a turn, number of turns, and buffers; returns the time of a turn (s)."""


@dataclass
class Costs:
    """Costs of packets and batches on a core, with the quality of the fit."""

    buffers: int
    """Number of buffers that the measured turns used."""
    packet_s: float
    batch_s: float
    idle_turn_s: float
    """Time of a turn over two ports without packets (s)."""
    largest_residual_s: float
    """Largest difference between the time of a turn and the fitted line (s)."""
    turn_times_s: list[float]
    """Times of turns with 1 to 32 packets (s)."""

    @property
    def full_batches_hz(self) -> float:
        """Packets per second if all batches have 32 packets."""
        return BATCH / (BATCH * self.packet_s + 2 * self.batch_s)

    def document(self) -> dict[str, Any]:
        """Return the costs for JSON."""
        return vars(self) | {"full_batches_hz": self.full_batches_hz}


def fit(turn_times_s: NDArray[np.float64], idle_turn_s: float, buffers: int) -> Costs:
    """Fit `2 × batch + n × packet` to durations of turns with n = 1, 2, … packets, shape (n,)."""
    packets = np.arange(1, len(turn_times_s) + 1)
    packet_s, both_batches_s = np.polyfit(packets, turn_times_s, 1)
    line = packets * packet_s + both_batches_s
    return Costs(
        buffers=buffers,
        packet_s=float(packet_s),
        batch_s=float(both_batches_s / 2),
        idle_turn_s=idle_turn_s,
        largest_residual_s=float(np.abs(turn_times_s - line).max()),
        turn_times_s=turn_times_s.tolist(),
    )


def measure(turn_time_s: TurnTime, buffers: int) -> Costs:
    """Measure turns with a given number of buffers, and fit the costs."""
    rounds = [
        [turn_time_s(packets, TURNS, buffers) for packets in range(BATCH + 1)]
        for _ in range(ROUNDS)
    ]
    idle_turn_s, *turn_times_s = np.min(np.array(rounds), axis=0)
    return fit(np.array(turn_times_s), float(idle_turn_s), buffers)
