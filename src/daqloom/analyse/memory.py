"""Limits of the memory of Ethernet switches (`engine/ethernet/switch_buffer.hpp`, frame bytes)."""

import math
from dataclasses import dataclass

from daqloom.scenario.schema.switches import Switch


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory limits of a port. A port uses its `dedicated_bytes` first, then at most alpha times
    the free part of the shared pool, and never more than `port_bytes` in all."""

    port_bytes: float
    dedicated_bytes: float
    pool_bytes: float
    alpha: float

    def most_bytes(self, used_bytes: float) -> float:
        """Return the bytes that one port may hold while the others hold `used_bytes` of the pool. A
        port that holds u of a pool P may grow while u < alpha·(P − used − u), so up to u = (P −
        used)·alpha/(1 + alpha). Each of n equal ports gets alpha·P/(1 + n·alpha)."""
        free_bytes = max(0.0, self.pool_bytes - used_bytes)
        return min(self.port_bytes, self.dedicated_bytes + free_bytes / (1 + 1 / self.alpha))


def memory_of(
    switch: Switch, ports: int, inputs: int, frame_bytes: float, is_paced: bool
) -> Memory:
    """Return the memory limits of a switch with `ports` connected ports for frames of a mean length
    (B). Unused parts of memory cells are subtracted. With architecture "voq", an output has a queue
    for each of `inputs`. With "software", it has a ring of frames, filled at most to the pause
    threshold. An unpaced ring adds the descriptors of the output."""
    of_a_queue = switch.port_limit * (inputs if switch.architecture == "voq" else 1)
    frames = switch.pause_at or switch.queue_packets
    if switch.architecture == "software" and not is_paced:
        frames += switch.descriptors
    share = 1.0
    if switch.cell_size:
        cells = math.ceil((frame_bytes + switch.cell_metadata) / switch.cell_size)
        share = frame_bytes / (cells * switch.cell_size)
    port_bytes = min(of_a_queue * share or math.inf, frames * frame_bytes or math.inf)
    is_shared = switch.architecture == "shared-memory"
    return Memory(
        port_bytes=port_bytes,
        dedicated_bytes=switch.dedicated / (switch.ports or ports) * share,
        pool_bytes=switch.shared * share if switch.buffer else math.inf,
        alpha=switch.alpha if is_shared else math.inf,
    )
