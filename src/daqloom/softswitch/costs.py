"""Costs of a packet and of a batch on a core of this machine, for the simulated switch, whose turn
takes a time for each batch and each packet.

The turns have one incoming and one outgoing batch of 1 to 32 packets; a line is fitted to their
times."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

TURNS = 2_000
"""Turns of which a time is the mean of the middle half."""
ROUNDS = 10
"""Repetitions, of which the least time counts: other programs only add."""
BATCH = 32
"""Most packets of a batch."""
IN_CACHES, IN_MEMORY = 64, 40_000
"""Buffers in use by turns: 150 kB, and 90 MB, which exceed the caches of a core."""
DESTINATIONS, RING_PACKETS = 144, 512

TurnTime = Callable[[int, int, int], float]
"""Packets of a turn, turns, buffers → its time (s)."""


@dataclass
class Costs:
    """Costs of a core, with the quality of the fit."""

    buffers: int
    """Buffers in use by turns."""
    packet_s: float
    batch_s: float
    idle_turn_s: float
    """Time of a turn over two ports without packets (s)."""
    largest_residual_s: float
    """Largest difference of a turn's time and the line (s)."""
    turn_times_s: list[float]
    """Times of turns with 1 to 32 packets (s)."""

    @property
    def full_batches_hz(self) -> float:
        """Packets a second in batches of 32."""
        return BATCH / (BATCH * self.packet_s + 2 * self.batch_s)

    def document(self) -> dict[str, Any]:
        """Return the costs for JSON."""
        return vars(self) | {"full_batches_hz": self.full_batches_hz}


def fit(turn_times_s: NDArray[np.float64], idle_turn_s: float, buffers: int) -> Costs:
    """Fit `2 × batch + n × packet` to the times of turns with n = 1, 2, … packets, shape (n,)."""
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
    """Measure turns with this number of buffers, and fit their costs."""
    rounds = [
        [turn_time_s(packets, TURNS, buffers) for packets in range(BATCH + 1)]
        for _ in range(ROUNDS)
    ]
    idle_turn_s, *turn_times_s = np.min(np.array(rounds), axis=0)
    return fit(np.array(turn_times_s), float(idle_turn_s), buffers)
