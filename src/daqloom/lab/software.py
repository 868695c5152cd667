"""The lossless software switch as a switch of a laboratory: `daqloom switch run`, whose devices are
the ends of cables (packet sockets of the kernel by DPDK)."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self

from daqloom.base.claims import claimed_folder
from daqloom.lab.network import LabNetwork, Rings
from daqloom.machine.namespace import Held
from daqloom.results.errors import MeasureError
from daqloom.scenario.quantities import SIZE
from daqloom.scenario.schema.switches import PacketBuffer

COMMAND = (sys.executable, "-m", "daqloom", "switch")
SLEEP = "50 us"
"""A core that polls would be one of the few that all hosts share."""
DESCRIPTORS, BUFFERS, MOST_BUFFERS = 64, 16_384, 131_072
SMALLEST_FRAME_BYTES = 60
"""Without check sequence: each packet takes so much of a memory, at least."""
PORT_PACKETS = 4096


@dataclass(frozen=True)
class RingCount:
    """What the rings of a port have counted since their switch was started; the peak, since peaks
    were forgotten."""

    held: int
    dropped: int
    peak_bytes: int


def document(network: LabNetwork, rings: Rings) -> str:
    """Return the file of a switch, as JSON values in TOML's form."""
    of, packets = rings.buffer, _packets(rings.buffer)
    counts = of.pace_counts if of.pace else "wire"
    lines = [
        f"pace_counts = {json.dumps(counts)}",
        "[runs]",
        "huge_pages = false",
        f"sleep = {json.dumps(SLEEP)}",
        f"descriptors = {DESCRIPTORS}",
        f"buffers = {min(MOST_BUFFERS, max(BUFFERS, 2 * packets * len(rings.hosts)))}",
    ]
    if of.architecture == "shared-memory":
        lines.append("[shared_memory]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in shared_memory(of).items()]
    rates = {}
    for number, queue in enumerate(network.queues_of(rings.switch)):
        rates[queue.device] = queue.rate_bps
        at = f"net_af_packet{number},iface={queue.device},framecnt=1024,qdisc_bypass=0"
        lines += [f"[ports.{queue.device}]", f"device = {json.dumps(at)}"]
        lines.append(f"packets = {PORT_PACKETS}")
    for host in rings.hosts:
        device = network.towards[rings.switch][host]
        lines += [
            f"[rings.{ring_name(host)}]",
            f"port = {json.dumps(device)}",
            f"to = {json.dumps(network.hosts[host].address)}",
            f"packets = {packets}",
            # No faster than the link: behind the rings there is room for more.
            f'rate = "{of.pace or rates[device]} b/s"',
        ]
    # All are known from the beginning: a frame for a host that is not would go out by every port.
    for number, device in enumerate(network.towards[rings.switch]):
        if device:
            lines += [
                f"[addresses.fixed.{ring_name(number)}]",
                f"address = {json.dumps(network.hosts[number].hardware_address)}",
                f"port = {json.dumps(device)}",
            ]
    return "\n".join([*lines, ""])


def _packets(of: PacketBuffer) -> int:
    """Return the packets that a ring may hold; of a shared memory, as many as that may."""
    if of.architecture == "software":
        return of.queue_packets
    return of.buffer // (of.cell_size or SMALLEST_FRAME_BYTES)


def shared_memory(of: PacketBuffer) -> dict[str, Any]:
    """Return the table of a software switch's file that makes it stand in for a switch whose ports
    share a memory."""
    return {
        "buffer": SIZE.format(of.buffer),
        "dedicated": SIZE.format(of.dedicated),
        "ports": of.ports,
        "alpha": of.alpha,
        "port_limit": SIZE.format(of.port_limit),
        "cell_size": SIZE.format(of.cell_size),
        "cell_metadata": SIZE.format(of.cell_metadata),
    }


def ring_name(host: int) -> str:
    """Return the name of the ring of a host."""
    return f"host{host}"


class SoftwareSwitch:
    """The program; a context. Raises MeasureError on entering where it does not start."""

    def __init__(self, network: LabNetwork, rings: Rings, within: Held) -> None:
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
                # DPDK's own files: as root of a user namespace it would write to /var/run.
                env={"RUNTIME_DIRECTORY": str(folder), **os.environ},
                stdin=subprocess.PIPE,  # it ends with this process, however that ends
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
            said = process.stderr.readline()
            _, found, rest = said.partition("listens at ")
            if not found:
                raise MeasureError(
                    "the software switch of the laboratory does not start: "
                    f"{said.strip()[:300] or 'no reason given'}"
                )
            self._address = rest.partition(";")[0].strip()
            self._stack = stack.pop_all()
        return self

    @property
    def number(self) -> int:
        """Its place among the switches."""
        return self._rings.switch

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def forget_peaks(self) -> None:
        """Let it count peaks from here on. Raises MeasureError."""
        self._told("forget-peaks")

    def read(self) -> tuple[dict[str, RingCount], int]:
        """Return what the rings have counted, by the link that begins at their port, and the most
        bytes that the switch held: at one time where its ports share a memory, else the sum of the
        ports' peaks. Raises MeasureError."""
        status = json.loads(self._told("status", "--json"))
        found: dict[str, RingCount] = {}
        queues = self._network.queues_of(self._rings.switch)
        of_device = {queue.device: queue.link.name for queue in queues}
        for ring in status["rings"]:
            link, counts = of_device[ring["port"]], ring["counts"]
            before = found.get(link, RingCount(0, 0, 0))
            found[link] = RingCount(
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
            return found, status["memory"]["shared_peak_bytes"]
        return found, sum(ring.peak_bytes for ring in found.values())

    def _told(self, *words: str) -> str:
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
