"""Checks of network cards: position (PCIe, NUMA), queues and settings."""

import array
import fcntl
import re
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from daqloom.machine.findings import Finding
from daqloom.machine.machine import Machine
from daqloom.machine.packages import packages_with
from daqloom.scenario.schema.measure import cores as cores_in

_SIOCETHTOOL = 0x8946
_COALESCING = 0x0E
_RING_PARAMETERS = 0x10
_RECEIVE_OFFLOAD = 0x2B  # generic receive offload (GRO)
_FLAGS = 0x25
_LARGE_RECEIVE_OFFLOAD = 1 << 15

_PCI_EXPRESS = 0x10
"""Number of the PCI Express capability; 8 bytes into it is the device control register."""
_RELAXED_ORDERING = 0x10
"""Bit of the device control register."""
LONG_DELAY_US = 32
SHORT_RING = 512
"""Least number of descriptors, which hold the packets of about one turn of a core."""


@dataclass(frozen=True)
class CardSettings:
    """Settings of a network card's driver; None: not reported."""

    receive_descriptors: int | None = None
    merges_packets: bool | None = None
    """Whether the card merges packets of a flow before programs see them (GRO, LRO)."""
    interrupt_delay_us: int | None = None
    """Longest delay of an interrupt after a packet; 0 if the driver adapts it to the load."""


def settings_of(card: str) -> CardSettings:
    """Return the settings of a network card of this machine, as `ethtool -g`, `-k` and `-c` do."""
    rings = _ethtool(card, struct.pack("9I", _RING_PARAMETERS, *[0] * 8))
    merges = [
        bool(struct.unpack("2I", answer)[1] & mask)
        for command, mask in ((_RECEIVE_OFFLOAD, 1), (_FLAGS, _LARGE_RECEIVE_OFFLOAD))
        if (answer := _ethtool(card, struct.pack("2I", command, 0))) is not None
    ]
    descriptors = None if rings is None else struct.unpack("9I", rings)[5]
    moderation = _ethtool(card, struct.pack("23I", _COALESCING, *[0] * 22))
    values = struct.unpack("23I", moderation) if moderation else None
    delay_us = None if values is None else 0 if values[10] else values[1]  # adaptive, fixed
    return CardSettings(descriptors, any(merges) if merges else None, delay_us)


def _ethtool(card: str, request: bytes) -> bytes | None:
    """Return the driver's answer to an ethtool request; None if the driver does not support it."""
    answer = array.array("B", request)
    address, _ = answer.buffer_info()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        try:
            fcntl.ioctl(opened, _SIOCETHTOOL, struct.pack("16sP16x", card.encode(), address))
        except OSError:
            return None
    return answer.tobytes()


def cards_of(machine: Machine) -> list[str]:
    """Return the names of a machine's network cards, excluding virtual devices."""
    folder = "sys/class/net"
    return [name for name in machine.names(folder) if machine.names(f"{folder}/{name}/device")]


def examine_card(machine: Machine, card: str, settings: CardSettings) -> Iterator[Finding]:
    """Yield the findings of one card."""
    device = f"sys/class/net/{card}/device"
    if bus := _pcie(machine, card, device):
        yield bus
    yield _node(machine, card, device)
    yield _queues(machine, card)
    if settings.receive_descriptors is not None:
        yield _descriptors(card, settings.receive_descriptors)
    if settings.merges_packets is not None:
        yield _merging(card, settings.merges_packets)
    if settings.interrupt_delay_us is not None:
        yield _moderation(card, settings.interrupt_delay_us)
    if (relaxed := relaxed_ordering(machine.content(f"{device}/config")[:4096])) is not None:
        yield _ordering(card, relaxed)


def _pcie(machine: Machine, card: str, device: str) -> Finding | None:
    def lanes(which: str) -> tuple[float, int] | None:
        speed = re.match(r"[0-9]{1,6}(\.[0-9]{1,3})?", machine.text(f"{device}/{which}_link_speed"))
        width = machine.number(f"{device}/{which}_link_width")
        return (float(speed[0]), width) if speed and width is not None else None

    now, most = lanes("current"), lanes("max")
    if now is None or most is None:
        return None
    shown = f"{now[0]:g} GT/s on {now[1]} lanes"
    check = f"{card}: PCIe"
    if now >= most or now[0] * now[1] >= most[0] * most[1]:
        return Finding(check, "ok", f"{shown}, as much as the card can.")
    means = (
        f"{shown}, and the card can {most[0]:g} GT/s on {most[1]}: it cannot carry its full rate."
    )
    fix = "Put the card into a slot with as many lanes of that speed, and check the BIOS setup."
    return Finding(check, "warn", means, fix)


def _node(machine: Machine, card: str, device: str) -> Finding:
    check, node = f"{card}: NUMA node", machine.text(f"{device}/numa_node")
    if len(machine.cores("sys/devices/system/node/online")) <= 1 or node in ("", "-1"):
        return Finding(check, "ok", "All cores are as close to it.")
    cores = machine.text(f"sys/devices/system/node/node{node}/cpulist")
    isolated, near = set(machine.cores("sys/devices/system/cpu/isolated")), set(cores_in(cores))
    if not isolated or not near or isolated & near:
        return Finding(check, "ok", f"Node {node}: use its cores, {cores}, for this card.")
    means = f"It is on node {node}, and no isolated core is: packets cross between processors."
    return Finding(check, "warn", means, f"Isolate cores of node {node} ({cores}).")


def _queues(machine: Machine, card: str) -> Finding:
    check = f"{card}: receive queues"
    queues = [q for q in machine.names(f"sys/class/net/{card}/queues") if q.startswith("rx-")]
    if len(queues) != 1:
        return Finding(check, "ok", f"{len(queues)}: flows are spread over cores (RSS).")
    fix = f"Run `ethtool -L {card} combined N` ({packages_with('ethtool')}), if the card can (RSS)."
    return Finding(check, "warn", "One: a single core receives all of its packets.", fix)


def _descriptors(card: str, count: int) -> Finding:
    check = f"{card}: descriptors"
    if count >= SHORT_RING:
        return Finding(check, "ok", f"{count}, for receiving bursts of this size.")
    means = f"{count} for receiving: a core that is away for {count} packets loses the next ones."
    fix = (
        f"Run `ethtool -G {card} rx {SHORT_RING}` ({packages_with('ethtool')}); more than 4096 "
        "keep packets where nothing paces them."
    )
    return Finding(check, "warn", means, fix)


def _merging(card: str, merges: bool) -> Finding:
    check = f"{card}: offloads"
    if not merges:
        return Finding(check, "ok", "It gives programs the packets as they come.")
    means = (
        "It merges packets (GRO or LRO), which helps hosts; a software switch on packet sockets "
        f"would drop the merged ones (`ethtool -K {card} gro off lro off`), one on the card itself "
        "does not see it."
    )
    return Finding(check, "ok", means)


def _moderation(card: str, delay_us: int) -> Finding:
    check = f"{card}: interrupts"
    if delay_us <= LONG_DELAY_US:
        means = f"At most {delay_us} us late." if delay_us else "At once, or as the load demands."
        return Finding(check, "ok", means)
    fix = f"Run `ethtool -C {card} adaptive-rx on` ({packages_with('ethtool')})."
    return Finding(check, "warn", f"Up to {delay_us} us late, as are messages over TCP.", fix)


def relaxed_ordering(config: bytes) -> bool | None:
    """Return whether a PCIe device may reorder its writes, from its configuration space; None
    without the PCI Express capability, as for users other than root."""
    place, visited = (config[0x34] if len(config) > 0x34 else 0), 0
    while 0x40 <= place <= len(config) - 10 and visited < 48:
        if config[place] == _PCI_EXPRESS:
            return bool(config[place + 8] & _RELAXED_ORDERING)
        place, visited = config[place + 1], visited + 1
    return None


def _ordering(card: str, relaxed: bool) -> Finding:
    check = f"{card}: ordering"
    if relaxed:
        return Finding(check, "ok", "PCIe lets its writes to memory overtake each other.")
    fix = "Enable relaxed ordering in the BIOS setup and by `mlxconfig set PCI_WR_ORDERING=1`."
    return Finding(check, "warn", "Each write to memory waits for the one before.", fix)
