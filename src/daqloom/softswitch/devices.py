"""Locks of a switch's devices, because two switches on one device would send every frame twice.

A lock is an abstract Unix socket. It belongs to the network namespace, as interfaces do, and it
disappears with its process."""

import hashlib
import os
import re
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from daqloom.results.errors import MeasureError

_INTERFACES = ("iface", "tx_iface", "rx_iface", "rx_iface_in")
_PCI = re.compile(r"(?:([0-9a-f]{4}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.IGNORECASE)
_CREDENTIALS = struct.Struct("3i")
"""Layout of SO_PEERCRED: process, user and group."""


def identities(device: str) -> Iterator[str]:
    """Yield the exclusive resources of a DPDK device: a card, interfaces, written files, or one end
    of a socket. Devices in memory have none."""
    driver, _, text = device.partition(",")
    if pci := _PCI.fullmatch(driver):
        yield f"card {(pci[1] or '0000').lower()}:{pci[2].lower()}"
        return
    arguments = dict(each.partition("=")[::2] for each in text.split(",") if each)
    if driver.startswith(("net_vhost", "eth_vhost")):
        role = "client" if arguments.get("client", "0") != "0" else "server"
        yield f"socket {os.path.realpath(arguments.get('iface', ''))} as {role}"
        return
    for key in _INTERFACES:
        if key in arguments:
            yield f"interface {_interface(arguments[key])}"
    if "tx_pcap" in arguments:
        yield f"file {os.path.realpath(arguments['tx_pcap'])}"
    if driver.startswith("net_memif"):
        path = arguments.get("socket", "/run/memif.sock")
        where = path if arguments.get("socket-abstract") != "no" else os.path.realpath(path)
        role = "server" if arguments.get("role") in ("server", "master") else "client"
        yield f"socket {where} of number {arguments.get('id', '0')} as {role}"
    if driver.startswith(("net_virtio_user", "virtio_user")) and "iface" not in arguments:
        yield f"socket {os.path.realpath(arguments.get('path', ''))} as client"


@contextmanager
def lock(devices: Mapping[str, str]) -> Iterator[None]:
    """Hold the locks of devices, given by port name. Raises MeasureError if another switch or port
    uses one of them."""
    with ExitStack() as stack:
        taken: dict[str, str] = {}
        for port, device in devices.items():
            for identity in dict.fromkeys(identities(device)):
                if identity in taken:
                    raise MeasureError(
                        f"ports.{port} and ports.{taken[identity]} have the same {identity}; each "
                        "port needs one of its own"
                    )
                taken[identity] = port
                where = f"ports.{port}.device = {device[:80]}"
                stack.enter_context(locked_as(f"device {identity}", where))
        yield


@contextmanager
def locked_as(name: str, where: str) -> Iterator[None]:
    """Hold the lock called `name`. Raises MeasureError, whose message begins with `where`."""
    address = b"\0daqloom/switch/" + hashlib.sha256(name.encode()).hexdigest()[:32].encode()
    with socket.socket(socket.AF_UNIX) as lock:
        try:
            lock.bind(address)
        except OSError:
            raise MeasureError(
                f"{where} is in use by another switch, {_holder(address)}; stop that one, or "
                "choose another one here"
            ) from None
        lock.listen(4096)  # connections that identify the holder; none is accepted
        yield


def process_and_user(connection: socket.socket) -> tuple[int, int]:
    """Return process and user at the other end of a Unix socket. Raises OSError."""
    size = _CREDENTIALS.size
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    process, user, _ = _CREDENTIALS.unpack(found)
    return process, user


def _interface(name: str) -> str:
    """Return the index of an interface, which is equal for all of its names, else `name`."""
    try:
        return f"number {socket.if_nametoindex(name)}"
    except OSError:
        return name  # the driver makes or refuses it


def _holder(address: bytes) -> str:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(address)
            return f"process {process_and_user(probe)[0]}"
        except OSError:
            return "whose process is not known"
