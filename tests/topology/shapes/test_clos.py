"""Generated trees: the numbering of real ones, what fits and what does not, and their exports."""

import json
import re
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import Cable, End, Fabric, Node, check, with_rate
from daqloom.topology.fabric.graphviz import quote, to_dot
from daqloom.topology.fabric.levels import tree
from daqloom.topology.formats.as_json import from_json, to_json
from daqloom.topology.formats.load import load_fabric
from daqloom.topology.shapes.clos import folded_clos
from support.repository import ROOT
from support.small_fabrics import pods

SAMPLES = ROOT / "scenarios" / "fabrics"
SDR = 8 * 10**9
LHCB = {"leaves": 18, "spines": 10, "hosts_per_leaf": 20, "links": 2, "radix": 40}


def cabled(fabric: Fabric) -> set[frozenset[tuple[str, int]]]:
    """The cabling by names, whatever the order of nodes and cables."""
    names = [node.name for node in fabric.nodes]
    ends = ((cable.a, cable.b) for cable in fabric.cables)
    return {frozenset((names[end.node], end.port) for end in both) for both in ends}


def test_generated_trees_are_cabled_like_the_real_ones():
    lhcb = folded_clos("lhcb", **LHCB, rate_bps=SDR)
    assert cabled(lhcb) == cabled(load_fabric(SAMPLES / "lhcb")[0])
    sizes = {"leaves": 4, "spines": 2, "hosts_per_leaf": 18, "links": 9, "radix": 36}
    small = folded_clos("fattree72", **sizes, rate_bps=SDR)
    assert cabled(small) == cabled(load_fabric(SAMPLES / "fattree72")[0])


def test_ports_are_numbered_from_below_and_rates_are_those_of_all():
    # Radix 8, 2 spines × 2 links: uplinks are ports 5 … 8 although only two hosts are below.
    fabric = folded_clos("t", leaves=2, spines=2, hosts_per_leaf=2, links=2, radix=8, rate_bps=SDR)
    leaf1, spine1 = 4 + 1, 4 + 2 + 1
    assert fabric.nodes[leaf1].name == "leaf01"
    assert fabric.nodes[spine1].name == "spine01"
    assert fabric.peers[End(3, 1)] == End(leaf1, 2)
    assert fabric.peers[End(leaf1, 7)] == End(spine1, 3)
    assert fabric.peers[End(leaf1, 8)] == End(spine1, 4)
    assert fabric.end_name(End(leaf1, 7)) == "leaf01 port 7"
    assert fabric.end_name(End(3, 1)) == "H01-01"
    fabric = folded_clos("t", leaves=1, spines=1, hosts_per_leaf=1, links=1, radix=2, rate_bps=1)
    assert {cable.rate_bps for cable in with_rate(fabric, 10**11).cables} == {10**11}


def test_planes_of_cores_join_the_pods_and_hosts_fill_leaf_after_leaf():
    sizes = {"pods": 3, "leaves": 2, "spines": 2, "cores": 2, "hosts_per_leaf": 2, "links": 1}
    fabric = folded_clos("t", **sizes, core_links=2, radix=6, rate_bps=SDR)
    assert (len(fabric.hosts), len(fabric.switches)) == (3 * 2 * 2, 3 * (2 + 2) + 2 * 2)
    # Hosts, leaf–spine, spine–core.
    assert len(fabric.cables) == 12 + 3 * 2 * 2 + 3 * 2 * 2 * 2
    assert tree(fabric).counts == {1: 6, 2: 6, 3: 4}
    names = {node.name: index for index, node in enumerate(fabric.nodes)}
    # Spine 1 of pod 2 is spine05: its last ports lead to cores 2 and 3, pod 2's ports 5 and 6.
    assert fabric.peers[End(names["spine05"], 3)] == End(names["core02"], 5)
    assert fabric.peers[End(names["spine05"], 6)] == End(names["core03"], 6)
    fabric = folded_clos("t", **LHCB, rate_bps=SDR, hosts=321)
    assert len(fabric.hosts) == 321
    leaves = [fabric.peers[End(host, 1)].node - 321 for host in range(321)]
    assert [leaves.count(leaf) for leaf in range(18)] == [20] * 16 + [1, 0]
    assert tree(fabric).counts == {1: 18, 2: 10}


def verdicts(fabric: Fabric) -> tuple[bool, bool]:
    found = tree(fabric)
    return found.full_bisection, found.non_blocking


def test_verdicts_compare_the_host_rate_of_a_leaf_with_its_uplinks():
    # 3 hosts over 2 uplinks are 3:2 at equal rates, balanced when uplinks are 3/2 as fast.
    sizes = {"leaves": 2, "spines": 2, "hosts_per_leaf": 3, "links": 1, "radix": 5}
    thin = folded_clos("t", **sizes, rate_bps=100)
    assert [(b.down_bps, b.up_bps) for b in tree(thin).blocking] == [(300, 200)] * 2
    assert verdicts(thin) == (False, False)
    hosts = len(thin.hosts)
    cables = tuple(c if c.a.node < hosts else replace(c, rate_bps=150) for c in thin.cables)
    assert verdicts(replace(thin, cables=cables)) == (True, True)
    # One full leaf of two: there is no other half outside of it.
    assert verdicts(folded_clos("t", **sizes, rate_bps=100, hosts=3)) == (True, False)
    # Two full leaves of three: the cables of the empty one carry nothing between them.
    sizes["leaves"] = 3
    assert verdicts(folded_clos("t", **sizes, rate_bps=100, hosts=6)) == (False, False)
    # 3 hosts and 2: what the others can take is all that the full leaf need send.
    assert verdicts(folded_clos("t", **sizes, rate_bps=100, hosts=5)) == (True, False)


def test_a_pod_that_passes_on_too_little_splits_the_bisection():
    sizes = {"pods": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "links": 1, "rate_bps": 1}
    # A pod has 4 hosts: 2 spines with 2 cables each to cores, or with 1.
    assert verdicts(folded_clos("t", **sizes, cores=2)) == (True, True)
    assert verdicts(folded_clos("t", **sizes, cores=1)) == (False, False)


@pytest.mark.parametrize("hosts", [1, 18, 19, 40, 72])
def test_pods_that_stand_empty_keep_their_levels_in_spite_of_wrong_cables(hosts):
    fabric = pods(hosts)
    names = {node.name: place for place, node in enumerate(fabric.nodes)}
    # In the last pod a leaf and a spine lose a cable each.
    dead = {End(names["leaf11"], 14), End(names["spine07"], 12)}
    assert dead <= fabric.peers.keys()
    cables = tuple(c for c in fabric.cables if not dead & {c.a, c.b})
    found = tree(Fabric("t", fabric.hosts, fabric.switches, cables))
    assert found.counts == {1: 12, 2: 8, 3: 6}
    assert found.full_bisection == (hosts < 72)  # else leaf11 has 6 hosts over 5 cables


def test_levels_of_a_long_chain_are_distances_and_a_server_makes_no_leaf():
    switches = tuple(Node(f"s{place}", 3) for place in range(3000))
    chain = [Cable(End(place, 1), End(place + 1, 2), 1) for place in range(1, 3000)]
    cables = (Cable(End(0, 1), End(1, 3), 1), *chain)
    fabric = Fabric("chain", (Node("host", 1),), switches, cables)
    assert tree(fabric).level == tuple(range(1, 3001))
    fabric = folded_clos("t", leaves=3, spines=2, hosts_per_leaf=2, links=1, radix=5, rate_bps=1)
    spine = len(fabric.hosts) + 3
    ends = [[e._replace(node=e.node + (e.node >= 6)) for e in (c.a, c.b)] for c in fabric.cables]
    cables = (*(Cable(a, b, 1) for a, b in ends), Cable(End(6, 1), End(spine + 1, 5), 1))
    hosts = (*fabric.hosts, Node("server", 1))
    assert tree(Fabric("t", hosts, fabric.switches, cables)).counts == {1: 3, 2: 2}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"radix": 39}, "a leaf needs 40 ports, and its radix is 39"),
        ({"leaves": 21}, "a spine needs 42 ports"),
        ({"hosts": 361}, "cannot hold 361 hosts"),
        ({"spines": 0}, "0 spines"),
        ({"links": -1}, "-1 links"),
        ({"radix": 2000}, "at most 1023"),
        ({"leaves": 10**9}, "49151"),
        ({"leaves": 1000, "spines": 1000}, "262144 cables"),
        ({"pods": 2}, "three levels require both pods and cores"),
        ({"core_links": 2}, "three levels require both pods and cores"),
        ({"pods": 0, "cores": 1}, "0 leaves"),
        ({"pods": 1, "cores": 0}, "0 cores"),
        ({"pods": 3, "cores": 1, "core_links": 20}, "a spine needs 56 ports"),
    ],
)
def test_trees_that_cannot_be_are_refused(change, words):
    with pytest.raises(TopologyError, match=re.escape(words)):
        folded_clos("t", **(LHCB | change), rate_bps=SDR)


@st.composite
def trees(draw):
    """Trees of two and three levels, with any number of hosts, filled leaf by leaf."""
    sizes = {"leaves": st.integers(1, 5), "spines": st.integers(1, 3), "links": st.integers(1, 3)}
    if draw(st.booleans()):
        sizes |= {"pods": st.integers(2, 4), "cores": st.integers(1, 3)}
        sizes |= {"core_links": st.integers(1, 2)}
    shape = {name: draw(size) for name, size in sizes.items()}
    per_leaf = draw(st.integers(1, 4))
    hosts = draw(st.integers(1, shape.get("pods", 1) * shape["leaves"] * per_leaf))
    rate = draw(st.integers(1, 10**12))
    return folded_clos("t", **shape, hosts_per_leaf=per_leaf, hosts=hosts, radix=24, rate_bps=rate)


TREES = trees()


@given(TREES)
def test_json_gives_the_same_fabric_back_and_every_switch_has_its_level(fabric):
    assert from_json(to_json(fabric)) == fabric
    # The generator says by its names what the cabling must show.
    levels = {"leaf": 1, "spine": 2, "core": 3}
    expected = [levels[re.sub("[0-9]+", "", switch.name)] for switch in fabric.switches]
    assert list(tree(fabric).level) == expected


def test_graphviz_merges_parallel_links_ranks_levels_and_quotes_names():
    fabric = folded_clos("t", leaves=2, spines=1, hosts_per_leaf=2, links=3, radix=6, rate_bps=1)
    dot = to_dot(fabric)
    assert dot.count(" -- ") == 2
    assert dot.count('[label="3"') == 2
    assert dot.count("rank=same") == 2
    assert 'label="leaf00\\n2 hosts"' in dot
    assert to_dot(fabric, each_host=True).count(" -- ") == 2 + 4
    assert quote('a"b\\c') == r'"a\"b\\c"'


TWO = (Node("a", 1, 1, 1), Node("b", 1, 2, 2))
SWITCH = (Node("s", 4, 3, 3),)
BOTH = tuple(Cable(End(host, 1), End(2, 1), 1) for host in (0, 1))


@pytest.mark.parametrize(
    ("fabric", "words"),
    [
        (
            Fabric("f", (TWO[0], Node("a", 1)), SWITCH, ()),
            "nodes 0 (a) and 1 (a) have the same name",
        ),
        (Fabric("f", (TWO[0], Node("c", 1, 1)), SWITCH, ()), "the same GUID"),
        (Fabric("f", (TWO[0], Node("c", 1, 9, 1)), SWITCH, ()), "the same LID"),
        (Fabric("f", (Node("a", 2),), SWITCH, ()), "a has 2 ports; a host has 1"),
        (Fabric("f", (Node("", 1),), SWITCH, ()), "no name"),
        (Fabric("f", (Node("a\x1b", 1),), SWITCH, ()), "no name of 1 to 200 printable"),
        (
            Fabric("f", TWO, SWITCH, (Cable(End(2, 1), End(2, 1), 1),)),
            "s port 1 is wired to itself",
        ),
        (Fabric("f", TWO, SWITCH, BOTH), "s port 1 has two cables"),
        (Fabric("f", TWO, SWITCH, (Cable(End(0, 1), End(2, 5), 1),)), "it has ports 1 to 4"),
        (Fabric("f", TWO, SWITCH, (Cable(End(0, 1), End(3, 1), 1),)), "node 3"),
        (Fabric("f", TWO, SWITCH, (Cable(End(0, 1), End(2, 1), 0),)), "not the rate of a link"),
    ],
)
def test_fabrics_that_contradict_themselves_are_refused(fabric, words):
    with pytest.raises(TopologyError, match=re.escape(words)):
        check(fabric)


PAIR = folded_clos("t", leaves=1, spines=1, hosts_per_leaf=1, links=1, radix=2, rate_bps=1)
DOCUMENT = json.loads(to_json(PAIR))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 2}, "schema 2; expected 1"),
        ({"hosts": {}}, "hosts: expected a list"),
        ({"hosts": [{"ports": 1}]}, "hosts[0]: expected an object with name"),
        ({"hosts": [{"name": "a", "ports": 0}]}, "hosts[0].ports: expected 1 or more"),
        ({"hosts": [{"name": "a", "ports": 1, "guid": "x"}]}, "hosts[0].guid"),
        ({"hosts": [{"name": "a", "ports": True}]}, "hosts[0].ports: expected a whole number"),
        ({"cables": [{"from": ["x", 1], "to": ["y", 1], "rate_bps": 1}]}, 'there is no "x"'),
        ({"cables": [{"from": [1], "to": "y", "rate_bps": 1}]}, "cables[0].from: expected an end"),
        ({"name": 3}, "name: expected a name"),
    ],
)
def test_json_that_is_no_fabric_is_refused(change, words):
    with pytest.raises(TopologyError, match=re.escape(words)):
        from_json(json.dumps(DOCUMENT | change))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(sorted(DOCUMENT)), VALUES)
def test_any_json_is_a_fabric_or_an_error(key, value):
    with suppress(TopologyError):
        from_json(json.dumps(DOCUMENT | {key: value}))


@pytest.mark.parametrize("text", ["", "[" * 100_000, "{", "1" * 5000, "null", "[]"])
def test_text_that_is_no_json_of_a_fabric_is_refused(text):
    with pytest.raises(TopologyError, match=r"^JSON"):
        from_json(text)
