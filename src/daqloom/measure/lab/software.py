"""The lossless software switch as a switch of a laboratory: `daqloom switch run`, whose devices are
the ends of cables (packet sockets of the kernel by DPDK)."""

import json
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from daqloom.measure import MeasureError
from daqloom.measure.held import Held
from daqloom.measure.lab.network import LabNetwork, Rings

COMMAND = (sys.executable, "-m", "daqloom", "switch")
SLEEP = "50 us"
"""A core that polls would be one of the few that all hosts share."""
DESCRIPTORS, BUFFERS = 64, 16_384
PORT_PACKETS = 4096


@dataclass(frozen=True)
class RingCount:
    """What a ring has counted since its switch was started."""

    held: int
    dropped: int
    peak_bytes: int


def document(network: LabNetwork, rings: Rings) -> str:
    """Return the file of a switch, as JSON values in TOML's form."""
    lines = [
        f"pace_counts = {json.dumps(rings.pace_counts)}",
        "[runs]",
        "huge_pages = false",
        f"sleep = {json.dumps(SLEEP)}",
        f"descriptors = {DESCRIPTORS}",
        f"buffers = {max(BUFFERS, 2 * rings.packets * len(rings.hosts))}",
    ]
    for number, device in enumerate(queue.device for queue in network.queues_of(rings.switch)):
        at = f"net_af_packet{number},iface={device},framecnt=1024,qdisc_bypass=0"
        lines += [f"[ports.{device}]", f"device = {json.dumps(at)}", f"packets = {PORT_PACKETS}"]
    for host in rings.hosts:
        device = network.towards[rings.switch][host]
        lines += [
            f"[rings.{ring_name(host)}]",
            f"port = {json.dumps(device)}",
            f"to = {json.dumps(network.hosts[host].address)}",
            f"packets = {rings.packets}",
        ]
        if rings.pace_bps:
            lines.append(f'rate = "{rings.pace_bps} b/s"')
    # All are known from the beginning: a frame for a host that is not would go out by every port.
    for number, device in enumerate(network.towards[rings.switch]):
        if device:
            lines += [
                f"[addresses.fixed.{ring_name(number)}]",
                f"address = {json.dumps(network.hosts[number].hardware_address)}",
                f"port = {json.dumps(device)}",
            ]
    return "\n".join([*lines, ""])


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
            file = Path(stack.enter_context(tempfile.TemporaryDirectory()), "switch.toml")
            file.write_text(document(self._network, self._rings))
            process = subprocess.Popen(
                [*self._within.enter, *COMMAND, "run", str(file)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            assert process.stderr is not None
            stack.callback(process.stderr.close)
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

    def read(self) -> dict[str, RingCount]:
        """Return what the rings have counted, by the link that begins at their port. Raises
        MeasureError."""
        status = self._status()
        found: dict[str, RingCount] = {}
        queues = self._network.queues_of(self._rings.switch)
        of_device = {queue.device: queue.link.name for queue in queues}
        for ring in status["rings"]:
            link, counts = of_device[ring["port"]], ring["counts"]
            before = found.get(link, RingCount(0, 0, 0))
            found[link] = RingCount(
                before.held + ring["packets"],
                before.dropped + counts["drops"] + counts["memory_drops"],
                max(before.peak_bytes, counts["peak_bytes"]),
            )
        for port in status["ports"]:
            missed = port["device_counts"]["missed"] + port["device_counts"]["no_buffers"]
            if missed:
                raise MeasureError(
                    f"the device {port['name']} of the software switch missed {missed} packets, as "
                    "its core was away for too long: lower the rates, or let nothing else run here"
                )
        return found

    def _status(self) -> Any:
        done = subprocess.run(
            [*self._within.enter, *COMMAND, "status", "--json", "--address", self._address],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise MeasureError(
                "the software switch of the laboratory does not answer: "
                f"{done.stderr.strip()[:300] or 'no reason given'}"
            )
        return json.loads(done.stdout)
