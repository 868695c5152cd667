"""Warnings about features of a scenario that the formulas ignore. The formulas draw the buffer
occupancy of an event over time as a triangle."""

from collections.abc import Iterator

from daqloom.analyse.system import System


def departures(system: System) -> Iterator[str]:
    """Yield a sentence for each feature that violates the assumption of periodic, equal events."""
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
        kind = f"event.size_distribution = {event.size_distribution}"
        yield f"{kind}: the formulas assume that all events have the mean size"
    if system.scenario.building.assignment == "random":
        yield "building.assignment = random: two events may share a link, which the formulas ignore"


def _replies(system: System) -> Iterator[str]:
    scenario, largest = system.scenario, max(system.fragments_bytes)
    if scenario.readout.response.kind != "fixed":
        response = f"readout.response.kind = {scenario.readout.response.kind}"
        yield f"{response}: the formulas assume that all readout units answer at once"
    if 0 < scenario.building.outstanding_fragments < scenario.readout.units:
        text = "building.outstanding_fragments limits the requests in flight of an event"
        yield f"{text}: analysis.published and the latency assume that all are sent at once"
    reply = f"a reply of {largest} B exceeds the"
    if largest > system.window_bytes:
        window = f"TCP window of {system.window_bytes} B"
        yield f"{reply} {window} and takes longer than the formulas assume"
    elif largest > system.first_window_bytes:
        first = f"initial TCP window of {system.first_window_bytes} B"
        yield f"{reply} {first}: until windows have grown, it takes longer than the formulas assume"


def _network(system: System) -> Iterator[str]:
    scenario = system.scenario
    slowest_s = 8 * max(system.fragments_bytes) / scenario.network.links.source.rate
    if slowest_s > 8 * scenario.event.size / system.input_bps * (1 + 1e-3):
        yield "event.share: the largest fragment arrives last, which the formulas ignore"
    if scenario.network.switch.core.architecture == "software":
        text = "network.switch.core.model = software: the formulas assume that its cores keep up"
        yield f"{text} with all sources; its descriptors drop what they do not"
    if scenario.network.links.uplink.count > 1:
        yield "network.links.uplink.count: the formulas have one link; ECMP loads several unequally"
