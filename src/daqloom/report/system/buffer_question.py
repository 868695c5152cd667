"""How much buffer does a top-of-rack switch need: the results that answer it, side by side."""

from dataclasses import dataclass

from daqloom.analyse.bounds import first_byte_s
from daqloom.analyse.peak import exact
from daqloom.analyse.system import System
from daqloom.analyse.triangles import Triangle
from daqloom.report.style import BLUE, GREEN, ORANGE, PURPLE
from daqloom.results.result import Result
from daqloom.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Switch:
    """A top-of-rack switch under test. `buffer_bytes` and `cost` are None where unlimited.
    `transport` changes keys of the scenario: the same switch under another TCP."""

    model: str
    label: str
    colour: str
    buffer_bytes: int | None
    cost: float | None
    transport: tuple[tuple[str, bool], ...] = ()


UNLIMITED = Switch("infinite", "unlimited", BLUE, None, None)
SHALLOW = Switch("qfx5120-48y", "QFX5120-48Y", ORANGE, 32_000_000, 1.0)
SHALLOW_PLAIN_TCP = Switch(
    "qfx5120-48y",
    "QFX5120-48Y, no RACK",
    PURPLE,
    32_000_000,
    1.0,
    (("transport.rack", False), ("transport.tail_loss_probe", False)),
)
DEEP = Switch("acx7100-48l", "ACX7100-48L", GREEN, 8_000_000_000, 2.5)
"""The two switches of the ATLAS study, with their relative cost (ATLAS HL-LHC buffer
benchmarking, section 3.1). The shallow one also without RACK and tail-loss probes (RFC 8985),
which servers have had by default for some years only: repair then often waits for a timeout."""


@dataclass(frozen=True, slots=True)
class Run:
    """One simulated switch."""

    switch: Switch
    result: Result


@dataclass(frozen=True, slots=True)
class Regular:
    """Periodic events: their triangles and, if simulated, the result. `event` is the triangle of
    one event, `arrivals_s` the instants at which the first bytes of each reach the switch,
    `peak_bytes` the closed form, `until_s` where the picture ends."""

    event: Triangle
    arrivals_s: tuple[float, ...]
    peak_bytes: float
    until_s: float
    result: Result | None = None


@dataclass(frozen=True, slots=True)
class BufferQuestion:
    """Everything that the table and the figures show. `regular` is a short run with periodic
    events, for which the formula is exact. `runs` are simulations with the scenario's own arrivals,
    the unlimited buffer first."""

    scenario: Scenario
    analysis: Result
    regular: Regular
    runs: tuple[Run, ...]

    @property
    def title(self) -> str:
        """The operating point, as a heading."""
        event = self.scenario.event
        size, rate = event.size / 1e6, event.rate / 1e3
        return f"{self.scenario.name}: events of {size:g} MB at {rate:g} kHz into one rack"


def regular_events(scenario: Scenario, until_s: float, result: Result | None = None) -> Regular:
    """The scenario's events as if they were periodic, at 1/f, 2/f, … as the simulator sends them.
    `result` is a simulation of that, if there is one."""
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
    """The scenario's own top-of-rack switch."""
    tor = scenario.network.switch.tor
    return Switch(tor.model, tor.model, BLUE, tor.buffer or None, tor.cost)
