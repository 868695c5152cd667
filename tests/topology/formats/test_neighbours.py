"""Neighbour tables by LLDP: a folder of them as a fabric, and what is wrong with broken ones."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.formats import neighbours
from daqloom.topology.formats.as_json import from_json, to_json
from daqloom.topology.formats.load import load_cabling
from support.repository import DATA

FOLDER = DATA / "leaf-spine-lldp"


def host(number: int) -> str:
    return f"{'rb'[number % 2]}u{number // 2}"


def name(number: int) -> str:
    """A host of the folder: it has a table under its short name, or is known by its full one."""
    return host(number) if number % 2 == 0 else f"{host(number)}.daq.example"


def expected() -> set[frozenset[tuple[str, int]]]:
    """The cables as they were plugged: 2 spines, 4 leaves, 2 hosts a leaf, and one host's second
    adapter. leaf0 and leaf1 have Ethernet0, 4 for hosts and 48, 52 upwards; leaf2 and leaf3 have
    swp1, swp2 (leaf2 also swp3) and swp31, swp32; spines have Ethernet0, 8, 16, 24."""
    cables = set()
    for leaf in range(4):
        below = 3 if leaf == 2 else 2
        for spine in range(2):
            ends = (f"leaf{leaf}", below + 1 + spine), (f"spine{spine}", leaf + 1)
            cables.add(frozenset(ends))
        for port in (1, 2):
            number = 2 * leaf + port - 1
            told = name(number) + (" ens1f0np0" if number == 7 else "")
            cables.add(frozenset(((f"leaf{leaf}", port), (told, 1))))
    cables.add(frozenset((("leaf2", 3), (f"{name(7)} ens1f1np1", 1))))
    return cables


def plugged(fabric: Fabric) -> set[frozenset[tuple[str, int]]]:
    ends = [(cable.a, cable.b) for cable in fabric.cables]
    return {frozenset((fabric.nodes[end.node].name, end.port) for end in both) for both in ends}


@pytest.fixture
def tables(tmp_path):
    """A copy of the folder, which may be changed."""
    return Path(shutil.copytree(FOLDER, tmp_path / "leaf-spine-lldp"))


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_leaf_spine_comes_in_whole():
    fabric, warnings = load_cabling(FOLDER)
    assert fabric.name == "leaf-spine-lldp"
    assert plugged(fabric) == expected()
    assert fabric.switches[2].port_names == ("swp1", "swp2", "swp3", "swp31", "swp32")
    assert from_json(to_json(fabric)) == fabric
    switches = ["leaf0", "leaf1", "leaf2", "leaf3", "spine0", "spine1"]
    assert [node.name for node in fabric.switches] == switches
    # In the order of leaves and their ports.
    second = f"{name(7)} ens1f1np1"
    hosts = [name(number) for number in range(6)] + [second, name(6), f"{name(7)} ens1f0np0"]
    assert [node.name for node in fabric.hosts] == hosts
    assert {cable.rate_bps for cable in fabric.cables} == {neighbours.ASSUMED_BPS}
    management, forwarding, rates = warnings
    assert "leaf0 port eth0 is for management; left out (and 3 more)" in management
    assert forwarding.startswith('"bu1.daq.example" reports itself as a bridge or a router, and')
    assert rates == "LLDP contains no rates: all cables are taken to run at 100 Gb/s"


def test_a_rate_that_is_given_counts_and_one_table_is_a_star():
    fabric, warnings = load_cabling(FOLDER, rate_bps=25 * 10**9)
    assert {cable.rate_bps for cable in fabric.cables} == {25 * 10**9}
    assert not any("rates" in warning for warning in warnings)
    fabric, _ = load_cabling(FOLDER / "leaf0.lldp.txt")
    assert [node.name for node in fabric.switches] == ["leaf0", "spine0", "spine1"]
    assert len(fabric.hosts) == 2


def _full(node: str) -> str:
    return f"{node}.daq.example" if re.fullmatch(r"ru[0-9]", node) else node


@pytest.mark.parametrize("missing", ["spine1.lldp.txt", "leaf2.lldp.json", "leaf0.lldp.txt"])
def test_a_switch_without_table_is_known_from_its_neighbours(tables, missing):
    (tables / missing).unlink()
    fabric, warnings = load_cabling(tables)
    switch = missing.partition(".")[0]
    assert sum(f'switch "{switch}" has no table of its own' in each for each in warnings) == 1
    # Hosts with a table tell of their leaf; the others are lost with its table.
    lost = {"leaf2": {name(5), f"{name(7)} ens1f1np1"}, "leaf0": {name(1)}}.get(switch, set())
    assert {node.name for node in fabric.hosts} == (
        {n for cable in expected() for n, _ in cable if "u" in n} - lost
        if switch != "leaf2"
        # With one cable left, the host has no adapters to tell apart.
        else {n for cable in expected() for n, _ in cable if "u" in n}
        - lost
        - {f"{name(7)} ens1f0np0"}
        | {name(7)}
    )


def test_ports_are_known_by_number_and_name_alike(tables):
    # A host that sends an address and nothing else is still found by the ports that lead to it.
    replace(tables / "leaf3.lldp.json", '"descr": "ens1f0np0"', '"descr": ""')
    assert plugged(load_cabling(tables)[0]) >= {frozenset((("leaf3", 1), (name(6), 1)))}


def test_tables_of_switches_suffice(tables):
    for path in tables.glob("ru*"):
        path.unlink()
    fabric, _ = load_cabling(tables)
    full = {frozenset((_full(n), port) for n, port in cable) for cable in expected()}
    assert plugged(fabric) == full


def test_a_host_announced_by_its_card_is_identified_by_its_own_table(tables):
    # The switch hears addresses alone, as from a card's firmware; the host's table leads to it.
    path = tables / "leaf0.lldp.txt"
    row = next(line for line in path.read_text().splitlines() if line.startswith("Ethernet0"))
    mac = "0c:42:a1:00:30:00"
    firmware = f"Ethernet0    {'':15}  {mac:17}  {'':12}  {mac}"
    replace(path, row, firmware)
    assert plugged(load_cabling(tables)[0]) == expected()
    (tables / "ru0.lldp.json").unlink()
    fabric, warnings = load_cabling(tables)
    assert len(fabric.cables) == len(expected()) - 1
    assert any("leaf0 port Ethernet0 leads to a neighbour without name" in w for w in warnings)


def neighbour(
    port: str, device: str, far: str, *, chassis="", via="LLDP", on=""
) -> dict[str, object]:
    """An interface as lldpcli prints it."""
    content: dict[str, object] = {"id": {"type": "mac", "value": chassis or f"of {device}"}}
    if on:
        content["capability"] = {"type": on, "enabled": True}
    there = {"id": {"type": "ifname", "value": far}, "descr": far}
    return {port: {"via": via, "chassis": {device: content}, "port": there}}


@pytest.fixture
def lldpcli(tmp_path):
    def write(**devices: list[dict[str, object]]) -> Path:
        for device, interfaces in devices.items():
            text = json.dumps({"lldp": {"interface": interfaces}})
            (tmp_path / f"{device}.lldp.json").write_text(text)
        return tmp_path

    return write


def test_a_device_without_table_that_has_several_neighbours_is_a_switch(lldpcli, tmp_path):
    folder = lldpcli(s=[neighbour("p1", "a", "x"), neighbour("p2", "b", "x")])
    fabric, _ = load_cabling(folder)
    assert [node.name for node in fabric.nodes] == ["a", "b", "s"]
    other = neighbour("p1", "other", "y", via="CDPv2")
    folder = lldpcli(s=[neighbour("p1", "a", "x"), other, neighbour("p2", "b", "x")])
    assert len(load_cabling(folder)[0].hosts) == 2
    folder = lldpcli(s=[neighbour("p1", "a", "x"), neighbour("p2", "b", "x")])
    folder = lldpcli(s=[neighbour("p1", "a", "x"), neighbour("p2", "b", "x")])
    (tmp_path / "lonely.lldp.json").write_text('{"lldp": {}}')
    fabric, warnings = load_cabling(folder)
    assert len(fabric.nodes) == 3
    assert any('"lonely" has no neighbour; left out' in each for each in warnings)


def test_one_chassis_is_one_device_however_its_address_is_written(lldpcli):
    spellings = "BB:00:00:00:00:01", "bb00.0000.0001", "bb00-0000-0001", "bb-00-00-00-00-01"
    interfaces = [
        neighbour(f"swp{n}", "", f"x{n}", chassis=each) for n, each in enumerate(spellings)
    ]
    named = [neighbour("swp1", "up", "x9", chassis=spellings[0])]
    fabric, _ = load_cabling(lldpcli(s=interfaces, t=named))
    assert {node.name for node in fabric.nodes} == {"s", "t", "up"}


def test_an_interface_whose_key_comes_again_has_several_neighbours(lldpcli, tmp_path):
    folder = lldpcli()
    one, two = (json.dumps(neighbour("p1", n, "x"))[1:-1] for n in "ab")
    last = json.dumps(neighbour("p2", "c", "x"))[1:-1]
    more = json.dumps(neighbour("p3", "d", "x"))[1:-1]
    text = f'{{"lldp": {{"interface": {{{one}, {two}, {last}, {more}}}}}}}'
    (tmp_path / "s.lldp.json").write_text(text)
    fabric, warnings = load_cabling(folder)
    assert [node.name for node in fabric.hosts] == ["c", "d"]
    assert 's port p1 has 2 neighbours, "a" and "b": a hub, or a switch that floods' in warnings[0]


def test_parallel_cables_with_unknown_ports_are_assigned_in_order(lldpcli):
    mac = "00:00:00:00:00:01"
    folder = lldpcli(
        s=[
            neighbour("p2", "t", mac),
            neighbour("p10", "t", mac),
            neighbour("p3", "g", "x", on="Station"),
        ],
        t=[
            neighbour("q1", "s", mac),
            neighbour("q2", "s", mac),
            neighbour("q3", "h", "x", on="Station"),
        ],
    )
    fabric, _ = load_cabling(folder)
    assert {frozenset((("s", 1), ("t", 1))), frozenset((("s", 3), ("t", 2)))} <= plugged(fabric)


def refusal(read: Callable[[], object]) -> str | None:
    """The sentence with which tables are refused; no other exception may come."""
    try:
        read()
    except TopologyError as error:
        sentence = str(error)
    else:
        return None
    assert sentence.isprintable()
    assert len(sentence) < 1000
    return sentence


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        # leaf0 says spine0 Ethernet8, which says that it leads to leaf1.
        (
            "leaf0.lldp.txt",
            "spine0           etp1               BR            Ethernet0",
            "spine0           etp2               BR            Ethernet8",
            "leaf0.lldp.txt, line 6: leaf0 port Ethernet48 leads to spine0 port Ethernet8, which ",
        ),
        (
            "leaf0.lldp.txt",
            "displayed:  5",
            "displayed:  6",
            "line 10: 6 displayed, and the table has 5 entries; it may be truncated",
        ),
        ("leaf0.lldp.txt", "Total", "Totl", "ends without `Total entries displayed`"),
        ("leaf0.lldp.txt", "LocalPort", "Local", "has no table of neighbours: its first line is"),
        ("leaf0.lldp.txt", "-----------  -", "-----------  -  -", "line 3: 9 columns; expected 5"),
        (
            "leaf0.lldp.txt",
            "Ethernet4 ",
            "Ethernet4",
            'line 5: "Ethernet4   bu0.daq.example  0c:42',
        ),
        ("ru0.lldp.json", '"lldp"', '"lddp"', 'has no "lldp"; expected output of `lldpcli'),
        ("ru0.lldp.json", "{", "[", "ru0.lldp.json is not valid JSON"),
        ("ru0.lldp.json", '"leaf0"', '"' + "n" * 300 + '"', "a text of 300 characters; LLDP has"),
        ("leaf1.lldp.txt", "bu1.", "bu0.", "bu0.daq.example port ens1f0np0, as does leaf0 port"),
    ],
)
def test_contradictions_are_named(tables, file, old, new, words):
    replace(tables / file, old, new)
    assert words in refusal(lambda: load_cabling(tables))


def test_a_device_has_one_table_and_is_itself_whatever_its_chassis(tables):
    """The table of spine0 leads back to leaf3, which lists another chassis ID of it."""
    replace(tables / "leaf3.lldp.json", "0c:42:a1:00:10:00", "0c:42:a1:ff:ff:ff")
    fabric, warnings = load_cabling(tables)
    assert plugged(fabric) == expected()
    assert '1 name is of several devices, first "spine0"; their chassis ID is added' in warnings[0]
    shutil.copy(tables / "ru0.lldp.json", tables / "leaf0.lldp.json")
    assert 'are both of device "leaf0"; keep one' in refusal(lambda: load_cabling(tables))


def test_an_end_without_entry_is_noted(tables):
    path = tables / "spine1.lldp.txt"
    text = re.sub(r"^Ethernet8 .*\n", "", path.read_text(), flags=re.MULTILINE)
    path.write_text(text.replace("displayed:  5", "displayed:  4"))
    fabric, warnings = load_cabling(tables)
    assert len(fabric.cables) == len(expected())
    note = next(each for each in warnings if "does not list" in each)
    assert "leaf1 port Ethernet52 leads to spine1 port" in note


def test_a_cable_between_hosts_and_one_of_a_device_to_itself_are_left_out(lldpcli):
    folder = lldpcli(
        s=[neighbour("p1", "a", "x"), neighbour("p2", "b", "x"), neighbour("p3", "s", "p4")],
        a=[neighbour("x", "s", "p1", on="Bridge"), neighbour("y", "b", "y", on="Station")],
        b=[neighbour("y", "a", "y", on="Station")],
    )
    fabric, warnings = load_cabling(folder)
    assert len(fabric.cables) == 2
    assert any("s port p3 leads to its own device; left out" in each for each in warnings)
    assert any("a port y is cabled to b port y, both hosts" in each for each in warnings)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("s.lldp.json", b"[" * 100_000),
        ("s.lldp.json", b'{"lldp": ' + b"1" * 5000 + b"}"),
        ("s.lldp.json", b'{"lldp": {"interface": {"p1": 1}}}'),
        ("s.lldp.json", b'{"lldp": {"interface": {"p1": {"chassis": {"a": []}, "port": 3}}}}'),
        ("s.lldp.json", b'{"lldp": {"interface": {"": {"chassis": {"a": {}}}}}}'),
        # A key that comes again and again: work that grows with its square would take minutes.
        ("s.lldp.json", b'{"lldp": {' + b'"a":1,' * 600_000 + b'"a":1}}'),
        ("s.lldp.json", b""),
        ("s.lldp.json", b"\x7fELF\0"),
        ("s.lldp.json", b" " * (5 << 20)),
        ("s.lldp.txt", b""),
        ("s.lldp.txt", (b" " * 63 + b"\n") * (5 << 14)),
        ("s.lldp.txt", b"x" * 10**6),
        ("s.lldp.txt", b"\x7fELF\0"),
        ("\x1b[2J.lldp.txt", b""),
        (".lldp.json", b"{}"),
    ],
)
def test_other_contents_than_tables_are_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert refusal(lambda: load_cabling(tmp_path))


def test_folders_without_cabling_or_with_too_many_cables_are_refused(
    tmp_path, lldpcli, monkeypatch
):
    (tmp_path / "leaf0.json").write_text("{}")
    assert "nor *.lldp.json or *.lldp.txt" in refusal(lambda: load_cabling(tmp_path))
    folder = lldpcli(a=[neighbour("x", "b", "y", on="Station")])
    assert "none of the devices is a switch" in refusal(lambda: load_cabling(folder))
    monkeypatch.setattr(neighbours, "MOST_CABLES", 2)
    folder = lldpcli(s=[neighbour(f"p{n}", f"h{n}", "x") for n in range(5)])
    assert "more than 2 cables" in refusal(lambda: load_cabling(folder))


CUTS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.1), st.text(max_size=8)), max_size=3)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return Path(shutil.copytree(FOLDER, tmp_path_factory.mktemp("lldp") / "tables"))


@settings(max_examples=200)
@given(file=st.sampled_from(sorted(path.name for path in FOLDER.iterdir())), cuts=CUTS)
def test_any_change_gives_a_fabric_or_one_sentence(scratch, file, cuts):
    text = (FOLDER / file).read_text()
    for at, length, new in cuts:
        begin = int(at * len(text))
        text = text[:begin] + new + text[begin + int(length * len(text)) :]
    (scratch / file).write_text(text, encoding="utf-8", errors="replace")
    refusal(lambda: load_cabling(scratch))
    shutil.copy(FOLDER / file, scratch / file)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["lldp", "interface", "name", "chassis", "port", "id", "value", "descr", "via"]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200)
@given(VALUES)
def test_any_json_gives_a_fabric_or_one_sentence(scratch, value):
    path = scratch.parent / "any.lldp.json"
    path.write_text(json.dumps({"lldp": {"interface": value}}))
    refusal(lambda: load_cabling(path))
