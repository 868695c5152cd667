"""What a study has to know of racks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from daqloom.scenario import Scenario
from daqloom.simulate.course import COURSES
from daqloom.study.changes import number
from daqloom.study.points import RATE, SIZE
from daqloom.study.saturation import Saturation

HOPS_PER_S = 20e6
"""Packet hops that one core simulates per second, roughly."""
HOPS_PER_PACKET = 4.5
"""Three links there, and an acknowledgement of every second packet three links back."""


class Racks:
    """See `daqloom.study.kinds.Traits`."""

    versions: Mapping[str, int] = {"analyse": 2, "simulate": 3}
    analysis_s = 2e-3
    courses: Sequence[str] = COURSES
    costly: Sequence[str] = (RATE, SIZE, "readout.units", "run.duration")

    def operating_point(self, base: Scenario) -> dict[str, float]:
        """Return event rate and size, which figures mark."""
        return {RATE: base.event.rate, SIZE: base.event.size}

    def saturation(self, base: Scenario) -> Saturation:
        """Return what tells saturated points by the bound of the event rate."""
        return Saturation(base)

    def simulation_s(self, base: Scenario, changes: Mapping[str, Any]) -> float:
        """From the packets of all events."""
        rate_hz, size, sources, duration_s = (number(base, changes, key) for key in self.costly)
        uplink = base.network.links.uplink
        carried_hz = uplink.rate * uplink.count / (8 * size)  # at most
        fragment = math.ceil(size / sources / base.mss)  # packets, and one that requests them
        packets_hz = min(rate_hz, carried_hz) * sources * (fragment + 1)
        return packets_hz * HOPS_PER_PACKET * duration_s / HOPS_PER_S
