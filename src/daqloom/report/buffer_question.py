"""How much buffer does a top-of-rack switch need: the results that answer it, side by side."""

from __future__ import annotations

from dataclasses import dataclass

from daqloom.analyse.triangles import Triangle
from daqloom.report.style import BLUE, GREEN, ORANGE
from daqloom.result import Result


@dataclass(frozen=True, slots=True)
class Switch:
    """A top-of-rack switch under test. `buffer_bytes` and `cost` are None where unlimited."""

    model: str
    label: str
    colour: str
    buffer_bytes: int | None
    cost: float | None


UNLIMITED = Switch("infinite", "unlimited buffer", BLUE, None, None)
SHALLOW = Switch("qfx5120-48y", "QFX5120-48Y", ORANGE, 32_000_000, 1.0)
DEEP = Switch("acx7100-48l", "ACX7100-48L", GREEN, 8_000_000_000, 2.5)
"""The two switches of the ATLAS study, with their relative cost (ATLAS HL-LHC buffer
benchmarking, section 3.1)."""


@dataclass(frozen=True, slots=True)
class Run:
    """One simulated switch."""

    switch: Switch
    result: Result


@dataclass(frozen=True, slots=True)
class BufferQuestion:
    """Everything that the table and the figures show.

    `analysis` is the closed forms' answer and `event` the triangle that they take. `regular` is a
    short simulation with periodic events, for which the formula is exact, and `regular_arrivals_s`
    the instants at which the first bytes of its events reach the switch. `runs` are simulations
    with the scenario's own arrivals, the unlimited buffer first.
    """

    scenario: str
    rate_hz: float
    event_bytes: int
    event: Triangle
    analysis: Result
    regular: Result
    regular_arrivals_s: tuple[float, ...]
    runs: tuple[Run, ...]

    @property
    def title(self) -> str:
        """The question's operating point, as a heading."""
        return (
            f"{self.scenario}: events of {self.event_bytes / 1e6:g} MB "
            f"at {self.rate_hz / 1e3:g} kHz into one rack"
        )
