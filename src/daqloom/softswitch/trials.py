"""Throughput trials on this machine: a generator, and a switch between two wires in memory."""

from daqloom._switch import TrialConfig, Trials
from daqloom.configuration.settings import settings
from daqloom.results.errors import MeasureError
from daqloom.softswitch.configure import keep_dpdk_apart
from daqloom.softswitch.sizes import memory_of_a_buffer


def trials(
    frame_bytes: int, destinations: int, ring_packets: int, pace_bps: int, descriptors: int
) -> Trials:
    """Start a generator and a switch between two wires in memory. Raises MeasureError."""
    keep_dpdk_apart()
    buffers = 4 * descriptors + destinations * ring_packets + 8_192
    memory = (128 << 20) + buffers * memory_of_a_buffer(2048, huge_pages=False)
    eal = [
        *("--no-telemetry", "--log-level=error", "--no-huge", "--no-shconf", "--no-pci"),
        *("-m", str(memory >> 20)),
    ]
    config = settings(
        TrialConfig,
        eal=eal,
        frame_bytes=frame_bytes,
        destinations=destinations,
        ring_packets=ring_packets,
        pace_bps=pace_bps,
        descriptors=descriptors,
    )
    try:
        return Trials(config)
    except (ValueError, OSError) as error:
        raise MeasureError(str(error)) from None
