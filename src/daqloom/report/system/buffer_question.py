"""Switches, simulations and other results on how much buffer a top-of-rack switch needs."""

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
    """A top-of-rack switch under test. If unlimited, `buffer_bytes` and `cost` are None.
    `transport` has scenario keys that change the TCP of the hosts in the test."""

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
"""The two switches of the ATLAS study, `SHALLOW` and `DEEP`, with their relative cost (ATLAS HL-LHC
buffer benchmarking, section 3.1). `SHALLOW_PLAIN_TCP` lacks RACK and tail-loss probes (RFC 8985) as
older servers do: retransmission often waits for a timeout."""


@dataclass(frozen=True, slots=True)
class Run:
    """Result of the simulation with a switch."""

    switch: Switch
    result: Result


@dataclass(frozen=True, slots=True)
class Regular:
    """Events at regular intervals. `event` is the triangle of one event; the first byte of each
    event reaches the switch at `arrivals_s`. `peak_bytes` is the closed form; the figure ends at
    `until_s`. `result` is a simulation of these events, if any."""

    event: Triangle
    arrivals_s: tuple[float, ...]
    peak_bytes: float
    until_s: float
    result: Result | None = None


@dataclass(frozen=True, slots=True)
class BufferQuestion:
    """Results of all methods. `regular` is a short run with periodic events, for which the formula
    is exact. `runs` have the scenario's own arrivals; the unlimited buffer is first. `measured` is
    a run of the real event builder, or the reason why there is none."""

    scenario: Scenario
    analysis: Result
    regular: Regular
    runs: tuple[Run, ...]
    measured: Result | str = "not asked for"

    @property
    def title(self) -> str:
        """Heading of the figure: scenario name, event size and event rate."""
        event = self.scenario.event
        size, rate = event.size / 1e6, event.rate / 1e3
        return f"{self.scenario.name}: events of {size:g} MB at {rate:g} kHz into one rack"


def regular_events(scenario: Scenario, until_s: float, result: Result | None = None) -> Regular:
    """Return the scenario's events at regular intervals up to `until_s`: event k starts at k/f (f:
    event rate), as in the simulation. `result` is that simulation, if any."""
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
    """Return the top-of-rack switch of the scenario."""
    tor = scenario.network.switch.tor
    return Switch(tor.model, tor.model, BLUE, tor.buffer or None, tor.cost)
