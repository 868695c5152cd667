"""Probes of a port's buffer: its size, measured from outside in two independent ways.

An incast is the load for which buffers of ToR switches are made, and that of event building: the
result is the largest event without a drop, and its occupancy of the port by closed form. A burst is
the test of RFC 9004: the longest row of back-to-back packets of one host that arrives whole.
"""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from daqloom.device.document import load_device
from daqloom.device.under_test import DeviceUnderTest
from daqloom.lab.laboratory import Laboratory
from daqloom.lab.network import lab_network
from daqloom.machine.child import Child
from daqloom.machine.launch import Launcher
from daqloom.machine.namespace import NETWORK
from daqloom.measure.plan import check_measurable, launcher_of
from daqloom.measure.run import measure
from daqloom.results.errors import MeasureError
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.links import FRAME_OVERHEAD_BYTES, WIRE_OVERHEAD_BYTES
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.parts import Parts, parts_of
from daqloom.study.file.bisection import vote
from daqloom.study.methods.methods import analyse
from daqloom.topology.system.scenarios import override

LONGEST_S = 20.0
"""Time that the largest event tried takes on a builder's link."""
MOST_PACKETS = 1 << 20
EVENTS = 8
"""Events of each size, one after the other, two for each of some four builders."""
ROUNDS = 5
"""Bursts of each length, most of which have to arrive whole."""
IDLE = 3.0
"""Time between events, in units of the time that one takes on a builder's link."""
FILLS = 4
"""Rate at which a port fills, in units of the rate at which it empties."""
UDP_HEADERS_BYTES = 28
QUIET_S = 0.3
"""Time after which no packet of a burst arrives, in addition to that on the wire."""
PROGRAM = (sys.executable, "-m", "daqloom.machine.burst")

Report = Callable[[float, str], None]


@dataclass(frozen=True)
class Estimate:
    """Buffer of a port by one probe."""

    buffer_bytes: float
    """Size as frames with headers and check sequence."""
    tested: int
    """Number of events' sizes, or lengths of bursts, that were tried."""
    how: str

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


def probe(scenario: Scenario, report: Report) -> dict[str, Estimate]:
    """Probe the port of a builder in a rack, of a laboratory or behind a device under test; calls
    `report` with the share done, and the probe. Raises ScenarioError where the scenario has no such
    port, and MeasureError."""
    _check(check_measurable(scenario))
    found = {"incast": _incast(scenario, lambda share: report(share / 2, "incast"))}
    found["bursts"] = _bursts(scenario, lambda share: report(0.5 + share / 2, "bursts"))
    return found


def _check(scenario: Scenario) -> None:
    measured, links = scenario.measure, scenario.network.links
    if Parts.INCAST not in parts_of(scenario) or not measured.has_network:
        raise ScenarioError(
            "a probe tests the port of a builder in a rack that is made or named for it: set "
            'measure.lab = "namespaces" or measure.device, network.shape = "rack" and '
            'building.protocol = "pull"'
        )
    if links.source.rate <= links.access.rate:
        raise ScenarioError(
            "a burst of one host fills a port only where it comes faster than it leaves: "
            "network.links.source.rate has to be above network.links.access.rate"
        )
    if measured.device and load_device(measured.device).limits.rate:
        raise ScenarioError(
            f"{measured.device}: a probe sends as fast as links are, and limits.rate is below; "
            "probe a network without other users, without this limit"
        )


def _incast(scenario: Scenario, report: Callable[[float], None]) -> Estimate:
    """Find the largest event that arrives without drops, and its occupancy of the port."""
    scenario = _with_few_sources(scenario)
    units, segment, tested = scenario.readout.units, scenario.mss, 0

    def arrives(event_bytes: float) -> bool:
        nonlocal tested
        tested += 1
        report(1 - 0.9**tested)
        result = measure(_one_at_a_time(scenario, round(event_bytes)))
        return result.metric("packets_dropped") == 0

    low = units * segment
    if not arrives(low):
        raise MeasureError(
            f"packets of an event of {units} segments, one from each readout unit, are dropped: "
            "the port holds less than a probe can measure; use fewer readout units"
        )
    high = 2 * low
    while arrives(high):
        low, high = high, 2 * high
        if 8 * high > LONGEST_S * scenario.network.links.access.rate:
            raise MeasureError(f"the port holds more than {low} B: no event was dropped")
    largest = _largest(low, high, segment, arrives)
    peak_bytes = analyse(_one_at_a_time(scenario, largest)).metric("buffer_peak_bytes.tor")
    origin = f"events of up to {largest} B from {units} readout units arrive"
    return Estimate(float(peak_bytes or 0), tested, origin)


def _with_few_sources(scenario: Scenario) -> Scenario:
    """Return the scenario with no more readout units than fill a port quickly: the resolution is
    one packet of each. Real hosts keep theirs, as units are dealt out to hosts in turn."""
    links = scenario.network.links
    if not scenario.measure.has_lab:
        return scenario
    few = max(2, math.ceil(FILLS * links.access.rate / links.source.rate))
    return override(scenario, {"readout.units": min(few, scenario.readout.units)})


def _one_at_a_time(scenario: Scenario, event_bytes: int) -> Scenario:
    """Return the scenario with events that find the port empty, and windows of a fragment."""
    length_s = IDLE * 8 * event_bytes / scenario.network.links.access.rate
    window = max(scenario.transport.static_window, 2 * event_bytes // scenario.readout.units)
    return override(
        scenario,
        {
            "event.size": f"{event_bytes} B",
            "event.arrivals": "deterministic",
            "event.rate": f"{1 / length_s} Hz",
            "building.concurrent_events": 1,
            "transport.congestion": "static",
            "transport.static_window": f"{window} B",
            "measure.events": EVENTS,
            "measure.warmup": "0.5 s",
            "measure.duration": f"{1 + 2 * EVENTS * length_s} s",
        },
    )


def _bursts(scenario: Scenario, report: Callable[[float], None]) -> Estimate:
    """Find the longest burst that arrives whole, and its occupancy of the port."""
    links, mtu = scenario.network.links, scenario.network.mtu
    frame_bytes = mtu + FRAME_OVERHEAD_BYTES
    wire_bits = 8 * (frame_bytes + WIRE_OVERHEAD_BYTES)
    drain_s = wire_bits / links.access.rate
    tested, trial = 0, 0
    with _ends(scenario) as (sender, receiver, address):

        def arrives(packets: float) -> bool:
            nonlocal tested, trial
            tested += 1
            report(1 - 0.9**tested)
            quiet_s, whole = QUIET_S + packets * drain_s, list[bool]()
            while (decided := vote(whole, ROUNDS)) is None:
                trial += 1
                whole.append(_whole(sender, receiver, address, round(packets), trial, quiet_s, mtu))
            return decided

        low = 1
        if not arrives(low):
            raise MeasureError(
                "single packets do not arrive: a firewall between the hosts drops UDP, or "
                "measure.network is not that of the switch"
            )
        high = 2
        while arrives(high):
            low, high = high, 2 * high
            if high > MOST_PACKETS:
                raise MeasureError(f"the port holds more than a burst of {low} packets leaves")
        longest = _largest(low, high, 1, arrives)
    return Estimate(
        held_frames(longest, links.source.rate / links.access.rate) * frame_bytes,
        tested,
        f"bursts of up to {longest} packets arrive",
    )


def held_frames(burst: int, ratio: float) -> int:
    """Return the number of frames of a burst that a port holds at most, with the one that it sends:
    they come `ratio` times as fast as they leave, and each is whole before it leaves. This is the
    correction of RFC 9004, section 5.4, to the frame."""
    return burst - math.floor((burst - 1) / ratio)


def _largest(low: int, high: int, tolerance: int, holds: Callable[[float], bool]) -> int:
    """Return the largest value at which it holds, within `tolerance`; it does at `low`, and not at
    `high`."""
    while high - low > tolerance:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _whole(
    sender: Child,
    receiver: Child,
    to: tuple[str, int],
    packets: int,
    trial: int,
    quiet_s: float,
    mtu: int,
) -> bool:
    """Whether a burst arrives whole."""
    receiver.send({"hear": packets, "trial": trial, "quiet_s": quiet_s})
    size = mtu - UDP_HEADERS_BYTES
    sender.send({"send": packets, "trial": trial, "to": list(to), "bytes": size})
    sender.answer()
    counts = receiver.answer()
    if counts["overflowed"]:
        raise MeasureError(
            f"the socket of the receiving host lost {counts['overflowed']} packets, which were not "
            "dropped by the network; raise net.core.rmem_max there"
        )
    return bool(counts["received"] == packets)


@contextmanager
def _ends(scenario: Scenario) -> Iterator[tuple[Child, Child, tuple[str, int]]]:
    """Yield the programs on the host of the first readout unit and on that of the first builder
    unit, and the latter's address, with the network of the scenario."""
    with ExitStack() as stack:
        launcher: Launcher = launcher_of(scenario)
        network = scenario.measure.network
        if scenario.measure.has_lab:
            launcher = stack.enter_context(Laboratory(lab_network(scenario))).launching(launcher)
            network = NETWORK
        else:
            stack.enter_context(DeviceUnderTest(scenario))
        if not network:
            raise ScenarioError(
                "a probe needs measure.network, which gives the hosts' addresses behind the switch"
            )
        units = (0, scenario.readout.units)
        ends = [
            stack.enter_context(
                Child(launcher.command_at(unit, PROGRAM), f"burst on the host of unit {unit}")
            )
            for unit in units
        ]
        for end in ends:
            end.send({"listen": network})
        addresses = [end.answer() for end in ends]
        yield ends[0], ends[1], (str(addresses[1]["address"]), int(addresses[1]["port"]))
