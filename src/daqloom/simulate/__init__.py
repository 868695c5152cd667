"""Packet-level simulation of a scenario."""


class SimulationError(RuntimeError):
    """A simulation could not be run, or its output not written. The message is one sentence."""
