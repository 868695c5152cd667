"""Parts of a system: flags that declare for which systems a method provides a metric."""

from enum import Flag, auto


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
    STORED = auto()
    STORED_INCAST = auto()
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
    ANALYSED = INCAST | STORED_INCAST | ON_PATHS
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
    Parts.STORED: "storage units",
    Parts.STORED_INCAST: "pull over TCP in a rack with storage units",
    Parts.REGROUPED: "units that regroup",
    Parts.LAB: "in a laboratory",
    Parts.LAB_RACKS: "racks in a laboratory",
    Parts.LAB_TREES: "other networks in a laboratory",
    Parts.DEVICE: "with a device under test",
}
