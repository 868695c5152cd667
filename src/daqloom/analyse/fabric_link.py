"""What a link of an InfiniBand fabric carries: headers, credits, the time of a message.

Sources: InfiniBand Architecture Specification, volume 1, chapters 5, 7.9 and 9;
`docs/explanation/infiniband-model.md` for what the simulated hosts and switches do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from daqloom.scenario.infiniband import BLOCK_BYTES

if TYPE_CHECKING:
    from daqloom.scenario.fabric import FabricScenario

Count = TypeVar("Count", float, NDArray[np.float64])
"""One number, or one for each node or flow."""

HEADER_BYTES = 8 + 12 + 4 + 2
"""Of every packet: local route header, base transport header, two checks."""
ADDRESS_BYTES = 16
"""More on the first packet of an RDMA write."""
IMMEDIATE_BYTES = 4
"""More on the last packet."""
ACKNOWLEDGE_BYTES = HEADER_BYTES + 4


@dataclass(frozen=True, slots=True)
class OnWire:
    """A message as packets; `bytes` with headers and padding."""

    payload: int
    packets: int
    bytes: int

    @property
    def head(self) -> int:
        """Bytes that a switch has to see of it before it can pass it on."""
        return min(self.bytes, BLOCK_BYTES)


ACKNOWLEDGE = OnWire(0, 1, ACKNOWLEDGE_BYTES)


@dataclass(frozen=True, slots=True)
class Link:
    """Any cable of a fabric, with the switch behind it and the lane of the data."""

    rate_bps: float
    delay_s: float
    switch_s: float
    """From a flit's arrival at a switch until it can leave."""
    mtu: int
    blocks: int
    """That the input buffer of a lane holds."""
    per_block: bool
    """Whether a block is free as soon as it has left, else with its packet's tail."""
    update: int
    """Bytes of a credit update."""
    update_s: float
    """Least time between two of them."""

    @classmethod
    def of(cls, scenario: FabricScenario) -> Link:
        """That of a scenario; all its cables are alike."""
        fabric = scenario.fabric
        return cls(
            rate_bps=fabric.rate,
            delay_s=fabric.delay,
            switch_s=fabric.switch_latency,
            mtu=fabric.mtu,
            blocks=fabric.buffer // BLOCK_BYTES,
            per_block=fabric.credit_release == "per-block",
            update=fabric.credit_update_size,
            update_s=fabric.credit_update_interval,
        )

    def bytes_s(self, count: float) -> float:
        """Time of so many bytes on the wire."""
        return 8 * count / self.rate_bps

    def message(self, payload: int) -> OnWire:
        """An RDMA write with immediate data; payload is padded to whole words."""
        packets = max(1, -(-payload // self.mtu))
        last = payload - (packets - 1) * self.mtu
        padded = (packets - 1) * _words(self.mtu) + _words(last)
        headers = packets * HEADER_BYTES + ADDRESS_BYTES + IMMEDIATE_BYTES
        return OnWire(payload, packets, padded + headers)

    def way_s(self, message: OnWire, switches: Count) -> Count:
        """From a message's first byte until all of it has come, without what it takes on the first
        wire: in each switch its first block once more, and the cables."""
        return (switches + 1) * self.delay_s + switches * (
            self.switch_s + self.bytes_s(message.head)
        )

    def wire_s(self, message: OnWire) -> float:
        """A message on the wire while as much comes the other way: for each packet that comes, a
        credit update goes."""
        return self.bytes_s(message.bytes + message.packets * self.updates * self.update)

    def credits_s(self, message: OnWire) -> float:
        """The least time for which credits keep a message on the wire.

        A packet leaves when its blocks are free at the other end. They are free again when it has
        left the switch there, behind its own head, and known to be so an update and a cable later:
        loop = packet + 2·delay + switch + (64 B + update)/rate. The buffer holds
        q = ⌊blocks/⌈packet/64⌉⌉ packets, which gives min(line rate, q·packet/loop)
        (`Network.CreditsBoundTheRate` in the engine's tests). Freed block by block, the blocks that
        q packets leave over let a packet go as much earlier. Updates that keep an interval tell of
        q packets at most.
        """
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
        """Bytes of a full packet in the midst of a message."""
        return _words(self.mtu) + HEADER_BYTES

    @property
    def updates(self) -> float:
        """Credit updates for each packet that comes the other way, 1 at most."""
        return min(1.0, self.bytes_s(self.packet) / self.update_s) if self.update_s else 1.0


def _words(payload: int) -> int:
    return (payload + 3) // 4 * 4
