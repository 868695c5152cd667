"""[switch.core] and [switch.tor]: packet buffers.

A model is a way of sharing the buffer; the products are such models with their numbers filled in.
Sources: "Buffer benchmarking for the ATLAS HL-LHC DAQ network" for sizes, cells and relative cost.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, model_validator

from daqloom.scenario.part import Number, Part
from daqloom.scenario.quantities import SIZE, Bytes

Model = Literal["infinite", "shared-memory", "voq", "drop-tail", "qfx5120-48y", "acx7100-48l"]
Architecture = Literal["infinite", "shared-memory", "voq", "drop-tail"]

ARCHITECTURES: dict[str, Architecture] = {
    "infinite": "infinite",
    "shared-memory": "shared-memory",
    "qfx5120-48y": "shared-memory",
    "voq": "voq",
    "acx7100-48l": "voq",
    "drop-tail": "drop-tail",
}

_SHARED_MEMORY: dict[str, Any] = {
    "buffer": "32 MB",
    "dedicated": "0 B",
    "alpha": 1.0,
    "port_limit": "0 B",
    "cell_size": "256 B",
    "cell_metadata": "64 B",
    "ports": 0,
}
_VOQ: dict[str, Any] = {"buffer": "8 GB", "port_limit": "0 B"}

DEFAULTS: dict[str, dict[str, Any]] = {
    "infinite": {},
    "shared-memory": _SHARED_MEMORY,
    # 48 × 25 GbE and 8 × 100 GbE; 5 MB dedicated, 27 MB shared. Alpha is not in the paper: 1 is
    # our assumption.
    "qfx5120-48y": _SHARED_MEMORY | {"dedicated": "5 MB", "ports": 56, "cost": 1.0},
    "voq": _VOQ,
    "acx7100-48l": _VOQ | {"cost": 2.5},
    "drop-tail": {"buffer": "0 B", "port_limit": "0 B", "queue_packets": 1000},
}
"""The buffer keys that each model uses, with their defaults."""

COMMON_KEYS = frozenset({"model", "cost", "ecn_threshold"})


class Switch(Part):
    """[switch.core], [switch.tor]: one output-queued switch."""

    model: Model = Field(
        default="infinite",
        description=(
            "how the buffer is shared: infinite (records its peak), shared-memory (dedicated and "
            "shared cells, dynamic threshold), voq (deep buffer, a virtual output queue per "
            "ingress and egress pair), drop-tail (a FIFO per output); or a product: qfx5120-48y is "
            "shared-memory, acx7100-48l is voq, with their numbers"
        ),
    )
    buffer: Bytes = Field(
        default=0,
        description=(
            "whole packet buffer, dedicated part included; the shared pool is what remains. Only "
            'drop-tail may have "0 B": bounded by its queues alone (B)'
        ),
    )
    dedicated: Bytes = Field(
        default=0, description="part of the buffer spread evenly over the ports (B)"
    )
    alpha: Number = Field(
        default=1.0,
        gt=0,
        le=1e6,
        description=(
            "dynamic threshold: an output may hold alpha × the free shared pool, besides its "
            "dedicated part; 1e6 is in effect no threshold"
        ),
    )
    port_limit: Bytes = Field(
        default=0,
        description=(
            "most that one output (voq: one virtual output queue) may hold in all; "
            '"0 B" = no such limit (B)'
        ),
    )
    cell_size: Bytes = Field(
        default=0,
        description='packets occupy whole cells of this size; "0 B" = counted by the byte (B)',
    )
    cell_metadata: Bytes = Field(
        default=0, description="taken from the first cell of every packet (B)"
    )
    ports: int = Field(
        default=0,
        ge=0,
        le=10_000,
        description=(
            "ports over which the dedicated part is spread; 0 = those that the scenario connects"
        ),
    )
    queue_packets: int = Field(
        default=0,
        ge=0,
        le=1_000_000_000,
        description="most packets that one output of drop-tail may hold; 0 = no such limit",
    )
    ecn_threshold: Bytes = Field(
        default=0,
        description=(
            "a packet that finds more than this queued at its output is marked with congestion "
            'experienced; "0 B" = never (B)'
        ),
    )
    cost: Number = Field(
        default=1.0, description="price relative to the qfx5120-48y, for comparisons"
    )

    @property
    def architecture(self) -> Architecture:
        """The way of sharing behind `model`, whether that names a way or a product."""
        return ARCHITECTURES[self.model]

    @property
    def shared(self) -> int:
        """The shared pool (B)."""
        return self.buffer - self.dedicated

    def holds(self, frame_bytes: int, connected_ports: int) -> bool:
        """Whether one output of shared memory, all else empty, has room for a frame."""
        cell = self.cell_size or 1
        dedicated = self.dedicated // (self.ports or connected_ports) // cell
        room = dedicated + self.shared // cell
        if self.port_limit:
            room = min(room, self.port_limit // cell)
        return -(-(frame_bytes + self.cell_metadata) // cell) <= room

    @property
    def applicable_keys(self) -> frozenset[str]:
        """The keys that mean something for this model."""
        return COMMON_KEYS | DEFAULTS[self.model].keys()

    @model_validator(mode="wrap")
    @classmethod
    def _fill_in_model(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(data, dict):
            return handler(data)
        model = data.get("model", "infinite")
        known = DEFAULTS.get(model) if isinstance(model, str) else None
        if known is None:
            return handler(data)
        for key in data:
            if key in cls.model_fields and key not in COMMON_KEYS and key not in known:
                users = ", ".join(name for name, keys in DEFAULTS.items() if key in keys)
                raise ValueError(
                    f'{key} means nothing to model = "{model}"; leave it out, or choose a model '
                    f"that has it: {users}"
                )
        switch = handler(known | data)
        # What the model filled in was not set by the user: another model may replace it.
        switch.model_fields_set.intersection_update(data)
        return switch

    @model_validator(mode="after")
    def _check(self) -> Self:
        size = SIZE.format
        if self.architecture in ("shared-memory", "voq") and self.buffer == 0:
            raise ValueError('buffer is zero; a switch that never drops is model = "infinite"')
        if self.dedicated > self.buffer:
            raise ValueError(
                f"dedicated = {size(self.dedicated)} is more than the whole buffer of "
                f"{size(self.buffer)}"
            )
        if self.cell_size > self.buffer:
            raise ValueError(
                f"cell_size = {size(self.cell_size)} is larger than the buffer of "
                f"{size(self.buffer)}; a buffer holds at least one cell"
            )
        if self.cell_metadata and self.cell_metadata >= self.cell_size:
            raise ValueError(
                f"cell_metadata = {size(self.cell_metadata)} leaves no room in a cell of "
                f"{size(self.cell_size)}"
            )
        if self.architecture == "drop-tail" and not (
            self.buffer or self.port_limit or self.queue_packets
        ):
            raise ValueError(
                "drop-tail has no limit; set queue_packets, port_limit or buffer, or choose "
                'model = "infinite"'
            )
        return self


class Switches(Part):
    """[switch]: the two switches on the way."""

    core: Switch = Field(default_factory=Switch, description="between sources and uplinks")
    tor: Switch = Field(default_factory=Switch, description="top of rack, before the builders")
