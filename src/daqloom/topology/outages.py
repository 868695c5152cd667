"""What [faults.injected] breaks of a network, and when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.faults import Fault, Faults
from daqloom.topology.broken import between_switches
from daqloom.topology.fabric import Fabric
from daqloom.words import did_you_mean

NETWORK = ("cable", "port", "switch", "host")
"""What of a fault is the network's."""


@dataclass(frozen=True)
class Outage:
    """One thing that is broken for a while."""

    name: str
    """Of its table in faults.injected."""
    fault: Fault
    which: str
    """The thing, such as "leaf0 port 3"."""
    begin_s: float
    end_s: float
    """Infinity: to the end of the run."""
    links: tuple[int, ...]
    """Directed links that break: 2c leads from end a of cable c to its end b, 2c + 1 back."""

    @property
    def cables(self) -> set[int]:
        """Cables of which a link is broken, by their place in `fabric.cables`."""
        return {link // 2 for link in self.links}

    def detected_s(self, detection_s: float) -> float | None:
        """Return when both ends know that it is down (s); None: it works, or again before that."""
        known_s = self.begin_s + detection_s
        return known_s if self.fault.how != "degraded" and known_s < self.end_s else None


def outages(faults: Faults, fabric: Fabric, nodes: Sequence[int]) -> list[Outage]:
    """Return the outages of the network in the order of time, drawn by `faults.seed`; `nodes` are
    the hosts that have units. Raises ScenarioError for what the network does not have."""
    found = [
        Outage(name, fault, which, begin_s, end_s, links)
        for name, fault in faults.injected.items()
        if fault.what in NETWORK
        for which, links in _things(faults, name, fabric, nodes)
        for begin_s, end_s in fault.times()
    ]
    return sorted(found, key=lambda outage: (outage.begin_s, outage.name, outage.which))


def _things(
    faults: Faults, name: str, fabric: Fabric, nodes: Sequence[int]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Return what breaks, and its links."""
    fault = faults.injected[name]
    if not fault.which:
        everything = _all(fault, fabric, nodes)
        for which in faults.drawn(name, list(everything)):
            yield which, everything[which]
        return
    named = _named(fault, fabric)
    if fault.which not in named:
        known = did_you_mean(fault.which, named, f'expected one such as "{next(iter(named), "")}"')
        raise ScenarioError(
            f'faults.injected.{name}.which = "{fault.which}" is no {fault.what} of the network; '
            f"{known}"
        )
    yield fault.which, named[fault.which]


def _all(fault: Fault, fabric: Fabric, nodes: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return what can be drawn."""
    if fault.what == "cable":
        cables = between_switches(fabric)
        return {
            fabric.end_name(fabric.cables[c].a): _links(fault, c, toward_b=True) for c in cables
        }
    named = _named(fault, fabric)
    if fault.what == "host":
        return {name: named[name] for name in (fabric.hosts[host].name for host in nodes)}
    return named


def _named(fault: Fault, fabric: Fabric) -> dict[str, tuple[int, ...]]:
    """Return what can be named."""
    ends = {
        fabric.end_name(end): _links(fault, place, toward_b=end == cable.b)
        for place, cable in enumerate(fabric.cables)
        for end in (cable.a, cable.b)
    }
    if fault.what in ("cable", "port"):
        return ends
    hosts = len(fabric.hosts)
    of_node: dict[str, list[int]] = {
        node.name: [] for node in (fabric.hosts if fault.what == "host" else fabric.switches)
    }
    for place, cable in enumerate(fabric.cables):
        for end in (cable.a, cable.b):
            if (end.node < hosts) == (fault.what == "host"):
                of_node[fabric.nodes[end.node].name] += [2 * place, 2 * place + 1]
    return {name: tuple(dict.fromkeys(links)) for name, links in of_node.items()}


def _links(fault: Fault, cable: int, *, toward_b: bool) -> tuple[int, ...]:
    """Return the links of a cable that break: the one towards the named end, or both."""
    if fault.how == "one-way":
        return (2 * cable,) if toward_b else (2 * cable + 1,)
    return 2 * cable, 2 * cable + 1
