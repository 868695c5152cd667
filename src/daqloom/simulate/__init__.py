"""Packet-level simulation of a scenario."""

from daqloom.simulate.errors import SimulationError

__all__ = ["SimulationError"]
