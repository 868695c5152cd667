"""Racks behind core routers, and forwarding by all equally short ways: every packet arrives, by the
shortest way, and by each of them where there are several."""

from collections.abc import Iterator

import pytest

from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import End, Fabric
from daqloom.topology.routing.by_name import routing
from daqloom.topology.routing.minimal import EqualCost, equal_cost, single
from daqloom.topology.shapes.clos import folded_clos
from daqloom.topology.shapes.racks import racks


def ways(fabric: Fabric, routes: EqualCost, source: int, target: int) -> list[int]:
    """Return the number of switches on each way that a packet may take."""
    ports_of: dict[int, list[tuple[int, ...]]] = {}
    for switch, ports in routes.groups:
        ports_of.setdefault(switch, []).append(ports)

    def from_switch(node: int, hops: int) -> Iterator[int]:
        assert hops < 10, "a loop"
        switch = node - len(fabric.hosts)
        route = int(routes.ports[switch, target])
        assert route > 0, "no route"
        number = route - fabric.switches[switch].ports
        ports = ports_of[switch][number - 1] if number > 0 else (route,)
        for port in ports:
            after = fabric.peers[End(node, port)].node
            if after == target:
                yield hops
            else:
                assert after >= len(fabric.hosts), "another host"
                yield from from_switch(after, hops + 1)

    return list(from_switch(fabric.peers[End(source, 1)].node, 1))


def farm(racks_: int, routers: int, uplinks: int) -> tuple[Fabric, EqualCost]:
    sizes = {"readouts": 5, "builders": 3, "racks": racks_, "routers": routers, "uplinks": uplinks}
    fabric = racks(**sizes, readout_bps=100, uplink_bps=800, access_bps=25)
    return fabric, equal_cost(fabric)


@pytest.mark.parametrize("uplinks", [1, 3])
@pytest.mark.parametrize(("racks_", "routers"), [(1, 1), (3, 1), (3, 2), (1, 2)])
def test_every_host_of_a_farm_reaches_every_other(racks_, routers, uplinks):
    fabric, routes = farm(racks_, routers, uplinks)
    readouts, hosts = 5, 5 + 3 * racks_
    assert len(fabric.hosts) == hosts
    assert len(fabric.cables) == hosts + racks_ * routers * uplinks
    assert len({end for cable in fabric.cables for end in (cable.a, cable.b)}) == 2 * len(
        fabric.cables
    )
    for source in range(hosts):
        for target in range(hosts):
            if source == target:
                continue
            found = ways(fabric, routes, source, target)
            if (source < readouts) != (target < readouts):  # through a router and a ToR
                assert found == [2] * uplinks


def test_readout_units_are_spread_over_routers_with_ports_enough():
    fabric, _ = farm(2, 2, 1)
    routers = [fabric.nodes[fabric.peers[End(unit, 1)].node].name for unit in range(5)]
    assert routers == ["core.0", "core.1", "core.0", "core.1", "core.0"]
    assert [cable.rate_bps for cable in fabric.cables] == [100] * 5 + [800, 800, 25, 25, 25] * 2
    with pytest.raises(TopologyError, match="a router with 70001 ports"):
        racks(readouts=70_000, builders=1, readout_bps=1, uplink_bps=1, access_bps=1)


def test_a_tree_has_as_many_ways_as_spines_and_cables_or_one_by_its_table():
    fabric = folded_clos("tree", leaves=3, spines=2, links=2, hosts_per_leaf=2, rate_bps=1)
    routes = equal_cost(fabric)
    assert ways(fabric, routes, 0, 1) == [1]
    assert ways(fabric, routes, 0, 5) == [3] * (2 * 2 * 2)  # up by 4 cables, down by 2
    # A leaf has one group for all hosts elsewhere, a spine has one for each leaf.
    assert len(routes.groups) == 3 + 2 * 3
    fabric = folded_clos("tree", leaves=3, spines=2, hosts_per_leaf=2, rate_bps=1)
    table = routing(fabric, None, "d-mod-k")
    routes = single(table)
    assert routes.groups == ()
    assert (routes.ports == table.ports).all()
    assert ways(fabric, routes, 0, 5) == [3]
