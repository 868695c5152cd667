"""Dumps of real and of simulated subnets: what they tell, and what is wrong with broken ones."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daqloom.base.words import natural_key
from daqloom.scenario.link_rates import data_rate
from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import End, Fabric
from daqloom.topology.formats.as_json import to_json
from daqloom.topology.formats.ibnetdiscover import read_ibnetdiscover
from daqloom.topology.formats.lft_dump import read_lft_dump
from daqloom.topology.formats.load import load_fabric
from daqloom.topology.formats.subnet_list import read_subnet_list
from support.repository import DATA, ROOT

SAMPLES = ROOT / "scenarios" / "fabrics"
CLUSTER = SAMPLES / "cluster64"
# Output of OpenSM 3.3.23 for cluster64's simulated subnet.
SUBNET_LIST = DATA / "cluster64-opensm-subnet.lst"

# Two leaves with an adapter of two ports and one of one port, a spine; LIDs 1 … 6.
SMALL = """\
#
# Topology file: generated on Sat Nov 21 09:52:08 2026
#
vendid=0x2c9
Switch	4 "S-0000000000000a01"		# "leaf0" enhanced port 0 lid 1 lmc 0
[1]	"H-0000000000000c01"[1](c11) 		# "node HCA-1" lid 4 4xHDR
[3]	"S-0000000000000b01"[1]		# "spine0" lid 3 4xHDR

Switch	4 "S-0000000000000a02"		# "leaf1" base port 0 lid 2 lmc 0
[1]	"H-0000000000000c01"[2](c12) 		# "node HCA-1" lid 5 4xHDR
[2]	"H-0000000000000c02"[1](c21) 		# "other HCA-1" lid 6 4xEDR
[3]	"S-0000000000000b01"[2]		# "spine0" lid 3 4xHDR

Switch	4 "S-0000000000000b01"		# "spine0" base port 0 lid 3 lmc 0
[1]	"S-0000000000000a01"[3]		# "leaf0" lid 1 4xHDR
[2]	"S-0000000000000a02"[3]		# "leaf1" lid 2 4xHDR

Ca	2 "H-0000000000000c01"		# "node HCA-1"
[1](c11) 	"S-0000000000000a01"[1]		# lid 4 lmc 0 "leaf0" lid 1 4xHDR
[2](c12) 	"S-0000000000000a02"[1]		# lid 5 lmc 0 "leaf1" lid 2 4xHDR

Ca	1 "H-0000000000000c02"		# "other HCA-1"
[1](c21) 	"S-0000000000000a02"[2]		# lid 6 lmc 0 "leaf1" lid 2 4xEDR
"""


@pytest.fixture
def dump(tmp_path):
    def write(text: str, name: str = "ibnetdiscover.txt") -> Path:
        (tmp_path / name).write_bytes(text.encode())
        return tmp_path / name

    return write


@pytest.mark.parametrize(
    ("name", "hosts", "switches", "cables"),
    [("lhcb", 360, 28, 720), ("fattree72", 72, 6, 144), ("cluster64", 64, 6, 64 + 72 - 2)],
)
def test_samples_come_in_whole(name, hosts, switches, cables):
    fabric, ports, warnings = load_fabric(SAMPLES / name)
    counts = len(fabric.hosts), len(fabric.switches), len(fabric.cables)
    assert counts == (hosts, switches, cables)
    assert fabric.name == name
    assert ports.shape == (switches, hosts)
    assert ports.dtype == np.int16
    assert warnings == []
    names = [node.name for node in fabric.nodes]
    assert names == sorted(names, key=lambda name: (name[0] != "H", name))


@pytest.mark.parametrize("name", ["lhcb", "fattree72", "cluster64"])
def test_routes_of_every_pair_are_those_of_the_dump(name):
    # Read with nothing but split: (name of the switch, name of the host) → port.
    told = {}
    switch = None
    for line in (SAMPLES / name / "opensm-lfts.dump").read_text().splitlines():
        words = line.split()
        if words[0] == "Unicast":
            switch = words[-1].strip("('):")
        elif "Adapter" in words:
            told[switch, words[-1].strip("'")] = int(words[1])
    fabric, ports, _ = load_fabric(SAMPLES / name)
    found = {
        (switch.name, host.name): ports[s, h]
        for s, switch in enumerate(fabric.switches)
        for h, host in enumerate(fabric.hosts)
    }
    assert found == told


def test_cabling_and_own_json_agree(dump):
    one, _ = read_ibnetdiscover(CLUSTER / "ibnetdiscover.txt")
    other, warnings = read_subnet_list(SUBNET_LIST)
    assert (one.hosts, one.switches, one.cables) == (other.hosts, other.switches, other.cables)
    assert warnings == []
    fabric, _, _ = load_fabric(CLUSTER)
    assert load_fabric(dump(to_json(fabric), "fabric.json")) == (fabric, None, [])


def test_a_folder_may_hold_the_list_instead(tmp_path):
    (tmp_path / "opensm-subnet.lst").write_bytes(SUBNET_LIST.read_bytes())
    (tmp_path / "opensm-lfts.dump").write_bytes((CLUSTER / "opensm-lfts.dump").read_bytes())
    fabric, ports, _ = load_fabric(tmp_path)
    expected = load_fabric(CLUSTER)
    assert fabric.cables == expected[0].cables
    assert np.array_equal(ports, expected[1])


def test_each_cabled_port_of_an_adapter_is_a_host(dump):
    fabric, warnings = read_ibnetdiscover(dump(SMALL))
    assert [host.name for host in fabric.hosts] == ["node HCA-1/P1", "node HCA-1/P2", "other HCA-1"]
    assert [(host.guid, host.lid) for host in fabric.hosts] == [(0xC11, 4), (0xC12, 5), (0xC21, 6)]
    assert fabric.peers[End(1, 1)] == End(3 + 1, 1)
    assert [cable.rate_bps for cable in fabric.cables[:3]] == [200e9, 200e9, 100e9]
    assert warnings == []


def test_line_ends_of_other_systems_do_not_matter(dump):
    assert read_ibnetdiscover(dump(SMALL.replace("\n", "\r\n"))) == read_ibnetdiscover(dump(SMALL))
    listed = SUBNET_LIST.read_text().replace("\n", "\r\n")
    fabric, warnings = read_subnet_list(dump(listed, SUBNET_LIST.name))
    expected, _ = read_subnet_list(SUBNET_LIST)
    assert (fabric.nodes, fabric.cables, warnings) == (expected.nodes, expected.cables, [])
    tables = TABLES.decode().replace("\n", "\r\n")
    ports, _ = read_lft_dump(dump(tables, "t.dump"), fabric)
    assert np.array_equal(ports, load_fabric(CLUSTER)[1])


OTHER_EDR = '21) 		# "other HCA-1" lid 6 4xEDR'
OTHER_DDR = OTHER_EDR.replace("EDR", "DDR")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        # An unknown vendor's lines, marks of a chassis.
        ("vendid=0x2c9\n", "Chassis 1 (guid 0x7)\nSubnetAgent v9\n", "1 line malformed"),
        ("4xEDR", "4x???", "the speed of 1 cable has no name there; assumed to be 4xHDR"),
        ("4xEDR", "??EDR", "assumed to be 4xHDR"),
        (OTHER_EDR, OTHER_DDR, "the ends of 1 cable have different speeds; the slower one is used"),
        ('"other HCA-1"', '"Mellanox Technologies Aggregation Node"', "internal adapter"),
        ('"leaf1"', '"leaf0"', "1 name is not unique"),
    ],
)
def test_unusual_entries_are_kept_with_a_warning(dump, old, new, words):
    _, [warning] = read_ibnetdiscover(dump(SMALL.replace(old, new)))
    assert words in warning
    assert "ibnetdiscover.txt" in warning


def test_routers_are_left_out_and_links_count_by_their_slower_end(dump):
    text = SMALL.replace('Ca	1 "H-0000000000000c02"', 'Rt	1 "R-0000000000000c02"')
    text = text.replace('"H-0000000000000c02"[1]', '"R-0000000000000c02"[1]')
    fabric, [warning] = read_ibnetdiscover(dump(text))
    assert len(fabric.hosts) == 2
    assert "1 × router left out" in warning
    fabric, _ = read_ibnetdiscover(dump(SMALL.replace(OTHER_EDR, OTHER_DDR)))
    assert fabric.cables[2].rate_bps == 16e9


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        # GUIDs and LIDs given twice.
        ('Switch	4 "S-0000000000000a02"', 'Switch	4 "S-0000000000000a01"',
         'line 9: switch "leaf1" has GUID 0x0000000000000a01, which line 5 gives to switch'),
        ('"leaf1" base port 0 lid 2', '"leaf1" base port 0 lid 1',
         'line 9: switch "leaf1" (0xa02) has LID 1, which line 5 gives to switch "leaf0" (0xa01)'),
        ("lid 6", "lid 5", "has LID 5, which line"),
        # A port wired to itself.
        ('[1]	"S-0000000000000a01"[3]', '[1]	"S-0000000000000b01"[1]',
         'line 15: switch "spine0" port 1 is wired to itself'),
        # Both ends tell a different story.
        ('[1]	"S-0000000000000a01"[3]', '[1]	"S-0000000000000a02"[3]',
         'line 7: switch "leaf0" port 3 leads to switch "spine0" port 1, which by line 15 '
         'leads to switch "leaf1" port 3'),
        ('[1]	"S-0000000000000a01"[3]		# "leaf0" lid 1 4xHDR\n', "",
         'line 7: switch "leaf0" port 3 leads to switch "spine0" port 1, which has no cable'),
        ("[2]	\"S-0000000000000a02\"[3]", "[1]	\"S-0000000000000a02\"[3]",
         'line 16: switch "spine0" port 1 is in line 15 already'),
        ("[2]	\"S-0000000000000a02\"[3]", "[5]	\"S-0000000000000a02\"[3]",
         'line 16: switch "spine0" port 5: it has ports 1 to 4'),
        # Words that nobody knows.
        ("lid 3 4xHDR", "lid 3 4xWDR", 'switch "leaf0" port 3: 4xWDR is no known speed'),
        ("lid 3 4xHDR", "lid 3", 'line 7: switch "leaf0": cannot read'),
        ("Switch	4 ", "Switch	four ", "line 5: cannot read"),
        ("Switch	4 ", "Switch	2000 ", "2000 ports; expected 1 to 1023"),
        ("lid 6", "lid 65000", "LID 65000 is not a unicast address"),
        ("[1](c11) ", "[1]", "expected its GUID"),
        ("enhanced port 0 lid 1 lmc 0", "", "base port 0 lid"),
        ('Switch	4 "S-0000000000000a01"', "[1]", "line 5: a port before any Switch"),
        ('(c11) \t"S', '(c19) \t"S', "port GUID"),
        ("vendid=0x2c9", "x" * 5000, "line 4 is longer than"),
    ],
)  # fmt: skip
def test_a_wrong_dump_is_refused_in_one_sentence(dump, old, new, words):
    text = SMALL.replace(old, new)
    assert text != SMALL
    with pytest.raises(TopologyError) as caught:
        read_ibnetdiscover(dump(text))
    assert words in str(caught.value)
    assert "ibnetdiscover.txt, line" in str(caught.value)


@cache
def cluster() -> Fabric:
    return load_fabric(CLUSTER)[0]


@pytest.mark.parametrize(
    ("path", "read", "allowed"),
    [
        (CLUSTER / "ibnetdiscover.txt", read_ibnetdiscover, set()),
        # Its first two lines tell one cable from both ends: a subnet of one host and one switch.
        (SUBNET_LIST, read_subnet_list, {2}),
        (CLUSTER / "opensm-lfts.dump", lambda path: read_lft_dump(path, cluster()), set()),
    ],
)
def test_every_cut_of_a_dump_is_noticed(dump, path, read, allowed):
    lines = path.read_text().splitlines(keepends=True)
    for cut in {*range(len(lines))} - allowed:
        with pytest.raises(TopologyError, match=re.escape(path.name)):
            read(dump("".join(lines[:cut]), path.name))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("NodeGUID:0000000000200001", "NodeGUID:0000000000200000", "which line"),
        ("{leaf01}", "{leaf0x", "cannot read"),
        ("SPD=2.5", "SPD=2.6", "no known speed"),
        ("PN:13", "PN:14", "line"),
        ("Ports:24", "Ports:10", "it has ports 1 to 16"),
        ("SW-", "**", "cannot read"),
        ("LID:0003", "LID:0002", "LID 2, which line"),
    ],
)
def test_a_wrong_subnet_list_is_refused(dump, old, new, words):
    text = SUBNET_LIST.read_text().replace("{ SW ", "{ SW-SM ", 1)
    assert old in text
    with pytest.raises(TopologyError) as caught:
        read_subnet_list(dump(text.replace(old, new), "opensm-subnet.lst"))
    assert words in str(caught.value)
    assert "opensm-subnet.lst, line" in str(caught.value)


def test_links_that_are_down_are_left_out_and_unknown_speeds_are_hdr(dump):
    # The first two lines tell H00-00's cable from both ends.
    text = SUBNET_LIST.read_text().replace("LOG=ACT", "LOG=INI", 1)
    fabric, [warning] = read_subnet_list(dump(text, "x.lst"))
    assert "1 cable whose link is not active" in warning
    assert len(fabric.hosts) == 63
    assert "H00-00" not in [host.name for host in fabric.hosts]
    text = SUBNET_LIST.read_text().replace("SPD=2.5", "SPD=??")
    fabric, [warning] = read_subnet_list(dump(text, "x.lst"))
    assert {cable.rate_bps for cable in fabric.cables} == {200 * 10**9}
    assert "134 cables" in warning


def ibroute(text: str) -> str:
    """OpenSM's tables as dump_lfts.sh writes them."""
    text = re.sub(
        r"Unicast lids \[0-(\d+)\] of switch Lid (\d+) guid (\S+) \('(.*)'\):",
        r"Unicast lids [0x0-0x\1] of switch DR path slid 0; dlid 0; 0,1 guid \3 (\4):\n"
        "  Lid  Out   Destination\n       Port     Info ",
        text,
    )
    text = re.sub(r"^(0x\S+ \d+) # (.*)$", r"\1 : (\2)", text, flags=re.MULTILINE)
    return text.replace("lids dumped", "valid lids dumped ")


# LMC 1: LID 55 and 56 both belong to port GUID 0x100061; the base LID is the host's.
LINE = "0x0037 019 # Channel Adapter portguid 0x0000000000100061: 'H03-00'\n"


def moved(text: str) -> str:
    """LIDs assigned anew between the two dumps: all move up by 1000, and port GUIDs count."""
    return re.sub(r"(?m)^0x(....) ", lambda lid: f"0x{int(lid[1], 16) + 1000:04x} ", text)


@pytest.mark.parametrize(
    "edit",
    [
        ibroute,
        lambda text: re.sub(r"# .*", "# unknown node and type", text),
        moved,
        lambda text: text.replace(LINE, LINE + LINE.replace("0x0037 019", "0x0fff 020"), 1),
    ],
    ids=["dump_lfts.sh", "by LID", "by port GUID", "several LIDs"],
)
def test_tables_in_other_forms_are_the_same(dump, edit):
    fabric, ports, _ = load_fabric(CLUSTER)
    text = TABLES.decode()
    assert edit(text) != text
    again, warnings = read_lft_dump(dump(edit(text), "dump_lfts.txt"), fabric)
    assert np.array_equal(again, ports)
    assert warnings == []


def test_hosts_without_route_are_kept_with_a_warning(dump):
    fabric, ports, _ = load_fabric(CLUSTER)
    text = TABLES.decode().replace(LINE, "", 1)
    found, [warning] = read_lft_dump(dump(text, "t.dump"), fabric)
    host = [node.name for node in fabric.hosts].index("H03-00")
    expected = ports.copy()
    expected[0, host] = 0
    assert np.array_equal(found, expected)
    assert 'line 1: switch "leaf00" has no route to H03-00 (LID 55); 1 route is missing' in warning


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("0x0001 001", "0x0001 037",
         'line 2: switch "leaf00" sends LID 1 by port 37; it has ports 1 to 36'),
        ("0x0002 000", "0x0001 000", 'line 3: switch "leaf00" has LID 1 already in line 2'),
        ("0x0001 001", "0x0001 one", 'line 2: switch "leaf00": cannot read'),
        ("70 lids dumped\n", "", 'the table of switch "leaf00" before it has no end'),
        ("guid 0x0000000000200001", "guid 0x0000000000200000",
         'switch "leaf01" has a table already in line 1'),
        ("guid 0x0000000000200001", "guid 0x0000000000300000", 'no table of switch "leaf01"'),
        ("guid 0x00000000002", "guid 0x00000000003", "no table of a switch of cluster64"),
        ("Unicast lids [0-70] of switch Lid 2", "Multicast", "line 1: cannot read"),
    ],
)  # fmt: skip
def test_wrong_tables_are_refused(dump, old, new, words):
    fabric, _, _ = load_fabric(CLUSTER)
    text = (CLUSTER / "opensm-lfts.dump").read_text()
    assert old in text
    with pytest.raises(TopologyError) as caught:
        read_lft_dump(dump(text.replace(old, new), "opensm-lfts.dump"), fabric)
    assert words in str(caught.value)
    assert "opensm-lfts.dump" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\0", b"\xff", b"hello\n", b"Switch\n", b"[1]\n"])
@pytest.mark.parametrize("name", ["ibnetdiscover.txt", "x.lst", "x.json"])
def test_files_of_another_kind_are_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TopologyError, match=re.escape(name)):
        load_fabric(tmp_path / name)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(TopologyError, match=r"has none of ibnetdiscover\.txt"):
        load_fabric(tmp_path)
    with pytest.raises(TopologyError, match=r"gone\.txt cannot be read"):
        load_fabric(tmp_path / "gone.txt")
    with pytest.raises(TopologyError, match="null character"):
        load_fabric("a\0b")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


SOURCES = {"ibnetdiscover.txt": SMALL.encode(), "x.lst": SUBNET_LIST.read_bytes()}
SOURCES["fabric.json"] = None
TABLES = (CLUSTER / "opensm-lfts.dump").read_bytes()

MARKS = [b'"', b"#", b"[", b"]", b"\n", b"\r", b"0", b"99999", b"{", b"}"]
CHANGES = st.one_of(
    st.integers(0, 7).map(lambda bit: lambda old: bytes([old ^ 1 << bit])),
    st.binary(max_size=3).map(lambda new: lambda old: new),
    st.sampled_from(MARKS).map(lambda new: lambda old: bytes([old]) + new),
)
EDITS = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), CHANGES), min_size=1, max_size=4)


def edited(content: bytes, edits: list) -> bytes:
    for share, change in edits:
        at = int(share * len(content))
        content = content[:at] + change(content[at]) + content[at + 1 :] if content else b""
    return content


def shuffled(content: bytes, moves: list[tuple[float, float]]) -> bytes:
    """Lines dropped, doubled or moved."""
    lines = content.splitlines(keepends=True)
    for source, target in moves:
        line = lines.pop(int(source * len(lines)))
        if target < 0.7:
            lines.insert(int(target * len(lines)), line)
        if target < 0.3:
            lines.insert(int(target * len(lines)), line)
    return b"".join(lines)


def refusal(read: Callable[[], object]) -> str | None:
    """The sentence with which a file is refused; no other exception may come."""
    try:
        read()
    except TopologyError as error:
        return str(error)
    return None


SHARES = st.floats(0, 1, exclude_max=True)
MOVES = st.lists(st.tuples(SHARES, SHARES), max_size=3)


@pytest.mark.parametrize("name", SOURCES)
@settings(max_examples=100)
@given(edits=EDITS, moves=MOVES)
def test_any_change_gives_a_fabric_or_one_sentence(scratch, name, edits, moves):
    content = SOURCES[name] or to_json(load_fabric(CLUSTER)[0]).encode()
    path = scratch / name
    path.write_bytes(edited(shuffled(content, moves), edits))
    sentence = refusal(lambda: load_fabric(path))
    assert sentence is None or name in sentence


@settings(max_examples=100)
@given(edits=EDITS, moves=MOVES)
def test_any_change_gives_tables_or_one_sentence(scratch, edits, moves):
    fabric, _ = read_ibnetdiscover(CLUSTER / "ibnetdiscover.txt")
    path = scratch / "tables.dump"
    path.write_bytes(edited(shuffled(TABLES, moves), edits))
    sentence = refusal(lambda: read_lft_dump(path, fabric))
    assert sentence is None or "tables.dump" in sentence


def test_data_rates_are_those_after_encoding():
    # Lanes × signalling rate × encoding; FEC leaves 50 and 100 Gb/s of HDR's and NDR's lanes.
    assert data_rate("4", "SDR") == 4 * 2.5e9 * 8 / 10
    assert data_rate("4", "QDR") == 4 * 10e9 * 8 / 10
    assert data_rate("4", "FDR10") == 4 * 10.3125e9 * 64 / 66
    assert data_rate("4", "FDR") == int(4 * 14.0625e9 * 64 / 66)
    assert data_rate("4", "EDR") == 4 * 25.78125e9 * 64 / 66
    assert data_rate("2", "NDR") == 200e9
    assert data_rate("4", "WDR") is None
    assert data_rate("3", "EDR") is None


def test_names_sort_by_the_value_of_their_digits():
    ordered = ["Leaf3", "leaf", "leaf2", "leaf2b", "leaf10"]
    assert sorted(["leaf10", "leaf2", "leaf", "Leaf3", "leaf2b"], key=natural_key) == ordered
    natural_key("9" * 10_000)
