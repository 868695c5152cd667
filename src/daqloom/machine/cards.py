"""Checks of network cards: position (PCIe, NUMA), queues and settings."""

import array
import fcntl
import re
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from daqloom.machine.machine import Machine
from daqloom.machine.packages import packages_with

_SIOCETHTOOL = 0x8946
_RING_PARAMETERS = 0x10
_RECEIVE_OFFLOAD = 0x2B  # generic receive offload (GRO)
_FLAGS = 0x25
_LARGE_RECEIVE_OFFLOAD = 1 << 15

SHORT_RING = 512
"""Least number of descriptors, which hold the packets of about one turn of a core."""


@dataclass(frozen=True)
class CardSettings:
    """Settings of a network card's driver; None: not reported."""

    receive_descriptors: int | None = None
    merges_packets: bool | None = None
    """Whether the card merges packets of a flow before programs see them (GRO, LRO)."""


def settings_of(card: str) -> CardSettings:
    """Return the settings of a network card of this machine, as shown by `ethtool -g` and `-k`."""
    rings = _ethtool(card, struct.pack("9I", _RING_PARAMETERS, *[0] * 8))
    merges = [
        bool(struct.unpack("2I", answer)[1] & mask)
        for command, mask in ((_RECEIVE_OFFLOAD, 1), (_FLAGS, _LARGE_RECEIVE_OFFLOAD))
        if (answer := _ethtool(card, struct.pack("2I", command, 0))) is not None
    ]
    descriptors = None if rings is None else struct.unpack("9I", rings)[5]
    return CardSettings(descriptors, any(merges) if merges else None)


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


@dataclass(frozen=True)
class CardFinding:
    """Finding of one check of a card; see `daqloom.machine.doctor.Finding`."""

    check: str
    is_well: bool
    means: str
    fix: str = ""


def cards_of(machine: Machine) -> list[str]:
    """Return the names of a machine's network cards, excluding virtual devices."""
    folder = "sys/class/net"
    return [name for name in machine.names(folder) if machine.names(f"{folder}/{name}/device")]


def examine_card(machine: Machine, card: str, settings: CardSettings) -> Iterator[CardFinding]:
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


def _pcie(machine: Machine, card: str, device: str) -> CardFinding | None:
    def lanes(which: str) -> tuple[float, int] | None:
        speed = re.match(r"[\d.]+", machine.text(f"{device}/{which}_link_speed"))
        width = machine.text(f"{device}/{which}_link_width")
        return (float(speed[0]), int(width)) if speed and width.isdigit() else None

    now, most = lanes("current"), lanes("max")
    if now is None or most is None:
        return None
    shown = f"{now[0]:g} GT/s on {now[1]} lanes"
    check = f"{card}: PCIe"
    if now >= most or now[0] * now[1] >= most[0] * most[1]:
        return CardFinding(check, True, f"{shown}, as much as the card can.")
    return CardFinding(
        check,
        False,
        f"{shown}, and the card can {most[0]:g} GT/s on {most[1]}: it cannot carry its full rate.",
        "Put the card into a slot with as many lanes of that speed, and check the firmware's "
        "settings for the slot.",
    )


def _node(machine: Machine, card: str, device: str) -> CardFinding:
    check, node = f"{card}: NUMA node", machine.text(f"{device}/numa_node")
    if len(machine.cores("sys/devices/system/node/online")) <= 1 or node in ("", "-1"):
        return CardFinding(check, True, "All cores are as close to it.")
    cores = machine.text(f"sys/devices/system/node/node{node}/cpulist")
    isolated = set(machine.cores("sys/devices/system/cpu/isolated"))
    near = set(machine.cores(f"sys/devices/system/node/node{node}/cpulist"))
    if not isolated or not near or isolated & near:
        return CardFinding(check, True, f"Node {node}: use its cores, {cores}, for this card.")
    return CardFinding(
        check,
        False,
        f"It is on node {node}, and no isolated core is: each packet crosses between processors.",
        f"Isolate cores of node {node} ({cores}).",
    )


def _queues(machine: Machine, card: str) -> CardFinding:
    check = f"{card}: receive queues"
    queues = [q for q in machine.names(f"sys/class/net/{card}/queues") if q.startswith("rx-")]
    if len(queues) != 1:
        return CardFinding(check, True, f"{len(queues)}: flows are spread over cores (RSS).")
    return CardFinding(
        check,
        False,
        "One: a single core receives all of its packets.",
        f"Run `ethtool -L {card} combined N` ({packages_with('ethtool')}), if the card can spread "
        "flows (RSS).",
    )


def _descriptors(card: str, count: int) -> CardFinding:
    check = f"{card}: descriptors"
    if count >= SHORT_RING:
        return CardFinding(
            check,
            True,
            f"{count} for receiving: the card buffers a burst of this size.",
        )
    return CardFinding(
        check,
        False,
        f"{count} for receiving: a core that is away for {count} packets loses the next ones.",
        f"Run `ethtool -G {card} rx {SHORT_RING}` ({packages_with('ethtool')}); more than 4096 "
        "keep packets where nothing paces them.",
    )


def _merging(card: str, merges: bool) -> CardFinding:
    check = f"{card}: offloads"
    if not merges:
        return CardFinding(check, True, "It gives programs the packets as they come.")
    return CardFinding(
        check,
        True,
        "It merges packets (GRO or LRO), which helps hosts; a software switch on packet sockets "
        f"would drop the merged ones (`ethtool -K {card} gro off lro off`), one on the card itself "
        "does not see it.",
    )
