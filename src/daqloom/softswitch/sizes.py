"""What a switch takes: packet buffers and memory."""

from daqloom.softswitch.document import SwitchFile

BUFFER_OVERHEAD_BYTES = 128 + 128 + 64
"""Of a packet buffer beside its frame: DPDK's own head, room before the frame, and the pool's."""
DPDK_BYTES = 48 << 20
"""What DPDK takes beside buffers."""
IN_FLIGHT = 1024
"""Buffers between devices and rings, and in DPDK's caches."""


def buffers_of(switch: SwitchFile) -> int:
    """Return the number of packet buffers."""
    held = sum(ring.packets for ring in switch.rings.values())
    held += switch.classes * sum(port.packets for port in switch.ports.values())
    in_queues = 2 * switch.runs.descriptors * len(switch.ports)
    return switch.runs.buffers or held + in_queues + IN_FLIGHT


def memory_of(switch: SwitchFile) -> int:
    """Return the memory that DPDK takes for the buffers and itself (B)."""
    of_one = switch.runs.buffer_size + BUFFER_OVERHEAD_BYTES
    queues = 4096 * switch.runs.descriptors * len(switch.ports)
    return DPDK_BYTES + queues + buffers_of(switch) * of_one
