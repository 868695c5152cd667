"""Names of links: by their ends and by their cables."""

from daqloom.faults.logs.change import Port
from daqloom.faults.statistics.links import Links
from daqloom.topology.shapes.clos import folded_clos


def test_a_cable_is_known_by_its_ends_and_by_its_name() -> None:
    fabric = folded_clos("tree", leaves=2, spines=1, hosts_per_leaf=2, rate_bps=10**11)
    links = Links(fabric)
    assert len(links.names) == len(fabric.cables)
    for name in links.names:
        assert links.name(Port(name, "")) == name
        assert links.name(Port(" - ".join(reversed(name.split(" - "))), "")) == name
    host = fabric.hosts[0].name
    assert links.name(Port(host, "")) == links.name(Port(host, "1"))
