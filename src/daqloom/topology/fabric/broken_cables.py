"""A fabric with some of its cables broken."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import replace

from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import Fabric


def between_switches(fabric: Fabric) -> list[int]:
    """Return the indices in `fabric.cables` of the cables between two switches."""
    hosts, cables = len(fabric.hosts), enumerate(fabric.cables)
    return [place for place, cable in cables if min(cable.a.node, cable.b.node) >= hosts]


def with_broken(fabric: Fabric, cables: int, seed: int) -> Fabric:
    """Return the fabric without a random set of cables between switches; raises TopologyError."""
    places = between_switches(fabric)
    if cables > len(places):
        raise TopologyError(
            f"{fabric.name} has {len(places)} cables between switches, of which {cables} are to be "
            f"broken (faults.cables); give {len(places)} at most"
        )
    return remove_cables(fabric, random.Random(seed).sample(places, cables))


def remove_cables(fabric: Fabric, cables: Collection[int]) -> Fabric:
    """Return the fabric without these cables, given as indices in `fabric.cables`."""
    gone = frozenset(cables)
    left = (cable for place, cable in enumerate(fabric.cables) if place not in gone)
    return replace(fabric, cables=tuple(left))
