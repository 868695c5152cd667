"""Packet-level simulation of a scenario."""

from daqloom.simulate.run import SimulationError, simulate

__all__ = ["SimulationError", "simulate"]
