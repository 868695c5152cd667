"""What a scenario has and the triangles leave out, said in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daqloom.analyse.system import System


def departures(system: System, peak_bytes: float) -> Iterator[str]:
    """One sentence for each way in which the system departs from periodic, equal triangles."""
    yield from _events(system)
    yield from _replies(system)
    yield from _network(system, peak_bytes)


def _events(system: System) -> Iterator[str]:
    event, builders = system.scenario.event, system.scenario.builders
    if event.arrivals != "deterministic":
        yield (
            f"event.arrivals = {event.arrivals}: the formulas take events as periodic, and events "
            "that come closer together need more buffer: analysis.back_to_back at most"
        )
    if event.size_distribution != "fixed":
        yield (
            f"event.size_distribution = {event.size_distribution}: the formulas take every event "
            "as the mean one"
        )
    if builders.assignment == "random":
        yield (
            "builders.assignment = random: two events may share a builder's link, which the "
            "formulas exclude"
        )


def _replies(system: System) -> Iterator[str]:
    scenario, largest = system.scenario, max(system.fragments_bytes)
    if scenario.sources.response != "fixed":
        yield (
            f"sources.response = {scenario.sources.response}: the formulas take all sources as "
            "answering at once"
        )
    if 0 < scenario.builders.outstanding_fragments < scenario.sources.count:
        yield (
            "builders.outstanding_fragments limits the requests of an event, which all "
            "formulas but incast take as sent at once"
        )
    if largest > system.window_bytes:
        yield (
            f"a reply of {largest} B does not fit into a window of {system.window_bytes} B and "
            "comes more slowly than the formulas say"
        )
    elif largest > system.first_window_bytes:
        yield (
            f"a reply of {largest} B does not fit into the first window of "
            f"{system.first_window_bytes} B: until windows have grown it comes more slowly than "
            "the formulas say"
        )


def _network(system: System, peak_bytes: float) -> Iterator[str]:
    scenario, tor = system.scenario, system.scenario.switch.tor
    slowest_s = 8 * max(system.fragments_bytes) / scenario.links.source.rate
    if slowest_s > 8 * scenario.event.size / system.input_bps * (1 + 1e-3):
        yield "event.share: the largest fragment comes in after the others, which the formulas omit"
    if scenario.links.uplink.count > 1:
        yield (
            "links.uplink.count: the formulas take the uplinks as one, and ECMP may load one of "
            "them more than another"
        )
    if tor.buffer and peak_bytes > tor.buffer:
        yield (
            f"the exact peak, {peak_bytes / 1e6:.4g} MB, exceeds the buffer of the {tor.model}, "
            f"{tor.buffer / 1e6:.4g} MB: expect drops"
        )
