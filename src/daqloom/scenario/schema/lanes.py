"""[network.lanes]: virtual lanes of InfiniBand."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from daqloom.scenario.schema.part import Part, items

Weights = tuple[Annotated[tuple[int, int], Field(strict=False)], ...]


class Lanes(Part):
    """[network.lanes]: virtual lanes and their arbitration at each output."""

    count: int = Field(default=1, ge=1, le=15)
    """Number of virtual lanes."""
    service_levels: tuple[Annotated[int, Field(ge=0, le=14)], ...] = items(16)
    """Virtual lanes of service levels 0, 1, …, at all ports; service levels that are not listed use
    lane 0."""
    high: Weights = items(64)
    """High-priority arbitration table: pairs of lane and weight, the weight in blocks of 64 B."""
    low: Weights = Field(default=((0, 64),), strict=False, max_length=64)
    """Low-priority arbitration table: pairs of lane and weight, the weight in blocks of 64 B."""
    high_limit: int = Field(default=255, ge=0, le=255)
    """Limit on the data that high priority may send before a low-priority packet, in units of 4
    KiB; 255: no limit."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        most = self.count - 1
        for name in ("high", "low"):
            for lane, weight in getattr(self, name):
                if not (0 <= lane <= most and 0 <= weight <= 255):
                    raise ValueError(
                        f"{name} has the entry [{lane}, {weight}]; expected a lane of 0 to {most} "
                        "and a weight of 0 to 255"
                    )
        if (used := max(self.service_levels, default=0)) > most:
            raise ValueError(f"service_levels uses lane {used}; expected lanes of 0 to {most}")
        if not any(weight for _, weight in (*self.high, *self.low)):
            raise ValueError("no lane has a weight, so that no packet would be sent")
        return self

    def lane_of(self, service_level: int) -> int:
        """Return the virtual lane of a service level."""
        listed = service_level < len(self.service_levels)
        return self.service_levels[service_level] if listed else 0

    def serves(self, lane: int) -> bool:
        """Return whether packets on this lane are ever sent."""
        return any(each == lane and weight for each, weight in (*self.high, *self.low))
