"""A software switch as a process, between files of captured frames."""

import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

DAQLOOM = (sys.executable, "-m", "daqloom")
WITH_SUPPORT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
"""Environment of programs that import `support`."""

# Small, and without huge pages: any user may run it.
RUNS = """
[runs]
huge_pages = false
memory = "64 MB"
buffers = 8191
descriptors = 64
sleep = "1 ms"
"""


def frame(
    to: str = "10.0.0.1",
    source: int = 1,
    destination: int = 2,
    size: int = 100,
    mark: int = 0,
    to_port: int = 5000,
) -> bytes:
    """A UDP datagram in IPv4; `mark` is its last byte."""
    ip_size = size - 14
    addresses = bytes([10, 0, 0, 100]) + bytes(int(part) for part in to.split("."))
    ip = struct.pack("!BBHHHBBH", 0x45, 0, ip_size, 0, 0, 64, 17, 0) + addresses
    udp = struct.pack("!HHHH", 4000, to_port, ip_size - 20, 0)
    macs = (0x020000000000 + destination).to_bytes(6) + (0x020000000000 + source).to_bytes(6)
    head = macs + b"\x08\x00" + ip + udp
    return head + bytes(size - len(head) - 1) + bytes([mark])


def write_pcap(path: Path, frames: Sequence[bytes]) -> None:
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1))
        for each in frames:
            file.write(struct.pack("<IIII", 0, 0, len(each), len(each)) + each)


def read_pcap(path: Path) -> list[bytes]:
    data, frames, at = path.read_bytes(), [], 24
    while at < len(data):
        size = struct.unpack_from("<8xI", data, at)[0]
        frames.append(data[at + 16 : at + 16 + size])
        at += 16 + size
    return frames


def in_a_namespace(program: str, *words: str) -> Any:
    """JSON that a module of `support` prints as root of a network namespace of its own. Skips the
    test where this machine allows none."""
    as_root = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    done = subprocess.run(
        ["unshare", *as_root, "--net", sys.executable, "-m", f"support.{program}", *words],
        capture_output=True,
        text=True,
        timeout=250,
        env=WITH_SUPPORT | {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"},
    )
    if "unshare failed" in done.stderr:
        pytest.skip("this machine allows no network namespaces")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Running:
    """A switch that runs, and the commands that steer it."""

    def __init__(self, process: "subprocess.Popen[str]", address: str) -> None:
        self.process, self.address = process, address

    def command(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*DAQLOOM, "switch", *words, "--address", self.address],
            capture_output=True,
            text=True,
            timeout=60,
        )

    def status(self) -> dict[str, Any]:
        done = self.command("status", "--json")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def until(self, received: int) -> dict[str, Any]:
        """Its status when so many frames have come in."""
        while True:
            status = self.status()
            if status["loop"]["received"] >= received:
                return status

    def last(self) -> dict[str, Any]:
        """Stops it; its status when it has drained."""
        assert self.command("stop").returncode == 0
        return self.result()

    def result(self) -> dict[str, Any]:
        """Its status when it has ended."""
        shown, errors = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, errors
        found: dict[str, Any] = json.loads(shown)
        return found


@contextmanager
def switch(path: Path, *options: str, enter: Sequence[str] = ()) -> Iterator[Running]:
    """A switch as the file at `path` describes it, run by `enter`."""
    process = subprocess.Popen(
        [*enter, *DAQLOOM, "switch", "run", str(path), "--json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = process.stderr.readline()
        found = re.search(r"listens at ([^;]+);", line)
        assert found, line + process.stderr.read()
        yield Running(process, found[1])
    finally:
        process.kill()
        process.communicate()


def two_ports(folder: Path, frames: list[bytes], more: str = "") -> Path:
    """The file of a switch at whose first port `frames` come in."""
    write_pcap(folder / "in.pcap", frames)
    write_pcap(folder / "none.pcap", [])
    path = folder / "switch.toml"
    path.write_text(f"""
title = "test"
{RUNS}
[ports.up]
device = "net_pcap0,rx_pcap={folder}/in.pcap,tx_pcap={folder}/up.pcap"
[ports.down]
device = "net_pcap1,rx_pcap={folder}/none.pcap,tx_pcap={folder}/down.pcap"
{more}
""")
    return path


def database_rings(remote: str) -> str:
    """Two rings of port `down` whose paces are those of bridge `daq` in a database."""
    return f"""
[rings.one]
port = "down"
to = "10.0.0.1"
[rings.two]
port = "down"
to = "10.0.0.2"
[control]
ovsdb = "{remote}"
bridge = "daq"
"""
