"""Cables one by one: a network that the scenario lists itself."""

from pydantic import Field

from daqloom.scenario.link_rates import PortRate
from daqloom.scenario.names import NodeName
from daqloom.scenario.part import Part

MOST_CABLES = 20_000


class Cable(Part):
    """An entry of `network.cables`: one cable, or several alike side by side."""

    ends: tuple[NodeName, NodeName] = Field(strict=False)
    """The two nodes, a switch as "leaf0" (its next free port) or "leaf0 port 3", a host by its
    name."""
    count: int = Field(default=1, ge=1, le=1024)
    """Cables side by side, each at a free port."""
    rate: PortRate = 0
    """Data rate; "0 b/s": that of network.links.rate (b/s)."""
