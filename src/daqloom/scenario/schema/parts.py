"""Parts of a system: flags that declare for which systems a method provides a metric."""

from __future__ import annotations

from enum import Flag, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daqloom.scenario.schema.tables import Tables


class Parts(Flag):
    """Parts of a system, described in `_WORDS`. A metric declares parts for each method; the method
    provides the metric for systems with at least one of these parts."""

    NONE = 0
    PULL = auto()
    SHIFT = auto()
    DAQPIPE = auto()
    FLOWS = auto()
    FLOWS_ALONE = auto()
    TCP = auto()
    RDMA = auto()
    ETHERNET = auto()
    INFINIBAND = auto()
    RACKS = auto()
    INCAST = auto()
    PHASES = auto()
    CREDITS = auto()
    TREES = auto()
    WAITING_FLOWS = auto()
    LEVELS = auto()
    CLASSES = auto()
    DATAGRAMS = auto()
    BROKEN = auto()
    FAULTED = auto()
    REGROUPED = auto()
    LAB_RACKS = auto()
    LAB_TREES = auto()
    DEVICE = auto()
    LAB = LAB_RACKS | LAB_TREES
    BUILDERS = SHIFT | DAQPIPE
    """Protocols that send multi-fragment packets."""
    REQUESTED = PULL | DAQPIPE
    """Protocols that assign an event to a builder unit, which then collects its fragments."""
    BUILT = PULL | BUILDERS
    ON_PATHS = PHASES | CREDITS
    """Multi-fragment packets by RDMA on fixed paths (no ECMP hash)."""
    ALONE = INCAST | CREDITS
    """Systems with a closed form for the latency of an event alone in the network."""
    ANALYSED = INCAST | ON_PATHS
    EVERY = BUILT | FLOWS

    def __str__(self) -> str:
        names, rest = [], self
        for one, words in _WORDS.items():  # a whole before its parts
            if one in rest:
                names.append(words)
                rest &= ~one
        return ", ".join(names)


_WORDS = {
    Parts.PULL: "pull",
    Parts.SHIFT: "shift",
    Parts.DAQPIPE: "DAQPIPE",
    Parts.FLOWS: "flows",
    Parts.FLOWS_ALONE: "flows alone",
    Parts.TCP: "TCP",
    Parts.RDMA: "RDMA",
    Parts.ETHERNET: "Ethernet",
    Parts.INFINIBAND: "InfiniBand",
    Parts.RACKS: "racks",
    Parts.INCAST: "pull over TCP in a rack",
    Parts.PHASES: "shift by RDMA on fixed paths",
    Parts.CREDITS: "DAQPIPE by RDMA on fixed paths",
    Parts.TREES: "Ethernet outside racks",
    Parts.WAITING_FLOWS: "flows alone over InfiniBand",
    Parts.LEVELS: "several service levels",
    Parts.CLASSES: "several classes on Ethernet",
    Parts.DATAGRAMS: "flows over UDP",
    Parts.BROKEN: "shift by RDMA on what broken cables leave",
    Parts.FAULTED: "injected faults",
    Parts.REGROUPED: "units that regroup",
    Parts.LAB: "in a laboratory",
    Parts.LAB_RACKS: "racks in a laboratory",
    Parts.LAB_TREES: "other networks in a laboratory",
    Parts.DEVICE: "with a device under test",
}
_ON_FIXED_PATHS = {"shift": Parts.PHASES, "daqpipe": Parts.CREDITS}


def regroups(scenario: Tables) -> bool:
    """Return whether a simulation includes a run control, which regroups units. This requires a
    protocol that continues without lost units, and one of three causes. Units or hosts fail;
    another fault occurs in a run longer than the fault timeout, so that units may be unreachable or
    stall; or new forwarding tables require a new schedule."""
    protocol = scenario.building.protocol
    injected = scenario.faults.injected.values()
    is_long = scenario.run.duration > scenario.measure.fault_timeout
    loses_units = any(each.loses_units or is_long for each in injected)
    return (
        protocol in ("shift", "daqpipe", "pull")
        and not scenario.flows
        and not scenario.readout.card.buffer
        and (loses_units or (protocol == "shift" and is_mended(scenario)))
    )


def is_mended(scenario: Tables) -> bool:
    """Return whether a subnet manager's sweep in the run installs tables with another schedule."""
    faults = scenario.faults
    is_swept = bool(faults.injected) and faults.routing == "sweep"
    return scenario.network.routing == "mended" and is_swept


def _is_incast(scenario: Tables) -> bool:
    """Return whether the closed forms of incast describe the system: pull building without other
    flows, over TCP in one rack."""
    network = scenario.network
    return (
        scenario.building.protocol == "pull"
        and not scenario.flows
        and not scenario.folded
        and scenario.transport.kind == "tcp"
        and (network.technology, network.shape) == ("ethernet", "rack")
    )


def parts_of(scenario: Tables) -> Parts:
    """Return the parts of a system."""
    protocol, network = scenario.building.protocol, scenario.network
    parts = Parts.FLOWS if scenario.flows else Parts.NONE
    parts |= Parts.FLOWS_ALONE if protocol == "none" else Parts[protocol.upper()]
    parts |= Parts[scenario.transport.kind.upper()] | Parts[network.technology.upper()]
    if network.is_racks:
        parts |= Parts.RACKS
    elif network.technology == "ethernet":
        parts |= Parts.TREES
    if any(flow.transport == "udp" for flow in scenario.flows.values()):
        parts |= Parts.DATAGRAMS
    if scenario.faults.injected:
        parts |= Parts.FAULTED
    if regroups(scenario):
        parts |= Parts.REGROUPED
    if scenario.has_levels:
        parts |= Parts.LEVELS
    if scenario.has_classes:
        parts |= Parts.CLASSES
    if scenario.measure.has_lab:
        parts |= Parts.LAB_RACKS if network.is_racks else Parts.LAB_TREES
    if scenario.measure.device:
        parts |= Parts.DEVICE
    if _is_incast(scenario):
        parts |= Parts.INCAST
    if scenario.transport.kind == "rdma" and not network.spreads and not scenario.flows:
        parts |= _ON_FIXED_PATHS.get(protocol, Parts.NONE)
    if Parts.PHASES in parts and (scenario.faults.cables or network.routing == "mended"):
        parts |= Parts.BROKEN
    if protocol == "none" and network.technology == "infiniband":
        parts |= Parts.WAITING_FLOWS
    return parts
