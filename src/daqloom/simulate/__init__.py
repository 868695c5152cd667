"""Packet-level simulation of a scenario."""


class SimulationError(RuntimeError):
    """Error for a simulation that cannot run or write its output. The message is one sentence."""
