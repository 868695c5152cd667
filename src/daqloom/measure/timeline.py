"""Timeline of a measured run, as the spans that a simulated run also has."""

from collections.abc import Iterable, Mapping

from daqloom.control.protocol.messages import StageRow
from daqloom.deployment.fabric_system import FabricSystem
from daqloom.results.timeline import Span, Stage, barrier_waits, spans
from daqloom.scenario.schema.building import Building
from daqloom.topology.schedule.slots import DUMMY, hosts_of


def measured_spans(
    stages: Mapping[int, Iterable[StageRow]],
    began_ns: int,
    system: FabricSystem,
    building: Building,
) -> list[Span]:
    """Return the spans from the stages of readout units, in seconds since `began_ns` (ns since
    1970). The steps of an epoch continue those of the previous epoch, in whole rounds; steps that
    not all units began before the epoch's end are left out."""
    unit_of = {host: unit for unit, host in enumerate(system.hosts)}
    node_of = {unit_of[host]: node for node, host in enumerate(hosts_of(system.readouts))}
    rows = [(row, node_of[unit]) for unit in stages if unit in node_of for row in stages[unit]]
    found: list[Span] = []
    first_step, rounds = 0, len(system.readouts)
    for epoch in sorted({row[1] for row, _ in rows}):
        here = _begun_by_all([(row, node) for row, node in rows if row[1] == epoch])
        if not here:
            continue
        begun: list[Stage] = sorted(
            ((begin_ns - began_ns) / 1e9, first_step + step, node, what)
            for (begin_ns, _, step, _, what), node in here
        )
        partners = {
            (node, first_step + step): system.hosts[to] if 0 <= to < len(system.hosts) else DUMMY
            for (_, _, step, to, _), node in here
        }
        members = {node for _, node in here}
        waits = barrier_waits(building, system.barrier_groups, members)
        found += spans(begun, begun[-1][0], members, lambda *place, to=partners: to[place], waits)
        first_step = -(-(1 + max(step for _, step, _, _ in begun)) // rounds) * rounds
    return found


def _begun_by_all(rows: list[tuple[StageRow, int]]) -> list[tuple[StageRow, int]]:
    """Return the steps of an epoch that all its nodes began."""
    begun = dict.fromkeys((node for _, node in rows), -1)
    for (_, _, step, _, what), node in rows:
        if what in ("sending", "idle"):
            begun[node] = max(begun[node], step)
    last = min(begun.values())
    return [(row, node) for row, node in rows if row[2] <= last]
