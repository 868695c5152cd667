"""Cabling anomalies: all that was done to a regular tree is found, and nothing else."""

import json
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from daqloom.topology.fabric.anomalies import anomalies
from daqloom.topology.fabric.fabric import Cable, End, Fabric, Node
from daqloom.topology.fabric.levels import tree
from daqloom.topology.formats.as_json import from_json, to_json
from daqloom.topology.formats.load import load_fabric
from daqloom.topology.shapes.clos import folded_clos
from support.repository import ROOT

SAMPLES = ROOT / "scenarios" / "fabrics"
EDR = 100 * 10**9


class Cabling:
    """A fabric that can be recabled by names: `leaf00`, 21."""

    def __init__(self, fabric: Fabric) -> None:
        self.document = json.loads(to_json(fabric))

    @property
    def cables(self) -> list[dict]:
        return self.document["cables"]

    def at(self, name: str, port: int) -> dict:
        """The cable with an end at a port, turned so that it is `from`."""
        for cable in self.cables:
            if cable["to"] == [name, port]:
                cable["from"], cable["to"] = cable["to"], cable["from"]
            if cable["from"] == [name, port]:
                return cable
        raise KeyError(name, port)

    def remove(self, name: str, port: int) -> None:
        self.cables.remove(self.at(name, port))

    def remove_host(self, name: str, port: int) -> None:
        host = self.at(name, port)["to"][0]
        self.remove(name, port)
        self.document["hosts"] = [h for h in self.document["hosts"] if h["name"] != host]

    def swap(self, one: tuple[str, int], other: tuple[str, int]) -> None:
        """The far ends of two cables change places."""
        a, b = self.at(*one), self.at(*other)
        a["to"], b["to"] = b["to"], a["to"]

    def renumber(self, name: str, ports: list[int]) -> None:
        """Port p becomes ports[p − 1]."""
        for cable in self.cables:
            for end in cable["from"], cable["to"]:
                if end[0] == name:
                    end[1] = ports[end[1] - 1]

    def fabric(self) -> Fabric:
        return from_json(json.dumps(self.document))


def named(fabric: Fabric) -> list[tuple[str, tuple[tuple[str, int], ...]]]:
    """Kinds, and ends by name and port."""
    return [
        (found.kind, tuple((fabric.nodes[end.node].name, end.port) for end in found.ends))
        for found in anomalies(fabric)
    ]


def lower_ends(fabric: Fabric) -> set[tuple[str, frozenset[tuple[str, int]]]]:
    """Kinds, and the lower end of each cable concerned."""
    return {(kind, frozenset(ends[::2])) for kind, ends in named(fabric)}


def test_of_the_samples_only_the_imperfect_one_is_irregular():
    for name in "lhcb", "fattree72":
        assert named(load_fabric(SAMPLES / name)[0]) == []
    # Damage of the cluster, from its description for the simulated subnet.
    missing = [("leaf00", 3), ("leaf00", 16), ("leaf01", 8), ("leaf01", 9), ("leaf01", 17)]
    missing += [("leaf02", 16), ("leaf03", 7), ("leaf03", 15)]
    assert named(load_fabric(SAMPLES / "cluster64")[0]) == [
        ("missing link", (("leaf00", 29), ("spine01", 2))),
        ("missing link", (("leaf01", 19), ("spine00", 10))),
        ("swapped cables", (("leaf00", 22), ("spine01", 10), ("leaf01", 28), ("spine00", 4))),
        ("swapped cables", (("leaf00", 30), ("spine01", 27), ("leaf02", 36), ("spine01", 3))),
        ("swapped cables", (("leaf03", 20), ("spine00", 32), ("leaf03", 23), ("spine00", 29))),
        *(("missing host", (port,)) for port in missing),
    ]


def test_sentences_name_switch_and_port():
    sentences = [found.sentence for found in anomalies(load_fabric(SAMPLES / "cluster64")[0])]
    assert "leaf00 port 3 has no host" in sentences
    assert "leaf01 port 19 has no cable; the pattern leads to spine00 port 10" in sentences
    pair = "leaf00 port 22 goes to spine01 port 10, leaf01 port 28 goes to spine00 port 4"
    assert f"{pair}: swapped" in sentences


def leaf(index: int) -> str:
    return f"leaf{index:02}"


# Not st.randoms: that would look for permutations that hardly permute.
CHANCE = st.integers(0, 2**32).map(random.Random)


@st.composite
def damage(draw):
    """A tree, and what to do to it: at most one wrong thing per port number, few per switch."""
    leaves = draw(st.integers(4, 8))
    spines = draw(st.integers(2, 5))
    links = draw(st.integers(4 if spines < 4 else 3, 5))
    hosts = draw(st.integers(2, 6))
    up = spines * links
    radix = max(hosts + up, leaves * links) + draw(st.integers(0, 2))
    ports = draw(st.permutations(range(radix - up + 1, radix + 1)))
    wrong = draw(st.integers(0, up // 4))
    which = st.integers(0, leaves - 1).map(leaf)
    swaps, removed = [], []
    while wrong >= 2 and draw(st.booleans()):
        swaps.append(tuple((draw(which), ports.pop()) for _ in range(2)))
        wrong -= 2
    while wrong and draw(st.booleans()):
        removed.append((draw(which), ports.pop()))
        wrong -= 1
    # Less than half of the hosts at one port are missing, and no leaf loses all.
    absent = [
        (leaf(index), port)
        for port in range(1, hosts)
        for index in draw(st.sets(st.integers(0, leaves - 1), max_size=(leaves - 1) // 2))
    ]
    sizes = {"leaves": leaves, "spines": spines, "hosts_per_leaf": hosts, "links": links}
    fabric = folded_clos("t", **sizes, radix=radix, rate_bps=EDR)
    return Cabling(fabric), swaps, removed, absent, draw(CHANCE)


def harm(cabling: Cabling, swaps, removed, absent) -> set[tuple[str, frozenset]]:
    """Does it, and says what is to be found."""
    for one, other in swaps:
        cabling.swap(one, other)
    for port in removed:
        cabling.remove(*port)
    for port in absent:
        cabling.remove_host(*port)
    return {
        *(("swapped cables", frozenset(pair)) for pair in swaps),
        *(("missing link", frozenset([port])) for port in removed),
        *(("missing host", frozenset([port])) for port in absent),
    }


@settings(max_examples=50)
@given(damage())
def test_exactly_the_introduced_anomalies_are_found(case):
    cabling, swaps, removed, absent, _ = case
    expected = harm(cabling, swaps, removed, absent)
    assert lower_ends(cabling.fabric()) == expected


@settings(max_examples=40)
@given(damage())
def test_the_numbering_is_learnt_not_assumed(case):
    # Names in any order, leaf ports in any order common to all, and spine ports a turn of leaves
    # apart (q = l·leaves + i + 1 in place of i·links + l + 1).
    cabling, swaps, removed, absent, chance = case
    switches = cabling.document["switches"]
    leaves = [s["name"] for s in switches if s["name"].startswith("leaf")]
    spines = [s["name"] for s in switches if s["name"].startswith("spine")]
    radix = switches[0]["ports"]
    links = sum(cable["to"][0] == "spine00" for cable in cabling.cables) // len(leaves)
    turned = [
        (q % links) * len(leaves) + q // links + 1 if q < links * len(leaves) else q + 1
        for q in range(radix)
    ]
    order = chance.sample(range(1, radix + 1), radix)
    for name in spines:
        cabling.renumber(name, turned)
    for name in leaves:
        cabling.renumber(name, order)
    chance.shuffle(cabling.document["switches"])
    chance.shuffle(cabling.document["hosts"])

    def moved(port: tuple[str, int]) -> tuple[str, int]:
        return port[0], order[port[1] - 1]

    pairs = [tuple(map(moved, pair)) for pair in swaps]
    expected = harm(cabling, pairs, list(map(moved, removed)), list(map(moved, absent)))
    assert lower_ends(cabling.fabric()) == expected


@settings(max_examples=40)
@given(damage())
def test_where_spine_ports_follow_no_rule_the_spines_still_do(case):
    cabling, swaps, removed, absent, chance = case
    for switch in cabling.document["switches"]:
        if switch["name"].startswith("spine"):
            ports = range(1, switch["ports"] + 1)
            cabling.renumber(switch["name"], chance.sample(ports, len(ports)))
    # Two cables to one spine that change places there look like any others.
    spines = {pair: {cabling.at(*port)["to"][0] for port in pair} for pair in swaps}
    hidden = {("swapped cables", frozenset(pair)) for pair in swaps if len(spines[pair]) != 2}
    expected = harm(cabling, swaps, removed, absent) - hidden
    found = lower_ends(cabling.fabric())
    others = [{each for each in all_ if each[0] != "swapped cables"} for all_ in (found, expected)]
    assert others[0] == others[1]
    # Several swaps between the same two spines can be told apart only by port: compare the cables.
    assert ends_of(found) == ends_of(expected)


def ends_of(found: set[tuple[str, frozenset]]) -> set[tuple[str, int]]:
    return {port for kind, ports in found if kind == "swapped cables" for port in ports}


def three(**changes: int) -> Cabling:
    sizes = {"pods": 4, "leaves": 4, "spines": 4, "cores": 4, "hosts_per_leaf": 4, "links": 1}
    sizes |= {"core_links": 1, "radix": 8} | changes
    return Cabling(folded_clos("t", **sizes, rate_bps=EDR))


def test_in_folded_closs_cables_between_pods_and_planes_are_found():
    cabling = three()
    assert named(cabling.fabric()) == []
    cabling.swap(("leaf00", 6), ("leaf09", 7))  # two pods
    cabling.swap(("spine04", 5), ("spine11", 8))  # two planes
    cabling.remove("spine14", 6)
    assert lower_ends(cabling.fabric()) == {
        ("swapped cables", frozenset({("leaf00", 6), ("leaf09", 7)})),
        ("swapped cables", frozenset({("spine04", 5), ("spine11", 8)})),
        ("missing link", frozenset({("spine14", 6)})),
    }


@settings(max_examples=40)
@given(st.permutations(range(5, 9)), st.lists(st.integers(0, 15), max_size=4, unique=True))
def test_any_swaps_among_the_cores_are_found(ports, switches):
    # A spine and a port are in one swap at most: three of four spines show where a port leads.
    swaps = [
        ((f"spine{one:02}", ports.pop()), (f"spine{other:02}", ports.pop()))
        for one, other in zip(switches[::2], switches[1::2], strict=False)
    ]
    cabling = three()
    expected = harm(cabling, swaps, [], [])
    assert lower_ends(cabling.fabric()) == expected


def small() -> Cabling:
    """4 leaves, 3 spines, 2 links: leaf ports 1 … 4 are hosts', 5 … 8 free, 9 … 14 uplinks."""
    sizes = {"leaves": 4, "spines": 3, "hosts_per_leaf": 4, "links": 2, "radix": 14}
    return Cabling(folded_clos("t", **sizes, rate_bps=EDR))


def test_cables_in_a_circle_or_a_wrong_port_are_one_anomaly():
    cabling = small()
    cabling.swap(("leaf00", 9), ("leaf01", 10))
    cabling.swap(("leaf01", 10), ("leaf02", 12))
    [(kind, ends)] = named(cabling.fabric())
    assert kind == "swapped cables"
    assert set(ends[::2]) == {("leaf00", 9), ("leaf01", 10), ("leaf02", 12)}
    [found] = anomalies(cabling.fabric())
    assert found.sentence.endswith("interchanged in a circle")
    cabling = small()
    cabling.at("leaf00", 9)["to"] = ["spine02", 11]
    [found] = anomalies(cabling.fabric())
    wrong = "leaf00 port 9 goes to spine02 port 11; the pattern leads to spine00 port 1"
    assert found.sentence == wrong
    cabling = small()
    cabling.at("leaf00", 9)["from"] = ["leaf00", 6]
    [found] = anomalies(cabling.fabric())
    assert found.kind == "misplaced cable"
    wrong = "leaf00 port 6 goes to spine00 port 1; the pattern leads there from leaf00 port 9"
    assert found.sentence == wrong


def test_cables_and_rates_that_the_pattern_does_not_know_are_named():
    cabling = small()
    cabling.cables.append({"from": ["leaf00", 7], "to": ["spine01", 13], "rate_bps": EDR})
    cabling.cables.append({"from": ["leaf01", 7], "to": ["leaf02", 7], "rate_bps": EDR})
    cabling.cables.append({"from": ["spine00", 13], "to": ["spine00", 14], "rate_bps": EDR})
    assert named(cabling.fabric()) == [
        ("extra cable", (("leaf00", 7), ("spine01", 13))),
        ("extra cable", (("leaf01", 7), ("leaf02", 7))),
        ("extra cable", (("spine00", 13), ("spine00", 14))),
    ]
    cabling = small()
    cabling.at("leaf02", 11)["rate_bps"] = 2 * EDR
    cabling.at("leaf02", 1)["rate_bps"] = EDR // 2
    assert {(found.kind, found.sentence) for found in anomalies(cabling.fabric())} == {
        ("other rate", "leaf02 port 11 – spine01 port 5 runs at 200 Gb/s; "
         "most such links at 100 Gb/s"),
        ("other rate", "leaf02 port 1 – H02-00 runs at 50 Gb/s; most such links at 100 Gb/s"),
    }  # fmt: skip


def test_hosts_at_unusual_places_are_named():
    cabling = small()
    cabling.document["hosts"] += [{"name": "server", "ports": 1}, {"name": "other", "ports": 1}]
    cabling.at("leaf03", 14)["to"] = ["other", 1]
    cabling.cables.append({"from": ["server", 1], "to": ["spine01", 14], "rate_bps": EDR})
    assert [found.sentence for found in anomalies(cabling.fabric())] == [
        "leaf03 port 14 is connected to host other, where the other switches have an uplink",
        "spine01 port 14 is connected to host server, above the leaves",
    ]


def test_without_a_pattern_only_numbers_of_links_are_compared():
    cabling = small()
    chance = random.Random(1)
    for switch in cabling.document["switches"]:
        cabling.renumber(switch["name"], chance.sample(range(1, 15), 14))
    leaves = [("no pattern", ((leaf(index), 0),)) for index in range(4)]
    assert [a for a in named(cabling.fabric()) if a[0] != "missing host"] == leaves
    victim = next(c for c in cabling.cables if c["to"][0] == "spine01" and c["from"][0] == "leaf02")
    cabling.cables.remove(victim)
    [found] = [a for a in anomalies(cabling.fabric()) if a.kind == "uneven links"]
    assert found.sentence == "leaf02 and spine01 share 1 link; most such pairs have 2"
    cabling = small()
    cabling.renumber("leaf02", [*range(1, 9), 14, 13, 12, 11, 10, 9])
    [found] = anomalies(cabling.fabric())
    sentence = "the uplinks of leaf02 follow no pattern that other switches share"
    assert (found.kind, found.sentence) == ("no pattern", sentence)


def test_a_tangle_is_reported_as_without_pattern():
    sizes = {"leaves": 12, "spines": 12, "hosts_per_leaf": 1, "links": 1}
    cabling = Cabling(folded_clos("t", **sizes, rate_bps=EDR))
    ends = [cable["to"] for cable in cabling.cables[12:]]
    random.Random(1).shuffle(ends)
    for cable, end in zip(cabling.cables[12:], ends, strict=True):
        cable["to"] = end
    kinds = [kind for kind, _ in named(cabling.fabric())]
    assert set(kinds) <= {"no pattern", "uneven links"}
    assert kinds.count("no pattern") == 12


def test_a_switch_alone_a_rack_and_a_fabric_without_hosts_are_regular_and_a_ring_is_no_tree():
    hosts = tuple(Node(f"H{place}", 1) for place in range(3))
    switches = tuple(Node(f"s{place}", 3) for place in range(3))
    cables = [Cable(End(place, 1), End(3 + place, 3), EDR) for place in range(3)]
    cables += [Cable(End(3 + p, 1), End(3 + (p + 1) % 3, 2), EDR) for p in range(3)]
    fabric = Fabric("ring", hosts, switches, tuple(cables))
    assert named(fabric) == [("no pattern", ((f"s{place}", 0),)) for place in range(3)]
    # Two switches, with hosts at both and two cables between them, are a tree.
    hosts = tuple(Node(f"H{place}", 1) for place in range(4))
    cables = [Cable(End(place, 1), End(4, 1 + place), EDR) for place in range(3)]
    cables += [Cable(End(3, 1), End(5, 1), EDR)]
    cables += [Cable(End(4, 4 + link), End(5, 3 + link), EDR) for link in range(2)]
    fabric = Fabric("rack", hosts, (Node("tor", 5), Node("core", 4)), tuple(cables))
    assert "no pattern" not in {kind for kind, _ in named(fabric)}
    assert anomalies(Fabric("none", (), (), ())) == ()
    one = folded_clos("t", leaves=1, spines=1, hosts_per_leaf=2, links=1, radix=4, rate_bps=EDR)
    assert anomalies(one) == ()
    assert anomalies(Fabric("bare", (), one.switches, ())) == ()


def test_empty_leaves_are_regular_but_lack_hosts():
    sizes = {"leaves": 6, "spines": 3, "hosts_per_leaf": 4, "links": 2, "radix": 14}
    fabric = folded_clos("t", **sizes, rate_bps=EDR, hosts=17)
    assert tree(fabric).counts == {1: 6, 2: 3}
    # leaf04 has one host of four, leaf05 none.
    missing = [("leaf04", port) for port in (2, 3, 4)] + [("leaf05", port) for port in (1, 2, 3, 4)]
    assert named(fabric) == [("missing host", (port,)) for port in missing]
