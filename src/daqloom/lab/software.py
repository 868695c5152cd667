"""Software switch of a laboratory: `daqloom switch run` with cable ends as its devices (packet
sockets of the kernel, used by DPDK)."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self

from daqloom.base.claims import claimed_folder
from daqloom.lab.network import LabNetwork, Rings
from daqloom.machine.namespace import Namespace
from daqloom.results.errors import MeasureError
from daqloom.scenario.file.show import document_text
from daqloom.scenario.quantities import SIZE
from daqloom.scenario.schema.switches import PacketBuffer

COMMAND = (sys.executable, "-m", "daqloom", "switch")
SLEEP = "50 us"
"""Sleep time of the switch, which must share its core with hosts."""
DESCRIPTORS, BUFFERS, MOST_BUFFERS = 64, 16_384, 131_072
SMALLEST_FRAME_BYTES = 60
"""Least size of a packet in memory, excluding the check sequence."""
PORT_PACKETS = 4096
DEVICE = "net_af_packet{},iface={},framecnt=1024,qdisc_bypass=0"


@dataclass(frozen=True)
class RingCount:
    """Counters of a port's rings since the switch started; the peak since its last reset."""

    held: int
    dropped: int
    peak_bytes: int


def document(network: LabNetwork, rings: Rings) -> str:
    """Return the text of a software switch's file."""
    buffer, packets = rings.buffer, _packets(rings.buffer)
    queues, towards = network.queues_of(rings.switch), network.towards[rings.switch]
    rates = {queue.device: queue.rate_bps for queue in queues}
    is_shared = buffer.architecture == "shared-memory"
    buffers = min(MOST_BUFFERS, max(BUFFERS, 2 * packets * len(rings.hosts)))
    runs = {"huge_pages": False, "sleep": SLEEP, "descriptors": DESCRIPTORS, "buffers": buffers}
    return document_text(
        {
            "pace_counts": buffer.pace_counts if buffer.pace else "wire",
            "runs": runs,
            **({"shared_memory": shared_memory(buffer)} if is_shared else {}),
            "ports": {
                queue.device: {
                    "device": DEVICE.format(number, queue.device),
                    "packets": PORT_PACKETS,
                }
                for number, queue in enumerate(queues)
            },
            "rings": {
                ring_name(host): {
                    "port": towards[host],
                    "to": network.hosts[host].address,
                    "packets": packets,
                    # Not faster than the link: buffers behind the ring would fill.
                    "rate": f"{buffer.pace or rates[towards[host]]} b/s",
                }
                for host in rings.hosts
            },
            # All addresses are fixed: frames to unknown addresses would leave by every port.
            "addresses": {
                "fixed": {
                    ring_name(host): {"address": to.hardware_address, "port": device}
                    for host, (to, device) in enumerate(zip(network.hosts, towards, strict=True))
                    if device
                }
            },
        }
    )


def _packets(buffer: PacketBuffer) -> int:
    """Return the limit of a ring in packets; for shared memory, the limit of the whole memory."""
    if buffer.architecture == "software":
        return buffer.queue_packets
    return buffer.buffer // (buffer.cell_size or SMALLEST_FRAME_BYTES)


def shared_memory(buffer: PacketBuffer) -> dict[str, Any]:
    """Return the table `shared_memory` in the file of a software switch that replaces a
    shared-memory switch."""
    sizes = ("buffer", "dedicated", "port_limit", "cell_size", "cell_metadata")
    table = {name: SIZE.format(getattr(buffer, name)) for name in sizes}
    return {**table, "ports": buffer.ports, "alpha": buffer.alpha}


def ring_name(host: int) -> str:
    """Return the name of the ring of a host."""
    return f"host{host}"


class SoftwareSwitch:
    """The switch program; a context. Entering raises MeasureError if the program does not start."""

    def __init__(self, network: LabNetwork, rings: Rings, within: Namespace) -> None:
        self._network, self._rings, self._within = network, rings, within
        self._stack = ExitStack()
        self._address = ""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            folder = stack.enter_context(claimed_folder())
            file = folder / "switch.toml"
            file.write_text(document(self._network, self._rings))
            process = subprocess.Popen(
                [*self._within.enter, *COMMAND, "run", str(file), "--while-input"],
                # Folder of DPDK's files: root in a user namespace cannot write to /var/run.
                env={"RUNTIME_DIRECTORY": str(folder), **os.environ},
                stdin=subprocess.PIPE,  # the switch ends with this process
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            assert process.stderr is not None
            assert process.stdin is not None
            stack.callback(process.stderr.close)
            stack.callback(process.stdin.close)
            first = process.stderr.readline()
            _, found, rest = first.partition("listens at ")
            if not found:
                raise MeasureError(
                    "the software switch of the laboratory does not start: "
                    f"{first.strip()[:300] or 'no reason given'}"
                )
            self._address = rest.partition(";")[0].strip()
            self._stack = stack.pop_all()
        return self

    @property
    def number(self) -> int:
        """Index of the switch in the network."""
        return self._rings.switch

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def reset_peaks(self) -> None:
        """Reset the peaks. Raises MeasureError."""
        self._command("forget-peaks")

    def read(self) -> tuple[dict[str, RingCount], int]:
        """Return the counters of rings, by the link that begins at their port, and the switch's
        peak: of the shared memory, or else the sum of the ports' peaks. Raises MeasureError."""
        status = json.loads(self._command("status", "--json"))
        rings: dict[str, RingCount] = {}
        queues = self._network.queues_of(self._rings.switch)
        of_device = {queue.device: queue.link.name for queue in queues}
        for ring in status["rings"]:
            link, counts = of_device[ring["port"]], ring["counts"]
            before = rings.get(link, RingCount(0, 0, 0))
            rings[link] = RingCount(
                before.held + ring["packets"],
                before.dropped + counts["drops"] + counts["memory_drops"],
                before.peak_bytes + counts["peak_bytes"],
            )
        for port in status["ports"]:
            missed = port["device_counts"]["missed"] + port["device_counts"]["no_buffers"]
            if missed:
                raise MeasureError(
                    f"the device {port['name']} of the software switch missed {missed} packets, as "
                    "its core was away for too long: lower the rates, or let nothing else run here"
                )
        if self._rings.buffer.architecture == "shared-memory":
            return rings, status["memory"]["shared_peak_bytes"]
        return rings, sum(ring.peak_bytes for ring in rings.values())

    def _command(self, *words: str) -> str:
        done = subprocess.run(
            [*self._within.enter, *COMMAND, *words, "--address", self._address],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise MeasureError(
                "the software switch of the laboratory does not answer: "
                f"{done.stderr.strip()[:300] or 'no reason given'}"
            )
        return done.stdout
