"""Placement of a unit on its machine: cores, NUMA node and network device, from `hosts.units`."""

import ctypes
import errno
import os
import platform
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass

from daqloom.machine.machine import Machine
from daqloom.results.errors import MeasureError
from daqloom.scenario.schema.hosts import UnitPlace
from daqloom.scenario.schema.measure import cores as cores_in

NODES, CLASS, PCI = "sys/devices/system/node", "sys/class", "sys/bus/pci/devices"
_SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}
"""Numbers of the system call set_mempolicy(2), for which the C library has no function."""
_PREFERRED = 1


@dataclass(frozen=True)
class Device:
    """Network device of a machine."""

    name: str
    """PCI address; the given name for a virtual interface."""
    node: int | None
    """NUMA node; None if all nodes are as close."""
    interfaces: tuple[str, ...]
    rdma: tuple[str, ...]
    """RDMA devices, which are libfabric's domains."""


@dataclass(frozen=True)
class Placement:
    """Placement of a unit on this machine."""

    cores: frozenset[int]
    """Cores of the unit's threads; empty: any."""
    node: int | None
    """NUMA node of its memory; None: that of the core that first accesses it."""
    device: Device | None
    warnings: tuple[str, ...]


def find_device(machine: Machine, name: str) -> Device | None:
    """Return the device with the name of an interface, RDMA device or PCI address; None if this
    machine has none."""
    net, rdma, pci = f"{CLASS}/net/{name}", f"{CLASS}/infiniband/{name}", f"{PCI}/{name}"
    folders = {net: f"{net}/device", rdma: f"{rdma}/device", pci: pci}
    folder = next((at for listed, at in folders.items() if machine.names(listed)), None)
    if folder is None:
        return None
    slot = re.search(r"^PCI_SLOT_NAME=([0-9a-f:.]{1,20})$", machine.text(f"{folder}/uevent"), re.M)
    return Device(
        slot[1] if slot else name,
        machine.number(f"{folder}/numa_node"),  # -1: unknown
        (name,) if machine.names(net) else tuple(machine.names(f"{folder}/net")),
        (name,) if machine.names(rdma) else tuple(machine.names(f"{folder}/infiniband")),
    )


def placement_of(machine: Machine, place: UnitPlace, allowed: Collection[int]) -> Placement:
    """Return the placement of a unit; `allowed`: cores that the process may use. Raises
    MeasureError for cores, a node or a device that this machine lacks."""
    own, usable, numa = frozenset(cores_in(place.cores)), frozenset(allowed), place.numa
    nodes = {
        node: frozenset(machine.cores(f"{NODES}/node{node}/cpulist"))
        for node in machine.cores(f"{NODES}/online")
    } or {0: usable}  # a kernel without NUMA
    if numa >= 0 and not own:
        own = nodes.get(numa, frozenset()) & usable
    device = find_device(machine, place.device) if place.device else None
    lacks = ""
    if numa >= 0 and not (own and numa in nodes):
        lacks = f"no core of NUMA node {numa}; this machine has nodes {', '.join(map(str, nodes))}"
    elif missing := own - usable:
        lacks = f"no core {min(missing)}; it may use {', '.join(map(str, sorted(usable)[:64]))}"
    elif place.device and not device:
        lacks = f"no device {place.device}; /sys/class/net and /sys/class/infiniband list devices"
    if lacks:
        raise MeasureError(f"hosts.units, measure.cores: unit {place.unit} has here {lacks}")
    homes = {node for node, cores in nodes.items() if own & cores}
    node = numa if numa >= 0 else next(iter(homes)) if len(homes) == 1 else None
    distant = _distant(sorted(homes), node, device)
    return Placement(own, node, device, tuple(f"unit {place.unit}: {each}" for each in distant))


def _distant(homes: list[int], node: int | None, device: Device | None) -> Iterator[str]:
    """Yield sentences on parts of a unit that are on different NUMA nodes."""
    cores = f"its cores are on NUMA node {', '.join(map(str, homes[:16]))}"
    if homes and node is not None and homes != [node]:
        yield f"{cores}, and its memory is on node {node}"
    if homes and device and device.node is not None and homes != [device.node]:
        yield f"{cores}, and its device {device.name} is on node {device.node}"


def apply(placement: Placement) -> None:
    """Pin all threads of this process to its cores, and let this thread, and threads that it starts
    later, allocate memory on the node while there is some. Raises MeasureError."""
    for thread in os.listdir("/proc/self/task") if placement.cores else ():
        with suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(thread), placement.cores)
    call = _SET_MEMPOLICY.get(platform.machine())
    if placement.node is None or call is None:
        return
    nodes = (ctypes.c_ulong * 16)()  # 1024 bits
    nodes[placement.node // 64] = 1 << placement.node % 64
    refused = ctypes.CDLL(None, use_errno=True).syscall(call, _PREFERRED, nodes, 1025)
    if refused and ctypes.get_errno() != errno.ENOSYS:  # a kernel without NUMA
        raise MeasureError(
            f"set_mempolicy refuses NUMA node {placement.node}, errno {ctypes.get_errno()}; leave "
            "hosts.units[].numa out, or allow this call (containers: --cap-add SYS_NICE)"
        )
