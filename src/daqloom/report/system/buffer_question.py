"""Results on the buffer that a top-of-rack switch needs."""

from dataclasses import dataclass, replace

from daqloom.analyse.bounds import first_byte_s
from daqloom.analyse.peak import exact
from daqloom.analyse.system import System
from daqloom.analyse.triangles import Triangle
from daqloom.report.style import BLUE, GREEN, ORANGE, PURPLE
from daqloom.results.result import Result
from daqloom.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Switch:
    """A top-of-rack switch under test; `buffer_bytes` and `cost` are None if unlimited. `transport`
    has keys of the scenario to test the switch with another TCP."""

    model: str
    label: str
    colour: str
    buffer_bytes: int | None
    cost: float | None
    transport: tuple[tuple[str, bool], ...] = ()


UNLIMITED = Switch("infinite", "unlimited", BLUE, None, None)
SHALLOW = Switch("qfx5120-48y", "QFX5120-48Y", ORANGE, 32_000_000, 1.0)
WITHOUT_RACK = ("transport.rack", False), ("transport.tail_loss_probe", False)
SHALLOW_PLAIN_TCP = replace(
    SHALLOW, label="QFX5120-48Y, no RACK", colour=PURPLE, transport=WITHOUT_RACK
)
DEEP = Switch("acx7100-48l", "ACX7100-48L", GREEN, 8_000_000_000, 2.5)
"""The two switches of the ATLAS study, with their relative cost (ATLAS HL-LHC buffer
benchmarking, section 3.1). The shallow one is also tested without RACK and tail-loss probes
(RFC 8985), as in older servers, where retransmission often waits for a timeout."""


@dataclass(frozen=True, slots=True)
class Run:
    """Simulation of a switch."""

    switch: Switch
    result: Result


@dataclass(frozen=True, slots=True)
class Regular:
    """Periodic events and, if simulated, the result. `event` is the triangle of one event,
    `arrivals_s` are the times at which the first byte of each reaches the switch, `peak_bytes` is
    the closed form, `until_s` the end of the figure."""

    event: Triangle
    arrivals_s: tuple[float, ...]
    peak_bytes: float
    until_s: float
    result: Result | None = None


@dataclass(frozen=True, slots=True)
class BufferQuestion:
    """Results of all methods. `regular` is a short run with periodic events, for which the formula
    is exact. `runs` have the scenario's own arrivals, the unlimited buffer first."""

    scenario: Scenario
    analysis: Result
    regular: Regular
    runs: tuple[Run, ...]

    @property
    def title(self) -> str:
        """Operating point, as a heading."""
        event = self.scenario.event
        size, rate = event.size / 1e6, event.rate / 1e3
        return f"{self.scenario.name}: events of {size:g} MB at {rate:g} kHz into one rack"


def regular_events(scenario: Scenario, until_s: float, result: Result | None = None) -> Regular:
    """Return the scenario's events as if they were periodic, at 1/f, 2/f, … as simulated. `result`
    is a simulation of them, if any."""
    system = System(scenario)
    first = first_byte_s(system)
    count = int(until_s * system.rate_hz)
    return Regular(
        event=system.triangle,
        arrivals_s=tuple(k / system.rate_hz + first for k in range(1, count + 1)),
        peak_bytes=exact(system.triangle, system.rate_hz, scenario.builders.units).peak_bytes,
        until_s=until_s,
        result=result,
    )


def switch_of(scenario: Scenario) -> Switch:
    """Return the scenario's own top-of-rack switch."""
    tor = scenario.network.switch.tor
    return Switch(tor.model, tor.model, BLUE, tor.buffer or None, tor.cost)
