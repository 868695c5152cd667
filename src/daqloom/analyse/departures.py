"""Sentences on the features of a scenario that the triangles ignore."""

from collections.abc import Iterator

from daqloom.analyse.system import System


def departures(system: System) -> Iterator[str]:
    """Return one sentence per departure of the system from periodic, equal triangles."""
    yield from _events(system)
    yield from _replies(system)
    yield from _network(system)


def _events(system: System) -> Iterator[str]:
    event = system.scenario.event
    if event.arrivals != "deterministic":
        yield (
            f"event.arrivals = {event.arrivals}: the formulas assume periodic events, and events "
            "that arrive closer together need more buffer, at most analysis.back_to_back"
        )
    if event.size_distribution != "fixed":
        yield (
            f"event.size_distribution = {event.size_distribution}: the formulas assume that all "
            "events have the mean size"
        )
    if system.scenario.building.assignment == "random":
        yield (
            "building.assignment = random: two events may share a builder's link, which the "
            "formulas ignore"
        )


def _replies(system: System) -> Iterator[str]:
    scenario, largest = system.scenario, max(system.fragments_bytes)
    if scenario.readout.response.kind != "fixed":
        yield (
            f"readout.response.kind = {scenario.readout.response.kind}: the formulas assume that "
            "all readout units answer at once"
        )
    if 0 < scenario.building.outstanding_fragments < scenario.readout.units:
        yield (
            "building.outstanding_fragments limits the requests in flight of an event: "
            "analysis.published and the latency assume that all are sent at once"
        )
    if largest > system.window_bytes:
        yield (
            f"a reply of {largest} B exceeds the TCP window of {system.window_bytes} B and takes "
            "longer than the formulas assume"
        )
    elif largest > system.first_window_bytes:
        yield (
            f"a reply of {largest} B exceeds the initial TCP window of "
            f"{system.first_window_bytes} B: until windows have grown, it takes longer than the "
            "formulas assume"
        )


def _network(system: System) -> Iterator[str]:
    scenario = system.scenario
    slowest_s = 8 * max(system.fragments_bytes) / scenario.network.links.source.rate
    if slowest_s > 8 * scenario.event.size / system.input_bps * (1 + 1e-3):
        yield "event.share: the largest fragment arrives last, which the formulas ignore"
    if scenario.network.switch.core.architecture == "software":
        yield (
            "network.switch.core.model = software: the formulas assume that its cores keep up with "
            "all sources; its descriptors drop what they do not"
        )
    if scenario.network.links.uplink.count > 1:
        yield (
            "network.links.uplink.count: the formulas treat the uplinks as one link, and ECMP may "
            "load them unequally"
        )
