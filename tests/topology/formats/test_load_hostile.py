"""Dumps made to exhaust: every import is bounded in time and memory."""

import json
import os
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from daqloom.topology import TopologyError, dump_lines
from daqloom.topology.dump_lines import lines_of
from daqloom.topology.fabric.fabric import Fabric, Node
from daqloom.topology.formats import survey
from daqloom.topology.formats.as_json import from_json, to_json
from daqloom.topology.formats.ibnetdiscover import read_ibnetdiscover
from daqloom.topology.formats.lft_dump import read_lft_dump
from daqloom.topology.formats.lldp_table import read_lldp_table
from daqloom.topology.formats.subnet_list import read_subnet_list
from daqloom.topology.routing.routes import MOST_ROUTES, no_routes
from daqloom.topology.shapes.clos import folded_clos
from support.repository import DATA

SWITCH = 'Switch\t{ports} "S-{guid:016x}"\t# "{name}" base port 0 lid {lid} lmc 0\n'
LINK = '[{port}]\t"S-{guid:016x}"[{there}]\t# "{name}" lid 1 4xHDR\n'
HALF = (
    "{{ SW Ports:{ports} SystemGUID:1 NodeGUID:{guid:x} PortGUID:{guid:x} VenID:1 DevID:1 Rev:1 "
    "{{{name}}} LID:{lid} PN:{port} }} "
)
PAIR = folded_clos("pair", leaves=1, spines=1, hosts_per_leaf=1, rate_bps=1)


def refusal(read: Callable[[], object]) -> str:
    with pytest.raises(TopologyError) as caught:
        read()
    sentence = str(caught.value)
    assert sentence.isprintable()
    assert len(sentence) < 1000
    return sentence


def peak_bytes(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "dump"
        path.write_text(text)
        return path

    return write


def test_dumps_are_read_line_by_line_up_to_the_largest_size(file, monkeypatch):
    sentence = refusal(lambda: read_ibnetdiscover(file("\n" * 10**6)))
    assert "not output of ibnetdiscover" in sentence
    path = file("# a comment as they stand in dumps\n" * 10**5)
    assert path.stat().st_size > 3 * 10**6
    assert peak_bytes(lambda: sum(1 for _ in lines_of(path))) < 3 * 10**5
    path = file("x" * 10**7)
    assert peak_bytes(lambda: refusal(lambda: list(lines_of(path)))) < 10**6
    monkeypatch.setattr(dump_lines, "LARGEST_DUMP_BYTES", 1 << 20)
    too_long = (" " * 63 + "\n") * (2 << 14)
    assert "larger than 1 MiB" in refusal(lambda: read_ibnetdiscover(file(too_long)))


def test_binary_and_other_than_regular_files_are_refused_at_once(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert "not a regular file" in refusal(lambda: read_ibnetdiscover(fifo))
    assert "not a regular file" in refusal(lambda: read_ibnetdiscover(Path("/dev/zero")))
    path = tmp_path / "dump"
    for content in (b"\x7fELF\x02\x01\x01\x00", "Switch".encode("utf-16"), random_bytes(10**6)):
        path.write_bytes(content)
        assert "binary file" in refusal(lambda: read_ibnetdiscover(path))


def random_bytes(count: int) -> bytes:
    return random.Random(1).randbytes(count)


def test_a_name_in_latin_1_is_read_as_such(file):
    # 0xfc is ü in Latin-1, and no UTF-8 before a letter. The next line is UTF-8 and stays that.
    here, there = "Z\udcfcrich", "Genève"
    text = "".join(
        SWITCH.format(ports=36, guid=guid, lid=guid, name=name)
        + LINK.format(port=1, guid=3 - guid, there=1, name=peer)
        for guid, name, peer in ((1, here, there), (2, there, here))
    )
    path = file("")
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    fabric, _ = read_ibnetdiscover(path)
    assert {switch.name for switch in fabric.switches} == {"Zürich", "Genève"}


def test_more_cables_and_nodes_than_any_subnet_are_refused_at_the_first_too_many(file, monkeypatch):
    monkeypatch.setattr(survey, "MOST_CABLES", 100)
    lines = [SWITCH.format(ports=1000, guid=1, name="s", lid=1)]
    lines += [LINK.format(port=port, guid=2, there=port, name="t") for port in range(1, 1000)]
    sentence = refusal(lambda: read_ibnetdiscover(file("".join(lines))))
    assert "line 202: more than 100 cables" in sentence  # two ends each, after the switch's line
    monkeypatch.setattr(survey, "MOST_NODES", 100)
    lines = [SWITCH.format(ports=1, guid=g, name=f"s{g}", lid=0) for g in range(1, 1000)]
    sentence = refusal(lambda: read_ibnetdiscover(file("".join(lines))))
    assert "line 101: more than the 100 nodes" in sentence


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SWITCH.format(ports=99999, guid=1, name="s", lid=1), "has 99999 ports; expected 1 to"),
        (SWITCH.format(ports="9" * 20, guid=1, name="s", lid=1), "line 1: cannot read"),
        (SWITCH.format(ports=4, guid=1, name="s" * 2000, lid=1), "a name of 2000 characters"),
        (SWITCH.format(ports=4, guid=1, name="s", lid=99999), "LID 99999 is not a unicast address"),
        (
            SWITCH.format(ports=4, guid=1, name="s", lid=1)
            + LINK.format(port=99999, guid=2, there=1, name="t"),
            'line 2: switch "s" port 99999: it has ports 1 to 4',
        ),
        (
            SWITCH.format(ports=4, guid=1, name="s", lid=1)
            + LINK.format(port=1, guid=2, there=99999, name="t"),
            "which the file does not describe",
        ),
        # Blanks on which a careless pattern would go back and forth for ever.
        (SWITCH.format(ports=4, guid=1, name='"' * 2000, lid=1) + "[1]" + " " * 4000, "line 1"),
        ("Switch" + " " * 4000, "line 1: cannot read"),
        (SWITCH.format(ports=4, guid=1, name="s", lid=1) + "[1]" + " " * 4000, "line 2"),
    ],
)
def test_numbers_and_names_out_of_range_are_refused(file, text, words):
    assert words in refusal(lambda: read_ibnetdiscover(file(text)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ports": "FFF"}, "has 4095 ports; expected 1 to"),
        ({"port": "FFF"}, "it has ports 1 to 36"),
        ({"lid": "FFFF"}, "LID 65535 is not a unicast address"),
        ({"name": "s" * 1000}, "a name of 1000 characters"),
        ({"name": "} " * 500}, "a name of 999 characters"),
    ],
)
def test_so_they_are_in_a_subnet_list(file, change, words):
    half = {"ports": "24", "guid": 1, "name": "s", "lid": "0001", "port": "01"} | change
    line = HALF.format(**half) + HALF.format(**half | {"guid": 2}) + "PHY=4x LOG=ACT SPD=25\n"
    assert words in refusal(lambda: read_subnet_list(file(line)))


def entries(first: int, last: int) -> str:
    return "".join(f"0x{lid:04x} 001 # of a host\n" for lid in range(first, last))


def table(guid: int, lines: str) -> str:
    return f"Unicast lids [0-9] of switch Lid 1 guid 0x{guid:016x} ('s'):\n{lines}9 lids dumped\n"


def routed() -> Fabric:
    switches = (Node("a", 4, 1, 1), Node("b", 4, 2, 2))
    return Fabric("f", PAIR.hosts, switches, PAIR.cables)


def test_tables_of_a_million_entries_and_of_unknown_switches_take_little_memory(file):
    path = file(table(1, entries(0, 0x10000) * 2))
    sentence = refusal(lambda: read_lft_dump(path, routed()))
    assert "line 65538: " in sentence
    assert "has LID 0 already in line 2" in sentence
    # 100 tables of 500 entries: one at a time takes some 0.1 MB.
    strangers = "".join(table(guid, entries(0, 500)) for guid in range(100, 200))
    path = file(strangers + table(1, "") + table(2, ""))
    assert peak_bytes(lambda: read_lft_dump(path, routed())) < 10**6
    _, [first, _] = read_lft_dump(path, routed())
    assert first.endswith("100 are of switches that f lacks")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (table(1, "0x0001 999 # x\n") + table(2, ""), "sends LID 1 by port 999; it has ports 1"),
        (table(1, "0x00001 001\n"), "cannot read"),
        (table(1, "0x0001 99999999999\n"), "cannot read"),
        ("Unicast lids [" + "] of switch guid 0x1 (" * 180, "line 1: cannot read"),
    ],
)
def test_numbers_out_of_range_in_tables_are_refused(file, text, words):
    assert words in refusal(lambda: read_lft_dump(file(text), routed()))


DOCUMENT = json.loads(to_json(PAIR))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cables": [[]] * 10**5}, "cables[0]: expected an object"),
        ({"hosts": [{"name": "h", "ports": 1}] * 50_000}, "hosts: expected a list of at most 4"),
        ({"cables": DOCUMENT["cables"][:1] * 300_000}, "cables: expected a list of at most 2"),
        ({"name": "n" * 10**6}, "1 to 200 printable characters"),
        ({"switches": [{"name": "n" * 10**6, "ports": 1}]}, "1 to 200 printable characters"),
        ({"switches": [{"name": "s\x1b[2J", "ports": 1}]}, "1 to 200 printable characters"),
        ({"switches": [{"name": "s", "ports": 10**30}]}, "expected 1 to 1023"),
        ({"hosts": [{"name": "h", "ports": 1, "lid": 10**30}]}, "GUID or LID of h is out of range"),
    ],
)
def test_json_out_of_range_is_refused(change, words):
    text = json.dumps({**DOCUMENT, "cables": [], **change})
    assert words in refusal(lambda: from_json(text))


@pytest.mark.parametrize("name", ["leaf\x1b[2J0", "leaf\x9b0", "leaf\u202e0", "leaf\x070"])
def test_control_characters_are_escaped_in_names(file, name):
    text = SWITCH.format(ports=2, guid=1, name=name, lid=1)
    text += LINK.format(port=1, guid=2, there=1, name="spine0")
    text += SWITCH.format(ports=2, guid=2, name="spine0", lid=2)
    text += LINK.format(port=1, guid=1, there=1, name=name)
    fabric, _ = read_ibnetdiscover(file(text))
    assert all(node.name.isprintable() for node in fabric.nodes)
    assert fabric.nodes[0].name == repr(name)[1:-1]


def test_control_characters_do_not_shift_the_columns_of_a_table(tmp_path):
    source = DATA / "leaf-spine-lldp" / "leaf0.lldp.txt"
    text = source.read_text()
    (tmp_path / source.name).write_text(text.replace("ru0.daq.example ", "ru0.daq.\x1bxample "))
    neighbours = read_lldp_table(tmp_path / source.name, "leaf0").neighbours
    assert neighbours[0].device == r"ru0.daq.\x1bxample"
    assert neighbours[0].ids == ("0c:42:a1:00:30:00", "ens1f0np0")


def test_tables_too_large_to_follow_are_refused():
    many = tuple(Node(f"n{place}", 1) for place in range(MOST_ROUTES // 1024 + 1))
    switches = tuple(Node(f"s{place}", 1) for place in range(1024))
    assert "can be followed" in refusal(lambda: no_routes(Fabric("big", many, switches, ())))
