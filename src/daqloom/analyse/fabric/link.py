"""The payload rate of an InfiniBand or RoCE link: headers, credits, the time of a message. Sources:
InfiniBand Architecture Specification, volume 1, chapters 5, 7.9 and 9;
`docs/explanation/infiniband-model.md` describes the behaviour of the simulated hosts and
switches."""

from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from daqloom.scenario.schema.links import FRAME_OVERHEAD_BYTES, WIRE_OVERHEAD_BYTES
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.transport import (
    ACKNOWLEDGE_BYTES,
    ADDRESS_BYTES,
    BLOCK_BYTES,
    HEADER_BYTES,
    IMMEDIATE_BYTES,
    ROCE_HEADER_BYTES,
)

Count = TypeVar("Count", float, NDArray[np.float64])
"""One number, or one per node or flow."""


@dataclass(frozen=True, slots=True)
class OnWire:
    """A message as packets; `bytes` includes headers and padding."""

    payload: int
    packets: int
    bytes: int
    head: int
    """Bytes of the message that a switch must receive before it can forward the message."""


@dataclass(frozen=True, slots=True)
class Link:
    """A cable of a fabric, with the switch behind it and the virtual lane of the data."""

    rate_bps: float
    delay_s: float
    mtu: int
    headers: int
    """Header bytes of each packet; on Ethernet the preamble and the gap are included."""
    switch_s: float = 0.0
    """Time from a flit's arrival at a switch until it can leave."""
    cut: int = 0
    """Bytes of a packet that must arrive before a switch forwards it; 0: the whole packet."""
    blocks: int = 0
    """Blocks of 64 B in the input buffer of a virtual lane; 0: no credits."""
    per_block: bool = False
    """Whether a block is freed when it has left. If false, it is freed when the packet's tail
    leaves."""
    update: int = 0
    """Size of a credit update (bytes)."""
    update_s: float = 0.0
    """Least time between two credit updates."""

    @classmethod
    def from_scenario(cls, scenario: Scenario) -> Self:
        """Return the link of a scenario, whose cables are all alike."""
        links, switch = scenario.network.links, scenario.network.switch
        if scenario.network.technology == "ethernet":
            return cls(
                rate_bps=links.rate,
                delay_s=links.delay,
                mtu=scenario.transport.mtu,
                headers=ROCE_HEADER_BYTES + FRAME_OVERHEAD_BYTES + WIRE_OVERHEAD_BYTES,
            )
        return cls(
            rate_bps=links.rate,
            delay_s=links.delay,
            switch_s=switch.latency,
            mtu=scenario.transport.mtu,
            headers=HEADER_BYTES,
            cut=BLOCK_BYTES,
            blocks=switch.buffer // BLOCK_BYTES,
            per_block=switch.credit_release == "per-block",
            update=switch.credit_update_size,
            update_s=switch.credit_update_interval,
        )

    def bytes_s(self, count: float) -> float:
        """Return the time of `count` bytes on the wire."""
        return 8 * count / self.rate_bps

    def message(self, payload: int) -> OnWire:
        """Return an RDMA write with immediate data; payload is padded to whole words."""
        packets = max(1, -(-payload // self.mtu))
        last = payload - (packets - 1) * self.mtu
        padded = (packets - 1) * _words(self.mtu) + _words(last)
        headers = packets * self.headers + ADDRESS_BYTES + IMMEDIATE_BYTES
        return self._on_wire(payload, packets, padded + headers)

    @property
    def acknowledge(self) -> OnWire:
        """The packet that acknowledges a message."""
        return self._on_wire(0, 1, self.headers + ACKNOWLEDGE_BYTES - HEADER_BYTES)

    def _on_wire(self, payload: int, packets: int, size: int) -> OnWire:
        return OnWire(payload, packets, size, min(size, self.cut or self.packet))

    def way_s(self, message: OnWire, switches: Count) -> Count:
        """Return the latency of a message without its time on the first wire: cable delays, and in
        each idle switch the latency and the first block (Ethernet: packet) once more."""
        each_s = self.switch_s + self.bytes_s(message.head)
        return (switches + 1) * self.delay_s + switches * each_s

    def wire_s(self, message: OnWire) -> float:
        """Return the time of a message on the wire, with credit updates for equal received
        traffic."""
        return self.bytes_s(message.bytes + message.packets * self.updates * self.update)

    def credits_s(self, message: OnWire) -> float:
        """Return the least time for which credits keep a message on the wire.

        A packet leaves when the buffer at the other end has free blocks for it. The blocks are
        freed when the packet has left the switch there; the sender knows after a credit update and
        a cable delay: loop = packet + 2·delay + switch + (64 B + update)/rate. The buffer holds q =
        ⌊blocks/⌈packet/64⌉⌉ packets, which gives min(line rate, q·packet/loop)
        (`KnownAnswers.CreditsLimit…` in the engine's tests). If blocks are freed one by one, the
        blocks beyond q packets let the next packet leave earlier. With credit updates at intervals,
        one update frees at most q packets.
        """
        if not self.blocks:
            return 0.0
        of_packet = -(-self.packet // BLOCK_BYTES)
        fit, over = divmod(self.blocks, of_packet)
        loop_s = 2 * self.delay_s + self.switch_s
        loop_s += self.bytes_s(self.packet + BLOCK_BYTES + self.update)
        if self.per_block:
            loop_s -= self.bytes_s(over * BLOCK_BYTES)
        waits_s = max(0.0, max(loop_s, self.update_s) - self.bytes_s(fit * self.packet))
        return self.bytes_s(message.bytes) + (message.packets - 1) // fit * waits_s

    @property
    def packet(self) -> int:
        """Bytes of a full packet in the middle of a message."""
        return _words(self.mtu) + self.headers

    @property
    def updates(self) -> float:
        """Credit updates per packet received, at most 1."""
        return min(1.0, self.bytes_s(self.packet) / self.update_s) if self.update_s else 1.0


def _words(payload: int) -> int:
    return (payload + 3) // 4 * 4
