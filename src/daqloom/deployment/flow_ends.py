"""Hosts of flows: sources and destinations, by place among all hosts of flows."""

from daqloom.deployment.fabric_system import FabricSystem
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.flows import EVERY, RANDOM
from daqloom.scenario.schema.models import Scenario


def flow_hosts(scenario: Scenario, system: FabricSystem) -> list[int]:
    """Return the hosts of flows: first the hosts of nodes in order; with a building protocol, then
    other hosts that flows name."""
    hosts = system.hosts
    if not scenario.protocol.builds:
        return hosts
    named = {host for flow in scenario.flows.values() for host in (flow.source, flow.destination)}
    others = {number for number, host in enumerate(system.fabric.hosts) if host.name in named}
    return [*hosts, *sorted(others - set(hosts))]


def flow_sources(scenario: Scenario, system: FabricSystem) -> dict[str, list[int]]:
    """Return the sources of each flow as indices in `flow_hosts`, in the engine's order of flows.
    Raises ScenarioError for an unknown host."""
    places = host_places(system, flow_hosts(scenario, system))
    sources: dict[str, list[int]] = {}
    for name, given in sorted(scenario.flows.items()):
        nodes = list(places.values())
        if given.source != EVERY:
            nodes = [_place(f"flows.{name}.source", given.source, places)]
        if given.destination != RANDOM:
            to = _place(f"flows.{name}.destination", given.destination, places)
            nodes = [node for node in nodes if node != to]
        if not nodes or (given.destination == RANDOM and len(places) < 2):
            raise ScenarioError(
                f"flows.{name}: {given.source} would write only to itself; name another host as "
                "source or destination, or use more hosts"
            )
        sources[name] = nodes
    return sources


def flow_destination(scenario: Scenario, system: FabricSystem, name: str) -> int | None:
    """Return the destination of a flow as an index in `flow_hosts`; None if each message has its
    own. Raises ScenarioError for an unknown host."""
    to = scenario.flows[name].destination
    places = host_places(system, flow_hosts(scenario, system))
    return None if to == RANDOM else _place(f"flows.{name}.destination", to, places)


def host_places(system: FabricSystem, hosts: list[int]) -> dict[str, int]:
    """Return the place of each host of flows, by its name."""
    return {system.fabric.hosts[host].name: place for place, host in enumerate(hosts)}


def _place(key: str, host: int | str, places: dict[str, int]) -> int:
    """Return the index of a host that is given as an index or as a name."""
    if isinstance(host, int) and host < len(places):
        return host
    if host not in places:
        names = list(places)
        raise ScenarioError(
            f"{key} = {host} is not a node; expected 0 to {len(names) - 1}, or a name from "
            f"{names[0]} to {names[-1]}"
        )
    return places[str(host)]
