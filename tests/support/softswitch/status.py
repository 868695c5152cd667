"""The status of a switch that does not run."""

from daqloom.softswitch.status import DROPS, PortStatus, RingStatus, SwitchStatus

NAMES = ("a", "b", "c")


def status() -> SwitchStatus:
    """Status of a switch with three ports, the second of which has two rings."""
    device = ("received", "received_bytes", "sent", "sent_bytes", "missed", "errors", "no_buffers")
    frames = dict.fromkeys(("packets", *DROPS), 2)
    rings = [(name, True) for name in NAMES] + [("b", False), ("b", False)]
    return SwitchStatus(
        title="test",
        pid=1,
        time_s=2.5,
        stopping=False,
        ports=tuple(
            PortStatus(
                name=name,
                device="",
                is_up=name != "c",
                frames=frames,
                device_counts=dict.fromkeys(device, 7),
            )
            for name in NAMES
        ),
        rings=tuple(
            RingStatus(
                name="",
                port=port,
                is_of_port=is_of_port,
                rate_bps=0,
                most_packets=1,
                packets=1,
                bytes=100,
                counts={"packets": 5, "bytes": 500, "drops": 3, "memory_drops": 1},
                waits=(),
            )
            for port, is_of_port in rings
        ),
        addresses={},
        loop={},
        memory={},
    )
