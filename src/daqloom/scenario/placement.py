"""Which units are on which hosts: by a rule or unit by unit."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from daqloom.scenario.part import Part, When

BY_RULE = When("hosts.placement", ("fill", "spread"), or_without=True)
"""Marks the keys that a table of units replaces."""


def _host(value: object) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and 0 < len(value) <= 200:
        return value
    raise ValueError("is not a host; give its place in the order of ports, from 0, or its name")


Host = Annotated[int | str, BeforeValidator(_host)]


class UnitPlace(Part):
    """An entry of `hosts.units`: one unit's role and host."""

    unit: int = Field(ge=0, le=50_000)
    """Number of the unit, each from 0 on once: its place in the schedule."""
    role: Literal["readout", "builder", "both"] = "both"
    """Readout unit, builder unit, or both on this host (folded)."""
    host: Host
    """The host, by its place in the order of ports, from 0, or by its name."""
    adapter: str = Field(default="", max_length=100)
    """Of a host with several adapters, the one that the unit uses: what follows the host's name in
    the network, such as "mlx5_1" of "r5n0020 mlx5_1"."""

    @property
    def reads(self) -> bool:
        """Whether this is a readout unit."""
        return self.role != "builder"

    @property
    def builds(self) -> bool:
        """Whether this is a builder unit."""
        return self.role != "readout"

    def __str__(self) -> str:
        """Return the host, and its adapter, as the network names them."""
        return f"{self.host} {self.adapter}" if self.adapter else str(self.host)
