"""A laboratory: the network of a scenario, made on this machine, watched, and gone afterwards."""

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Self

from daqloom.lab import kernel
from daqloom.lab.network import (
    CHECK_SEQUENCE_BYTES,
    LabNetwork,
    Queue,
    full_frame_bytes,
)
from daqloom.lab.software import RingCount, SoftwareSwitch
from daqloom.machine.child import Child
from daqloom.machine.launch import Launcher
from daqloom.machine.namespace import Held, Within, hold, tool
from daqloom.scenario.schema.links import WIRE_OVERHEAD_BYTES

LOOK_S = 500e-6
"""Time from one look at all queues to the next."""


@dataclass(frozen=True)
class PortCount:
    """What a port has counted since it was made, and its peak since counting began."""

    sent: int
    sent_bytes: int
    """As the kernel counts them: without check sequence, preamble and gap."""
    dropped: int
    waiting: int
    peak_bytes: int

    def with_ring(self, ring: RingCount) -> "PortCount":
        """Return it with the rings before it, which hold what a port holds."""
        return replace(
            self,
            dropped=self.dropped + ring.dropped,
            waiting=self.waiting + ring.held,
            peak_bytes=ring.peak_bytes,
        )


@dataclass(frozen=True)
class LabCount:
    """What the switches have counted."""

    ports: Mapping[str, PortCount]
    """By the link that begins there."""
    peaks: tuple[int, ...]
    """Most bytes in each switch, summed over its ports, since counting began."""
    watched_s: float
    """Since counting began (s)."""
    late_s: float
    """Sum of what looks were late, of those that were later than a bucket lasts (s)."""
    punctual_peaks: tuple[int | None, ...]
    """`peaks` if each port had sent at its rate what came to it; None of a software switch, whose
    ports are not watched."""


class Laboratory:
    """The network; a context. Raises MeasureError on entering where this machine does not allow
    it, or lacks a program."""

    def __init__(self, network: LabNetwork) -> None:
        self.network = network
        self._stack = ExitStack()
        self.switches: Held
        """The namespace of all switches."""
        self.hosts: list[Held] = []
        """The namespace of each host, by unit."""
        self._counting: Child
        self._software: list[SoftwareSwitch] = []

    def __enter__(self) -> Self:
        for name in ("ip", "bridge", "tc", *(("ethtool",) if self.network.software else ())):
            tool(name)
        network = self.network
        with ExitStack() as stack:
            switches = self.switches = hold(stack)
            self.hosts = [hold(stack, switches, network.settings) for _ in network.hosts]
            holders = [host.holder for host in self.hosts]
            switches.run(("ip", "-batch", "-"), list(kernel.cables(network, holders)))
            switches.run(("bridge", "-batch", "-"), list(kernel.forwarding(network)))
            switches.run(
                ("tc", "-batch", "-"), list(kernel.queues(network.queues, network.mtu_bytes))
            )
            own = {
                at: queue
                for cable in network.cables
                for queue, at in zip((cable.a, cable.b), cable.hosts, strict=True)
            }
            for number, (held, host) in enumerate(zip(self.hosts, network.hosts, strict=True)):
                held.run(("ip", "-batch", "-"), list(kernel.own(network, host)))
                lines = kernel.queues([own[number]], network.mtu_bytes)
                held.run(("tc", "-batch", "-"), list(lines))
            if network.software:
                # Else hosts leave checksums to a network card, which there is none.
                for held in self.hosts:
                    held.run(("ethtool", "-K", "eth0", "tx", "off"), [])
                self._software = [
                    stack.enter_context(SoftwareSwitch(network, rings, switches))
                    for rings in network.software
                ]
            self._counting = self._watching(stack, switches)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def launching(self, launcher: Launcher) -> Launcher:
        """Return a launcher whose tasks run on the hosts of their units."""
        return Within(launcher, self.hosts)

    def begin(self) -> LabCount:
        """Set all peaks back, and return what there is. Raises MeasureError."""
        for switch in self._software:
            switch.forget_peaks()
        return self._ask("begin")

    def read(self) -> LabCount:
        """Return what there is. Raises MeasureError."""
        return self._ask("read")

    def _watching(self, stack: ExitStack, switches: Held) -> Child:
        program = (sys.executable, "-m", "daqloom.lab.counting")
        what = "the queues of the laboratory cannot be read"
        child = stack.enter_context(Child([*switches.enter, *program], what))
        ports = [self._watched(queue) for queue in self.network.queues]
        mtu_bytes = self.network.mtu_bytes
        late_s = max(kernel.bucket_s(queue, mtu_bytes) for queue in self.network.queues)
        child.tell({"ports": ports, "every_s": LOOK_S, "late_s": late_s})
        return child

    def _watched(self, queue: Queue) -> dict[str, Any]:
        mtu = self.network.mtu_bytes
        wire_bytes = full_frame_bytes(mtu) + WIRE_OVERHEAD_BYTES
        return {
            "name": queue.link.name,
            "device": queue.device,
            "handle": kernel.FIFO,
            "switch": queue.switch,
            "unseen_bytes": CHECK_SEQUENCE_BYTES,
            "bytes_per_s": queue.rate_bps / 8 * full_frame_bytes(mtu) / wire_bytes,
            "ahead_bytes": round(kernel.ahead_frames(queue, mtu) * full_frame_bytes(mtu)),
        }

    def _ask(self, what: str) -> LabCount:
        self._counting.say(what)
        told = self._counting.answer()
        ports = {name: PortCount(**count) for name, count in told["ports"].items()}
        peaks, punctual = list(told["peaks"]), list(told["punctual_peaks"])
        for switch in self._software:
            of_port, peaks[switch.number] = switch.read()
            ports |= {name: ports[name].with_ring(ring) for name, ring in of_port.items()}
            punctual[switch.number] = None
        return LabCount(ports, tuple(peaks), told["watched_s"], told["late_s"], tuple(punctual))
