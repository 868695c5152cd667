"""Number of packet buffers and size of memory that a switch needs."""

from daqloom.softswitch.document import SwitchFile

BUFFER_OVERHEAD_BYTES = 128 + 128 + 128
"""Bytes of a packet buffer in addition to its frame: DPDK's header, headroom, pool header."""
PAGE_BYTES = 4096
DPDK_BYTES = 48 << 20
"""Memory of DPDK in addition to packet buffers (B)."""
BETWEEN_CORES = 4096
"""Capacity of the ring from one core to another (packets)."""
MESSAGE_BYTES = 24
"""Size of a message between cores."""
IN_FLIGHT = 1024
"""Number of buffers between devices and rings, and in DPDK's caches."""


def buffers_of(switch: SwitchFile) -> int:
    """Return the number of packet buffers: as in the file, or the sum of all capacities."""
    held = sum(ring.packets for ring in switch.rings.values())
    held += switch.classes * sum(port.packets for port in switch.ports.values())
    runs = switch.runs
    in_queues = (1 + runs.receive_queues) * runs.descriptors * len(switch.ports)
    in_queues += _between_cores(switch)
    return switch.runs.buffers or held + in_queues + IN_FLIGHT


def memory_of(switch: SwitchFile) -> int:
    """Return the memory that DPDK needs, including packet buffers (B)."""
    queues = 4096 * switch.runs.descriptors * len(switch.ports)
    of_one = memory_of_a_buffer(switch.runs.buffer_size, huge_pages=switch.runs.huge_pages)
    between_cores = MESSAGE_BYTES * _between_cores(switch)
    return DPDK_BYTES + queues + between_cores + buffers_of(switch) * of_one


def _between_cores(switch: SwitchFile) -> int:
    """Return the total capacity of the rings between cores, in messages."""
    cores = max(1, len(switch.runs.cores))
    return BETWEEN_CORES * cores * (cores - 1)


def memory_of_a_buffer(buffer_bytes: int, *, huge_pages: bool) -> int:
    """Return the memory of a packet buffer (B); a multiple of the page size without huge pages."""
    size = buffer_bytes + BUFFER_OVERHEAD_BYTES
    return size if huge_pages else -(-size // PAGE_BYTES) * PAGE_BYTES
