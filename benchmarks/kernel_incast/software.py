"""The real software switch between the namespaces of the rack: DPDK over packet sockets.

It sleeps while nothing is due, as a core that polls would be one of the few that the hosts share.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from network import RECEIVER, SWITCH, command, inside

HEAD = """
[runs]
huge_pages = false
sleep = "50 us"
descriptors = 64
buffers = 16384

[rings.receiver]
port = "to-receiver"
to = "10.0.0.1"
rate = "{rate_bps} b/s"
packets = 10000
"""
PORT = """
[ports.{name}]
device = "net_af_packet{number},iface={name},framecnt=1024,qdisc_bypass=1"
packets = 1024
"""


class SoftwareSwitch:
    """The program of the switch; a context manager."""

    def __init__(self, daqloom: str, ports: Sequence[str], rate_bps: int) -> None:
        self._daqloom, self._folder = daqloom, tempfile.TemporaryDirectory()
        file = Path(self._folder.name, "switch.toml")
        tables = [PORT.format(name=name, number=i) for i, name in enumerate(ports)]
        file.write_text(HEAD.format(rate_bps=rate_bps) + "".join(tables))
        for host in (RECEIVER, *(name.removeprefix("to-") for name in ports[1:])):
            # The other end would get packets whose checksums a network card was to fill in.
            command(*inside(host, "ethtool", "-K", "eth0", "tx", "off"))
        # Before the senders, which are of a real-time class as well, so that the machine's cores
        # are not what limits the switch.
        words = ["chrt", "-f", "2", daqloom, "switch", "run", str(file)]
        self._process = subprocess.Popen(
            inside(SWITCH, *words), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        assert self._process.stderr
        said = self._process.stderr.readline()
        found = re.search(r"listens at ([^;]+);", said)
        if not found:
            raise RuntimeError(f"the software switch does not start: {said.strip()}")
        self._address = found[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def set_buffer(self, packets: int) -> None:
        """Sets the ring of the receiver."""
        self._ask("set", f"rings.receiver.packets={packets}")

    def set_pace(self, rate_bps: int) -> None:
        """Sets the pace of the receiver's ring."""
        self._ask("set", f"rings.receiver.rate={rate_bps} b/s")

    def counters(self) -> Mapping[str, int]:
        """Packets taken into the ring and dropped since it was made, and those that wait."""
        status = json.loads(self._ask("status", "--json"))
        missed = sum(
            port["device_counts"]["missed"] + port["device_counts"]["no_buffers"]
            for port in status["ports"]
        )
        if missed:
            raise RuntimeError(f"the devices of the software switch missed {missed} packets")
        ring = next(each for each in status["rings"] if each["name"] == "receiver")
        return {
            "sent": ring["counts"]["packets"] - ring["packets"],
            "dropped": ring["counts"]["drops"] + ring["counts"]["memory_drops"],
            "waiting": ring["packets"],
        }

    def _ask(self, *words: str) -> str:
        return command(*inside(SWITCH, self._daqloom, "switch", *words, "--address", self._address))
