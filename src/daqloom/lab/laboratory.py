"""Laboratory: a scenario's network on this machine, which exists during a measurement."""

import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Self

from daqloom.lab import kernel
from daqloom.lab.network import (
    CHECK_SEQUENCE_BYTES,
    Forwarding,
    LabNetwork,
    Queue,
    full_frame_bytes,
)
from daqloom.lab.software import RingCount, SoftwareSwitch
from daqloom.machine.child import Child
from daqloom.machine.launch import Launcher
from daqloom.machine.namespace import Namespace, Within, new_namespace, tool
from daqloom.scenario.schema.links import WIRE_OVERHEAD_BYTES

LOOK_S = 500e-6
"""Period at which all queues are polled (s)."""


@dataclass(frozen=True)
class PortCount:
    """Counters of a port since its creation, and its peak since `begin`."""

    sent: int
    sent_bytes: int
    """Bytes sent as the kernel counts them, without check sequence, preamble and gap."""
    dropped: int
    waiting: int
    peak_bytes: int

    def with_ring(self, ring: RingCount) -> "PortCount":
        """Return the counters, combined with those of the software switch's rings for the port."""
        return replace(
            self,
            dropped=self.dropped + ring.dropped,
            waiting=self.waiting + ring.held,
            peak_bytes=ring.peak_bytes,
        )


@dataclass(frozen=True)
class LabCount:
    """Counters of all switches in the laboratory."""

    ports: Mapping[str, PortCount]
    """Counters of ports, by the name of the link that begins at the port."""
    peaks: tuple[int, ...]
    """Largest number of bytes in each switch (sum of its ports) since `begin`."""
    watched_s: float
    """Time since `begin` (s)."""
    late_s: float
    """Total delay of those polls that were later than a bucket lasts (s)."""
    punctual_peaks: tuple[int | None, ...]
    """`peaks` if each port had always sent at its rate; None for a software switch."""


class Laboratory:
    """The network; a context. Entering raises MeasureError if this machine does not allow the
    network or lacks a program."""

    def __init__(self, network: LabNetwork) -> None:
        self.network = network
        self._stack = ExitStack()
        self.switches: Namespace
        self.hosts: list[Namespace] = []
        """Network namespace of each host, by unit number."""
        self._counting: Child
        self._software: list[SoftwareSwitch] = []
        self._towards, self._cut = network.towards, frozenset[str]()
        self._changing = Lock()

    def __enter__(self) -> Self:
        for name in ("ip", "bridge", "tc", *(("ethtool",) if self.network.software else ())):
            tool(name)
        network = self.network
        with ExitStack() as stack:
            switches = self.switches = new_namespace(stack)
            self.hosts = [new_namespace(stack, switches, network.settings) for _ in network.hosts]
            holders = [host.holder for host in self.hosts]
            switches.batch("ip", kernel.cables(network, holders))
            switches.batch("bridge", kernel.forwarding(network))
            switches.batch("tc", kernel.queues(network.queues, network.mtu_bytes))
            for place, (namespace, host) in enumerate(zip(self.hosts, network.hosts, strict=True)):
                namespace.batch("ip", kernel.own(network, host))
                own = network.queues_of_host(place)
                namespace.batch("tc", kernel.queues(own, network.mtu_bytes))
                if network.software:  # there is no network card for checksums
                    namespace.run("ethtool", "-K", "eth0", "tx", "off")
            if network.software:
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
        """Return a launcher whose tasks run in the namespaces of their units' hosts."""
        return Within(launcher, self.hosts)

    def begin(self) -> LabCount:
        """Return the counters and reset all their peaks. Raises MeasureError."""
        for switch in self._software:
            switch.reset_peaks()
        return self._counters("begin")

    def read(self) -> LabCount:
        """Return the counters. Raises MeasureError."""
        return self._counters("read")

    def cut(self, links: Iterable[str]) -> None:
        """Let all frames be dropped at the begin of `links`, by name, and at no others. Raises
        MeasureError."""
        with self._changing:
            before, self._cut = self._cut, frozenset(links)
            places = [(self.switches, list(self.network.queues))]
            places += [(host, self.network.queues_of_host(n)) for n, host in enumerate(self.hosts)]
            for namespace, queues in places:
                changed = [each for each in queues if each.link.name in before ^ self._cut]
                if changed:
                    mtu_bytes = self.network.mtu_bytes
                    namespace.batch("tc", kernel.cut(changed, self._cut, mtu_bytes))

    def forward(self, towards: Forwarding) -> None:
        """Change the forwarding tables of the switches. Raises MeasureError."""
        with self._changing:
            before, self._towards = self._towards, towards
            self.switches.batch("bridge", kernel.rerouting(self.network, before, towards))

    def _watching(self, stack: ExitStack, switches: Namespace) -> Child:
        program = (sys.executable, "-m", "daqloom.lab.counting")
        what = "the queues of the laboratory cannot be read"
        child = stack.enter_context(Child([*switches.enter, *program], what))
        ports = [self._watch(queue) for queue in self.network.queues]
        mtu_bytes = self.network.mtu_bytes
        late_s = max(kernel.bucket_s(queue, mtu_bytes) for queue in self.network.queues)
        child.send({"ports": ports, "every_s": LOOK_S, "late_s": late_s})
        return child

    def _watch(self, queue: Queue) -> dict[str, Any]:
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

    def _counters(self, request: str) -> LabCount:
        self._counting.write_line(request)
        report = self._counting.answer()
        ports = {name: PortCount(**count) for name, count in report["ports"].items()}
        peaks, punctual = list(report["peaks"]), list(report["punctual_peaks"])
        for switch in self._software:
            of_port, peaks[switch.number] = switch.read()
            ports |= {name: ports[name].with_ring(ring) for name, ring in of_port.items()}
            punctual[switch.number] = None
        times_s = (report["watched_s"], report["late_s"])
        return LabCount(ports, tuple(peaks), *times_s, tuple(punctual))
