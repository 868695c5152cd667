"""Probes that measure the buffer size of a switch port from outside, by two independent methods.
The incast probe finds the largest event that is built without a drop; a closed form gives the
event's peak occupancy of the port. This is the load of event building. The burst probe is the test
of RFC 9004: it finds the longest sequence of back-to-back packets from one host that arrives
without a drop."""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from daqloom.deployment.scenarios import override
from daqloom.device.document import load_device
from daqloom.device.under_test import DeviceUnderTest
from daqloom.lab.laboratory import Laboratory
from daqloom.lab.network import lab_network
from daqloom.machine.child import Child
from daqloom.machine.launch import Launcher
from daqloom.machine.namespace import NETWORK
from daqloom.measure.check import check_measurable
from daqloom.measure.plan import launcher_of
from daqloom.measure.run import measure
from daqloom.results.errors import MeasureError
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.links import FRAME_OVERHEAD_BYTES, WIRE_OVERHEAD_BYTES
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.parts import Parts
from daqloom.study.file.bisection import vote
from daqloom.study.methods.methods import analyse

LONGEST_S = 20.0
"""Limit on tested events: time of the largest one on a builder's link (s)."""
MOST_PACKETS = 1 << 20
EVENTS = 8
"""Number of successive events for each tested size: two for each of about four builders."""
ROUNDS = 5
"""Number of bursts for each tested length; the majority must arrive without a drop."""
IDLE = 3.0
"""Interval between events, in units of an event's time on a builder's link."""
FILLS = 4
"""Input rate of the port, in units of its output rate."""
UDP_HEADERS_BYTES = 28
QUIET_S = 0.3
"""Time after which a burst counts as complete, in addition to its time on the wire (s)."""
PROGRAM = (sys.executable, "-m", "daqloom.machine.burst")

Report = Callable[[float, str], None]


@dataclass(frozen=True)
class Estimate:
    """Buffer size of a port, measured by one probe."""

    buffer_bytes: float
    """Buffer size (B), counted in frames with headers and frame check sequence."""
    tested: int
    """Number of tested event sizes or burst lengths."""
    how: str


def probe(scenario: Scenario, report: Report) -> dict[str, Estimate]:
    """Measure the buffer of the switch port to a builder in a rack, in a laboratory or on a device
    under test. `report` is called with the completed share and the name of the probe. Raises
    ScenarioError if the scenario has no such port, and MeasureError."""
    _check(check_measurable(scenario))
    found = {"incast": _incast(scenario, lambda share: report(share / 2, "incast"))}
    found["bursts"] = _bursts(scenario, lambda share: report(0.5 + share / 2, "bursts"))
    return found


def _check(scenario: Scenario) -> None:
    measured, links = scenario.measure, scenario.network.links
    if Parts.INCAST not in scenario.parts or not measured.has_network:
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
    """Return the peak port occupancy of the largest event that arrives without a drop."""
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
    """Return a laboratory's scenario with only as many readout units as needed to fill a port
    quickly: the resolution of the probe is one packet of each unit. Other scenarios are unchanged,
    because their units are assigned to real hosts in turn."""
    links = scenario.network.links
    if not scenario.measure.has_lab:
        return scenario
    few = max(2, math.ceil(FILLS * links.access.rate / links.source.rate))
    return override(scenario, {"readout.units": min(few, scenario.readout.units)})


def _one_at_a_time(scenario: Scenario, event_bytes: int) -> Scenario:
    """Return the scenario with events far enough apart that the port is empty before each, and with
    static TCP windows that hold a whole fragment."""
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
    """Return the port occupancy of the longest burst that arrives without a drop."""
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
    """Return the maximum number of frames of a burst in the port, including the frame being sent.
    Frames arrive `ratio` times as fast as they leave, and leave only after they have arrived
    completely. This is the correction of RFC 9004, section 5.4, in whole frames."""
    return burst - math.floor((burst - 1) / ratio)


def _largest(low: int, high: int, tolerance: int, holds: Callable[[float], bool]) -> int:
    """Return the largest value at which the condition `holds`, within `tolerance`. The condition
    holds at `low` and fails at `high`."""
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
    receiver.send({"receive": packets, "trial": trial, "quiet_s": quiet_s})
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
    """Set up the scenario's network. Yield the burst programs on the hosts of the first readout
    unit (sender) and the first builder unit (receiver), and the receiver's address."""
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
