"""The order of names that a person expects: digits by value, leaf2 before leaf10."""

from __future__ import annotations

import re
from collections.abc import Sequence

from daqloom.topology.fabric import Node


def natural_key(name: str) -> tuple[str | int, ...]:
    """A key that sorts `leaf2` before `leaf10`."""
    parts = re.split("([0-9]{1,18})", name)
    return tuple(int(part) if odd % 2 else part for odd, part in enumerate(parts))


def natural_order(nodes: Sequence[Node]) -> list[int]:
    """Places of nodes in the order of their names."""
    return sorted(range(len(nodes)), key=lambda place: natural_key(nodes[place].name))
