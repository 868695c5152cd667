"""Plan of a run's faults: which parts of a system [faults.injected] breaks, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from daqloom.base.words import did_you_mean
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.faults import Fault, Faults
from daqloom.topology.fabric.broken_cables import between_switches
from daqloom.topology.fabric.fabric import Fabric


@dataclass(frozen=True)
class Outage:
    """One part of the system that is broken for some time."""

    name: str
    """Name of its table in faults.injected."""
    fault: Fault
    which: str
    """Name of the broken part, such as "leaf00 port 3"."""
    begin_s: float
    end_s: float
    """Infinity: to the end of the run."""
    links: tuple[int, ...] = ()
    """Broken directed links. Of cable c, link 2c leads from end a to end b, and 2c + 1 back."""
    node: int = -1
    """Index of the node whose units, network card or host fail; -1: none."""

    @property
    def cables(self) -> set[int]:
        """Cables with a broken link, as indices in `fabric.cables`."""
        return {link // 2 for link in self.links}


@dataclass(frozen=True)
class FaultPlan:
    """All outages in a system during a run."""

    faults: Faults
    outages: tuple[Outage, ...] = ()
    """Outages in order of time."""

    def detected_s(self, outage: Outage) -> float | None:
        """Return the time (s) when both ends have detected a link as down; None if they do not."""
        known_s = outage.begin_s + self.faults.detection
        is_down = outage.links and outage.fault.how != "degraded"
        return known_s if is_down and known_s < outage.end_s else None

    def known_broken(self) -> list[tuple[float, frozenset[int]]]:
        """Return (time in s, cables that both ends know to be down) for each change of this set. A
        break that ends before its detection is never known."""
        spans = [
            (detected_s, outage.end_s + self.faults.detection, outage.cables)
            for outage in self.outages
            if (detected_s := self.detected_s(outage)) is not None
        ]
        times = sorted({at for span in spans for at in span[:2] if at != float("inf")})
        found: list[tuple[float, frozenset[int]]] = []
        for at in times:
            now = frozenset(c for begin, end, cables in spans if begin <= at < end for c in cables)
            if now != (found[-1][1] if found else frozenset()):
                found.append((at, now))
        return found


@dataclass(frozen=True)
class _Thing:
    """Something that can break."""

    which: str
    links: tuple[int, ...] = ()
    node: int = -1


def fault_plan(faults: Faults, fabric: Fabric, nodes: Sequence[int]) -> FaultPlan:
    """Return the fault plan of a run, drawn with `faults.seed`; `nodes`: the host of each node.
    Raises ScenarioError for a part that the system does not have."""
    known: dict[tuple[str, str], dict[str, _Thing]] = {}
    found = []
    for name, fault in faults.injected.items():
        if (kind := (fault.what, fault.how)) not in known:
            known[kind] = _parts_by_name(fault, fabric, nodes)
        for thing in _things(faults, name, known[kind], fabric, nodes):
            found += [
                Outage(name, fault, thing.which, *span, thing.links, thing.node)
                for span in fault.times()
            ]
    found.sort(key=lambda outage: (outage.begin_s, outage.name, outage.which))
    return FaultPlan(faults, tuple(found))


def _things(
    faults: Faults, name: str, named: dict[str, _Thing], fabric: Fabric, nodes: Sequence[int]
) -> list[_Thing]:
    """Return the parts that a fault breaks, chosen from all `named` ones."""
    fault = faults.injected[name]
    if not fault.which:
        return faults.draw(name, _drawn_from(fault, named, fabric, nodes))
    if fault.which not in named:
        usual = next((each.which for each in _drawn_from(fault, named, fabric, nodes)), "")
        known = did_you_mean(fault.which, named, f'expected one such as "{usual}"')
        refusal = f'faults.injected.{name}.which = "{fault.which}" is no {fault.what} of the system'
        raise ScenarioError(f"{refusal}; {known}")
    return [named[fault.which]]


def _drawn_from(
    fault: Fault, named: dict[str, _Thing], fabric: Fabric, nodes: Sequence[int]
) -> list[_Thing]:
    if fault.what == "cable":
        ends = (fabric.cables[place].a for place in between_switches(fabric))
        return [named[fabric.end_name(end)] for end in ends]
    if fault.what == "host":
        return [named[fabric.hosts[host].name] for host in nodes]
    return list(dict.fromkeys(named.values()))


def _parts_by_name(fault: Fault, fabric: Fabric, nodes: Sequence[int]) -> dict[str, _Thing]:
    """Return all parts that a fault can name, by name."""
    if fault.kind.breaks == "node":
        units = [_Thing(str(node), node=node) for node in range(len(nodes))]
        by_host = {fabric.hosts[host].name: units[node] for node, host in enumerate(nodes)}
        return {unit.which: unit for unit in units} | by_host
    if fault.what in ("cable", "port"):
        things = [
            _Thing(fabric.end_name(end), _links(fault, place, end == cable.b))
            for place, cable in enumerate(fabric.cables)
            for end in (cable.a, cable.b)
        ]
        return {thing.which: thing for thing in things}
    hosts = len(fabric.hosts)
    among = fabric.hosts if fault.what == "host" else fabric.switches
    place_of = {host: node for node, host in enumerate(nodes)} if fault.what == "host" else {}
    links: dict[str, list[int]] = {node.name: [] for node in among}
    for place, cable in enumerate(fabric.cables):
        for end in (cable.a, cable.b):
            if (end.node < hosts) == (fault.what == "host"):
                links[fabric.nodes[end.node].name] += [2 * place, 2 * place + 1]
    return {
        name: _Thing(name, tuple(dict.fromkeys(each)), place_of.get(host, -1))
        for host, (name, each) in enumerate(links.items())
    }


def _links(fault: Fault, cable: int, toward_b: bool) -> tuple[int, ...]:
    """Return the links of a cable that break: only the one towards the named end, or both."""
    if fault.how == "one-way":
        return (2 * cable,) if toward_b else (2 * cable + 1,)
    return 2 * cable, 2 * cable + 1
