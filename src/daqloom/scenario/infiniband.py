"""[fabric]: an InfiniBand network, its shape and what its ports are like."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    ValidationInfo,
    model_validator,
)

from daqloom.scenario import inputs
from daqloom.scenario.dumps import CABLES, TABLES, first, shipped_fabrics
from daqloom.scenario.infiniband_switches import filled_in
from daqloom.scenario.link_rates import PortRate
from daqloom.scenario.part import Part
from daqloom.scenario.quantities import (
    PositiveBytes,
    PositiveSeconds,
    Seconds,
)

BLOCK_BYTES = 64
"""Flow control counts buffers in blocks of so many bytes."""
LARGEST_MTU_BYTES = 4096
HEADER_BYTES = 26
"""Of every packet."""
WRITE_BYTES = 16 + 4
"""Of an RDMA write besides: address in its first packet, immediate data in its last."""
LARGEST_HEADER_BYTES = HEADER_BYTES + WRITE_BYTES
"""Of a packet that is the only one of an RDMA write with immediate data."""
MOST_HOSTS = 8192

Weights = tuple[Annotated[tuple[int, int], Field(strict=False)], ...]


class Lanes(Part):
    """[fabric.lanes]: virtual lanes and their arbitration at every output."""

    count: int = Field(default=1, ge=1, le=15, description="virtual lanes")
    service_levels: tuple[Annotated[int, Field(ge=0, le=14)], ...] = Field(
        default=(),
        strict=False,
        max_length=16,
        description="lane of service level 0, of 1, …, at all ports; 0 of those not listed",
    )
    high: Weights = Field(
        default=(),
        strict=False,
        max_length=64,
        description="high priority: pairs of lane and weight, in blocks of 64 B",
    )
    low: Weights = Field(
        default=((0, 64),),
        strict=False,
        max_length=64,
        description="low priority: pairs of lane and weight, in blocks of 64 B",
    )
    high_limit: int = Field(
        default=255,
        ge=0,
        le=255,
        description="4 KiB that high priority may send before low has its chance; 255: no limit",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("high", "low"):
            for lane, weight in getattr(self, name):
                if not (0 <= lane < self.count and 0 <= weight <= 255):
                    raise ValueError(
                        f"{name} has the entry [{lane}, {weight}]; expected a lane of 0 to "
                        f"{self.count - 1} and a weight of 0 to 255"
                    )
        if any(lane >= self.count for lane in self.service_levels):
            raise ValueError(
                f"service_levels uses lane {max(self.service_levels)}; expected lanes of 0 to "
                f"{self.count - 1}"
            )
        if not any(weight for _, weight in (*self.high, *self.low)):
            raise ValueError("no lane has a weight, so that nothing would ever be sent")
        return self

    def of(self, service_level: int) -> int:
        """The lane that messages of a service level use."""
        listed = service_level < len(self.service_levels)
        return self.service_levels[service_level] if listed else 0

    def serves(self, lane: int) -> bool:
        """Whether packets on this lane are ever sent."""
        return any(each == lane and weight for each, weight in (*self.high, *self.low))


class InfinibandFabric(Part):
    """[fabric]: hosts, switches and cables."""

    shape: Literal["fat-tree", "imported"] = Field(
        default="fat-tree", description="a regular tree, or the dumps of a real fabric"
    )
    dumps: str = Field(
        default="",
        max_length=4096,
        description=(
            "imported: a shipped fabric's name, or the folder with ibnetdiscover.txt and "
            "opensm-lfts.dump"
        ),
    )
    leaves: int = Field(default=18, ge=1, le=1024, description="fat-tree: leaf switches")
    spines: int = Field(default=10, ge=1, le=1024, description="fat-tree: spine switches")
    links: int = Field(
        default=2, ge=1, le=64, description="fat-tree: cables between each leaf and each spine"
    )
    hosts_per_leaf: int = Field(
        default=20, ge=1, le=254, description="fat-tree: host ports of a leaf that are used"
    )
    pods: int = Field(
        default=0, ge=0, le=256, description="fat-tree: such trees below a third level; 0: none"
    )
    cores: int = Field(
        default=0,
        ge=0,
        le=1024,
        description="fat-tree: core switches above each spine of every pod",
    )
    core_links: int = Field(
        default=1, ge=1, le=64, description="fat-tree: cables between a spine and each of its cores"
    )
    switch: Literal["sb7700", "hdr-40"] = Field(
        default="hdr-40",
        description=(
            "product that fills in radix, rate, switch_latency and buffer where these are not given"
        ),
    )
    radix: int = Field(default=40, ge=2, le=254, description="fat-tree: ports of a switch")
    routing: str = Field(
        default="",
        max_length=40,
        description=(
            "forwarding tables: imported, d-mod-k, minimal or minimal:TIE; by default those of "
            "the dumps, else d-mod-k"
        ),
    )
    rate: PortRate = Field(
        default=0,
        description=(
            "data rate of every cable, after encoding and error correction, or EDR, HDR, NDR of "
            'four lanes; imported: "0 b/s", as the dumps have it (b/s)'
        ),
    )
    delay: PositiveSeconds = Field(
        default=170e-9,
        description="of a cable with its transceivers and error correction (s)",
    )
    switch_latency: PositiveSeconds = Field(
        default=130e-9, description="from a flit's arrival at a switch until it can leave (s)"
    )
    mtu: PositiveBytes = Field(
        default=4096, ge=256, le=LARGEST_MTU_BYTES, description="payload of a full packet (B)"
    )
    buffer: PositiveBytes = Field(
        default=64 * 1024, description="input buffer of a port for each virtual lane (B)"
    )
    input_queue: Literal["virtual-output", "fifo"] = Field(
        default="virtual-output",
        description="what waits at an input: a queue for each output, or one for all",
    )
    crossbar_speedup: int = Field(
        default=2,
        ge=1,
        le=64,
        description=(
            "packets that one input may send at a time; with 1, a small message can wait for the "
            "end of a stream"
        ),
    )
    credit_release: Literal["at-tail", "per-block"] = Field(
        default="at-tail",
        description="when a packet's buffer is free: with its last byte, or block by block",
    )
    credit_update_interval: Seconds = Field(
        default=0.0, description="least time between two credit updates of a lane (s)"
    )
    credit_update_size: PositiveBytes = Field(
        default=8, le=64, description="of a credit update on the wire (B)"
    )
    head_of_queue_lifetime: Seconds = Field(
        default=0.0,
        description=(
            "a packet that could go and has been first of its queue in a switch for so long is "
            'discarded; "0 s": never (s)'
        ),
    )
    lanes: Lanes = Field(default_factory=Lanes, description="virtual lanes")

    @property
    def folder(self) -> Path:
        """Of the dumps."""
        return shipped_fabrics().get(self.dumps, Path(self.dumps))

    def wire_bytes(self, size: int) -> int:
        """All packets of an RDMA write of `size` bytes, on the wire; payloads fill whole words."""
        full, rest = divmod(size, self.mtu)
        payload = full * (-(-self.mtu // 4) * 4) + -(-rest // 4) * 4
        return payload + (full + (rest > 0)) * HEADER_BYTES + WRITE_BYTES

    def digest(self) -> str:
        """Of the dumps' content; empty where there are none."""
        if self.shape != "imported":
            return ""
        digest = hashlib.sha256()
        for names in (CABLES, TABLES):
            if path := first(self.folder, names):
                digest.update(path.read_bytes())
        return digest.hexdigest()

    @model_validator(mode="wrap")
    @classmethod
    def _fill_in_switch(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(data, dict):
            return handler(data)
        fabric = handler(filled_in(data) | data)
        # What the switch filled in was not set by the user: another switch may replace it.
        fabric.model_fields_set.intersection_update(data)
        return fabric

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        if self.shape == "imported":
            self._find_dumps(inputs.folder_of(info))
        elif self.rate == 0:
            raise ValueError(
                'rate = "0 b/s" stands for the rates of imported dumps; give a fat-tree one, such '
                'as "200 Gb/s" or HDR'
            )
        hosts = self.leaves * self.hosts_per_leaf * max(1, self.pods)
        if self.shape == "fat-tree" and hosts > MOST_HOSTS:
            raise ValueError(f"more than {MOST_HOSTS} hosts; take fewer leaves or hosts_per_leaf")
        blocks = -(-(self.mtu + LARGEST_HEADER_BYTES) // BLOCK_BYTES)
        if self.buffer < blocks * BLOCK_BYTES:
            raise ValueError(
                f"buffer = {self.buffer} B holds no full packet of {blocks} blocks of 64 B; "
                "nothing would ever be sent"
            )
        return self

    def _find_dumps(self, folder: Path) -> None:
        if not self.dumps:
            raise ValueError('shape = "imported" needs dumps, such as "cluster64" or a folder')
        if not self.folder.is_absolute():
            self.__dict__["dumps"] = str(inputs.resolve(self.dumps, folder))
        if not self.folder.is_dir():
            raise ValueError(
                f'dumps = "{self.dumps[:200]}" is no folder; expected one with ibnetdiscover.txt, '
                "or the name of a fabric that `daqloom topology list` shows"
            )
