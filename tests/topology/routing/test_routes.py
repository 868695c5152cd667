"""Routes: what the tables say, what is wrong with them, and tables that are computed."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.scenario.dumps import shipped_fabrics
from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import Cable, End, Fabric, Node
from daqloom.topology.fabric.wiring import NONE
from daqloom.topology.formats.load import load_fabric
from daqloom.topology.routing.by_name import routing
from daqloom.topology.routing.dmodk import d_mod_k
from daqloom.topology.routing.minimal import TIES, minimal
from daqloom.topology.routing.routes import Hop, Routes, route, trace
from daqloom.topology.shapes.clos import folded_clos

RATE = 200 * 10**9
SAMPLES = ["lhcb", "fattree72", "cluster64"]
LHCB = {"leaves": 18, "spines": 10, "hosts_per_leaf": 20, "links": 2, "radix": 40}


def tables(fabric: Fabric, *rows: list[int]) -> Routes:
    return Routes(np.array(rows, np.int16))


def two_leaves() -> Fabric:
    """Hosts A B on leaf L0 (ports 1 2), C on L1 (port 1); port 3 of each leads to spine S."""
    ends = (((0, 1), (3, 1)), ((1, 1), (3, 2)), ((2, 1), (4, 1)))
    ends += (((3, 3), (5, 1)), ((4, 3), (5, 2)))
    hosts = tuple(Node(name, 1) for name in "ABC")
    switches = tuple(Node(name, 4) for name in ("L0", "L1", "S"))
    cables = tuple(Cable(End(*a), End(*b), RATE) for a, b in ends)
    return Fabric("two-leaves", hosts, switches, cables)


GOOD = ([1, 2, 3], [3, 3, 1], [1, 1, 2])
"""Tables of L0, L1, S: the ports towards A, B, C."""


def forwarding_of_the_dump(folder: Path) -> dict[tuple[str, str], list[tuple[str, int]]]:
    """(source, destination) → the switches passed and the ports left by, from the text alone."""
    peer: dict[tuple[str, int], tuple[str, int]] = {}
    names: dict[str, str] = {}
    here = ""
    for line in (folder / "ibnetdiscover.txt").read_text().splitlines():
        if device := re.match(r'(?:Switch|Ca)\s+\d+ "(\S+)"\s+# "([^"]+)"', line):
            here = device[1]
            names[here] = device[2]
        elif cable := re.match(r'\[(\d+)\](?:\(\w+\))?\s+"(\S+)"\[(\d+)\]', line):
            peer[here, int(cable[1])] = cable[2], int(cable[3])
    port_to: dict[tuple[str, str], int] = {}
    for line in (folder / "opensm-lfts.dump").read_text().splitlines():
        if switch := re.match(r"Unicast lids .* guid 0x(\w+) ", line):
            here = f"S-{switch[1]}"
        elif entry := re.match(r"0x\w+ (\d+) # Channel Adapter portguid 0x\w+: '(\S+)'", line):
            port_to[here, entry[2]] = int(entry[1])
    hosts = [device for device in names if device.startswith("H-")]
    found = {}
    for source in hosts:
        for destination in hosts:
            if source == destination:
                continue
            at, hops = peer[source, 1][0], []
            while at != destination:
                port = port_to[at, names[destination]]
                hops.append((names[at], port))
                at = peer[at, port][0]
                assert len(hops) < 6
            found[names[source], names[destination]] = hops
    return found


@pytest.mark.parametrize("name", SAMPLES)
def test_our_forwarding_of_every_pair_is_that_of_the_dump(name):
    folder = shipped_fabrics()[name]
    fabric, ports, _ = load_fabric(folder)
    paths = trace(fabric, Routes(ports))
    assert paths.defects == ()
    assert paths.pairs_lost == 0
    everyone = np.arange(len(fabric.hosts))
    links = paths.links(everyone[:, None], everyone)
    names = [node.name for node in fabric.nodes]
    wiring = paths.wiring
    tail = [(names[n], int(port)) for n, port in zip(wiring.tail, wiring.tail_port, strict=True)]
    head = [names[node] for node in wiring.head]
    ours = {}
    for source, row in enumerate(links.transpose(1, 2, 0).tolist()):
        for destination, pair in enumerate(row):
            if source != destination:
                taken = [link for link in pair if link != NONE]
                assert tail[taken[0]] == (names[source], 1)
                assert head[taken[-1]] == names[destination]
                ours[names[source], names[destination]] = [tail[link] for link in taken[1:]]
    assert ours == forwarding_of_the_dump(folder)


def test_a_route_lists_nodes_with_their_ports():
    fabric = two_leaves()
    hops = [Hop(1, 1, 0), Hop(3, 3, 2), Hop(5, 2, 1), Hop(4, 1, 3), Hop(2, 0, 1)]
    assert route(fabric, tables(fabric, *GOOD), 1, 2) == hops
    assert route(fabric, tables(fabric, *GOOD), 1, 1) == [Hop(1, 0, 0)]
    with pytest.raises(TopologyError, match="2 switches × 3 hosts, the fabric has 3 × 3"):
        trace(two_leaves(), Routes(np.ones((2, 3), np.int16)))


PORT = "uncabled port"
LOOP = "packets to A and 1 other host loop: L1 port 3, S port 2"


@pytest.mark.parametrize(
    ("rows", "kind", "sentence"),
    [
        # S forgets C: both hosts of L0 lose it.
        (([1, 2, 3], [3, 3, 1], [1, 1, 0]), "no route", "S has no route to C"),
        (([1, 2, 3], [3, 3, 1], [1, 1, 4]), PORT, "S sends to C by port 4, which has no cable"),
        (([1, 2, 3], [3, 3, 1], [1, 1, 99]), PORT, "S sends to C by port 99, which has no cable"),
        # L0 sends C to its own host A, and that is not C.
        (
            ([1, 2, 1], [3, 3, 1], [1, 1, 2]),
            "wrong host",
            "L0 sends to C by port 1, which leads to A",
        ),
        # S sends what is for A back to L1, whose only host C cannot reach A and B.
        (([1, 2, 3], [3, 3, 1], [2, 2, 2]), "loop", LOOP),
    ],
)
def test_defects_of_tables_are_named_by_switch_and_port(rows, kind, sentence):
    fabric = two_leaves()
    paths = trace(fabric, tables(fabric, *rows))
    [defect] = paths.defects
    assert (defect.kind, defect.pairs, defect.sentence) == (kind, 2, sentence)
    everyone = np.arange(3)
    broken = paths.are_broken(everyone[:, None], everyone)
    assert broken.sum() == paths.pairs_lost == 2
    lost = defect.destinations[0]
    source = int(np.flatnonzero(broken[:, lost])[0])
    assert (paths.links(source, lost) == NONE).all()
    with pytest.raises(TopologyError, match=r"no path from \w to \w"):
        route(fabric, tables(fabric, *rows), source, lost)


def test_a_host_without_cable_or_way_loses_its_pairs():
    fabric = two_leaves()
    cut = Fabric(fabric.name, fabric.hosts, fabric.switches, fabric.cables[1:])
    paths = trace(cut, tables(cut, *GOOD))
    # A reaches neither B nor C; B and C reach no A, for L0's port 1 leads nowhere.
    uncabled = "L0 sends to A by port 1, which has no cable"
    found = [(defect.sentence, defect.pairs) for defect in paths.defects]
    assert sorted(found) == [("A is not cabled to a switch", 2), (uncabled, 2)]
    with pytest.raises(TopologyError, match="A is not cabled to a switch"):
        route(cut, tables(cut, *GOOD), 0, 1)
    split = Fabric("split", fabric.hosts, fabric.switches, fabric.cables[:4])
    routes = minimal(split)
    assert routes.ports.tolist() == [[1, 2, 0], [0, 0, 1], [1, 1, 0]]
    assert {defect.kind for defect in trace(split, routes).defects} == {"no route"}


@given(st.data())
def test_tracing_all_pairs_at_once_agrees_with_walking_each(data):
    switches, hosts = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 6))
    free = [End(hosts + s, port) for s in range(switches) for port in range(1, 7)]
    free = data.draw(st.permutations(free))
    cables = [Cable(End(host, 1), free.pop(), RATE) for host in range(hosts)]
    pairs = data.draw(st.integers(0, min(6, len(free) // 2)))
    cables += [Cable(free.pop(), free.pop(), RATE) for _ in range(pairs)]
    ends = tuple(Node(f"H{n}", 1) for n in range(hosts))
    nodes = tuple(Node(f"S{n}", 6) for n in range(switches))
    cables = [cable for cable in cables if cable.a.node != cable.b.node]
    fabric = Fabric("any", ends, nodes, tuple(cables))
    entries = st.lists(st.integers(-1, 8), min_size=hosts, max_size=hosts)
    rows = data.draw(st.lists(entries, min_size=switches, max_size=switches))
    routes = tables(fabric, *rows)
    paths = trace(fabric, routes)
    for source in range(hosts):
        for destination in range(hosts):
            links = [n for n in paths.links(source, destination).tolist() if n != NONE]
            walked = [End(paths.wiring.tail[n], paths.wiring.tail_port[n]) for n in links]
            try:
                hops = route(fabric, routes, source, destination)
            except TopologyError:
                assert paths.are_broken(source, destination)
                assert walked == []
            else:
                assert not paths.are_broken(source, destination)
                assert walked == [End(hop.node, hop.out_port) for hop in hops[:-1]]
    everyone = np.arange(hosts)
    assert paths.pairs_lost == paths.are_broken(everyone[:, None], everyone).sum()


def test_d_mod_k_takes_the_spine_and_the_parallel_link_of_the_formula():
    fabric = folded_clos("lhcb", **LHCB, rate_bps=RATE)
    routes = d_mod_k(fabric)
    for destination in range(0, 360, 7):
        leaf, p = divmod(destination, 20)
        for source in (0, 47, 359):
            if source // 20 == leaf:
                continue
            hops = route(fabric, routes, source, destination)
            names = [fabric.nodes[hop.node].name for hop in hops]
            assert names[2] == f"spine{p % 10:02}"
            # Clos: leaf port 20 + 2·spine + link + 1, spine port 2·leaf + link + 1.
            link = p // 10 % 2
            assert hops[1].out_port == 20 + 2 * (p % 10) + link + 1
            assert hops[2].out_port == 2 * leaf + link + 1


def test_d_mod_k_reaches_all_by_shortest_paths_also_with_missing_hosts_and_links():
    fabric = folded_clos("lhcb", **LHCB, rate_bps=RATE, hosts=350)
    between = next(n for n, cable in enumerate(fabric.cables) if cable.a.node >= 350)
    cables = fabric.cables[:between] + fabric.cables[between + 1 :]
    dead = Fabric("dead", fabric.hosts, fabric.switches, cables)
    assert trace(dead, d_mod_k(dead)).defects == ()
    shape = {"pods": 3, "leaves": 4, "spines": 2, "cores": 4, "hosts_per_leaf": 4, "links": 2}
    for hosts in (48, 29):
        fabric = folded_clos("t", **shape, core_links=2, radix=16, rate_bps=RATE, hosts=hosts)
        ours, shortest = trace(fabric, d_mod_k(fabric)), trace(fabric, minimal(fabric))
        assert ours.defects == ()
        everyone = np.arange(hosts)
        links = [paths.links(everyone[:, None], everyone) for paths in (ours, shortest)]
        assert np.array_equal(*((each != NONE).sum(axis=0) for each in links))


def test_d_mod_k_names_the_cable_that_breaks_a_folded_clos():
    fabric = folded_clos("t", leaves=3, spines=2, hosts_per_leaf=2, links=1, radix=5, rate_bps=RATE)
    leaf01, spine00, spine01 = 6 + 1, 6 + 3, 6 + 4  # after six hosts

    def cabled(*cables: Cable) -> Fabric:
        return Fabric("t", fabric.hosts, fabric.switches, cables)

    without = [c for c in fabric.cables if (c.a.node, c.b.node) != (leaf01, spine01)]
    assert len(without) == len(fabric.cables) - 1
    with pytest.raises(TopologyError, match=r"leaf01 has no cable to spine01, which leaf00 has"):
        d_mod_k(cabled(*without))
    across = Cable(End(spine00, 4), End(spine01, 4), RATE)
    with pytest.raises(TopologyError, match=r"spine00 port 4 and spine01 port 4 are cabled"):
        d_mod_k(cabled(*fabric.cables, across))
    moved = Cable(End(0, 1), End(spine00, 4), RATE)
    with pytest.raises(TopologyError, match=r"H00-00 is on spine00 port 4, no leaf"):
        d_mod_k(cabled(moved, *fabric.cables[1:]))


@pytest.mark.parametrize("tie", TIES)
def test_minimal_routing_is_shortest_on_an_imperfect_fabric(tie):
    fabric, ports, _ = load_fabric(shipped_fabrics()["cluster64"])
    ours, imported = trace(fabric, minimal(fabric, tie)), trace(fabric, Routes(ports))
    assert ours.defects == ()
    # OpenSM fell back to minhop there, so its paths are shortest, too.
    everyone = np.arange(len(fabric.hosts))
    lengths = [(p.links(everyone[:, None], everyone) != NONE).sum(axis=0) for p in (ours, imported)]
    assert (lengths[0] == lengths[1]).all()


def ring(switches: int) -> Fabric:
    """One host on port 1 of each switch, port 2 to the next switch's port 3."""
    hosts = tuple(Node(f"H{n}", 1) for n in range(switches))
    nodes = tuple(Node(f"S{n}", 3) for n in range(switches))
    access = [Cable(End(n, 1), End(switches + n, 1), RATE) for n in range(switches)]
    after = [switches + (n + 1) % switches for n in range(switches)]
    around = [Cable(End(switches + n, 2), End(to, 3), RATE) for n, to in enumerate(after)]
    return Fabric("ring", hosts, nodes, (*access, *around))


def test_minimal_routing_goes_the_short_way_and_ties_have_rules():
    fabric = ring(5)
    # From S0: hosts 1 and 2 clockwise by port 2, 3 and 4 by port 3.
    assert minimal(fabric, "lowest-port").ports[0].tolist() == [1, 2, 2, 3, 3]
    fabric = folded_clos("t", leaves=2, spines=3, hosts_per_leaf=6, links=1, radix=9, rate_bps=RATE)
    # leaf00 reaches the six hosts of leaf01 by ports 7, 8, 9: all alike.
    far = slice(6, 12)
    assert minimal(fabric, "lowest-port").ports[0, far].tolist() == [7] * 6
    assert minimal(fabric, "modulo").ports[0, far].tolist() == [7, 8, 9, 7, 8, 9]
    assert minimal(fabric, "balanced").ports[0, far].tolist() == [7, 8, 9, 7, 8, 9]
    fabric, _, _ = load_fabric(shipped_fabrics()["lhcb"])
    leaf = minimal(fabric, "balanced").ports[0]
    _, shares = np.unique(leaf[leaf > 20], return_counts=True)
    # 340 far hosts over 20 uplinks.
    assert shares.tolist() == [17] * 20


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ftree", 'routing "ftree" is not known; known are imported, d-mod-k, minimal'),
        ("minimal:random", 'no tie rule "random"; known are balanced, lowest-port, modulo'),
        ("imported", "comes without forwarding tables"),
        ("d-mod-k:3", "is not known"),
    ],
)
def test_a_routing_that_is_not_there_is_refused(name, reason):
    with pytest.raises(TopologyError, match=re.escape(reason)):
        routing(two_leaves(), None, name)
