"""A fabric written by hand as a list of nodes and cables: TOML or JSON, ports by name."""

import json
import re

import pytest

from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import End
from daqloom.topology.formats.as_json import from_json, to_json
from daqloom.topology.formats.load import load_cabling

LAB = """\
hosts = ["ru0", "ru1", "bu0"]
switches = ["leaf0", { name = "spine0", ports = 32 }]
cables = [
    { from = "ru0", to = ["leaf0", "Ethernet8"], rate = "100 Gb/s" },
    { from = ["leaf0", "Ethernet0"], to = "ru1", rate = "100 Gb/s" },
    { from = ["leaf0", "Ethernet48"], to = ["spine0", 7], rate = "400 Gb/s" },
    { from = ["spine0", 9], to = ["bu0", "ens1f0"], rate_bps = 25000000000 },
    { from = ["spine0", 11], to = ["bu0", "ens1f1"], rate = "HDR" },
]
"""


@pytest.fixture
def lab(tmp_path):
    path = tmp_path / "lab.toml"
    return lambda text=LAB: path.write_text(text) and path


def test_ports_by_name_are_numbered_in_their_order(lab):
    fabric, warnings = load_cabling(lab())
    assert warnings == []
    assert fabric.name == "lab"
    hosts = ["ru0", "ru1", "bu0 ens1f0", "bu0 ens1f1"]
    assert [node.name for node in fabric.nodes] == [*hosts, "leaf0", "spine0"]
    assert [node.ports for node in fabric.switches] == [3, 32]
    # Ethernet0, Ethernet8, Ethernet48 are 1, 2, 3; spine0's ports have numbers already.
    ends = (((0, 1), (4, 2)), ((1, 1), (4, 1)), ((4, 3), (5, 7)))
    ends += (((2, 1), (5, 9)), ((3, 1), (5, 11)))
    cables = [(End(*one), End(*other)) for one, other in ends]
    assert fabric.peers == dict(cables) | {other: one for one, other in cables}
    assert [cable.rate_bps / 10**9 for cable in fabric.cables] == [100, 100, 400, 25, 200]


def test_toml_and_json_agree_with_each_cable_once_and_a_common_rate(lab, tmp_path):
    fabric, _ = load_cabling(lab())
    assert from_json(to_json(fabric)) == fabric
    (tmp_path / "fabric.toml").write_text(LAB)
    assert load_cabling(tmp_path)[0].cables == fabric.cables
    back = '    { to = "ru0", from = ["leaf0", "Ethernet8"], rate = "100 Gb/s" },\n]'
    assert load_cabling(lab(LAB[:-2] + back))[0] == load_cabling(lab())[0]
    text = LAB.replace(', rate = "400 Gb/s"', "")
    with pytest.raises(TopologyError, match=r"cables\[2\]: expected a rate, such as .* or network"):
        load_cabling(lab(text))
    fabric, _ = load_cabling(lab(text), rate_bps=400 * 10**9)
    assert fabric == load_cabling(lab())[0]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            '"ru0", to',
            '"ru9", to',
            'cables[0].from: expected a node of the file, there is no "ru9"',
        ),
        ('to = "ru1"', 'to = "leaf0"', "cables[1].to: expected an end such as"),
        ('"Ethernet8"', '"Ethernet0"', "leaf0 port Ethernet0 has two cables"),
        ('"Ethernet8"', "8", 'leaf0 has ports by name, such as "Ethernet0", and by number, such'),
        ('"ens1f0"', "1", "bu0 port 1 has two cables"),
        ('"ens1f1"]', '"ens1f0"]', "bu0 port ens1f0 has two cables"),
        ('"HDR"', '"fast"', 'such as "25 Gb/s", or by the name of a speed'),
        ("ports = 32", "ports = 4", "spine0 port 7 is cabled; it has ports 1 to 4"),
        ('"bu0"]', '"bu0", "bu0"]', "nodes 2 (bu0) and 3 (bu0) have the same name"),
        ("hosts = [", "hosts = ", "is not valid TOML"),
        ('"Ethernet48"', r'"\u001b[2J"', "a port's name of 1 to 200 printable characters"),
        (
            '{ from = "ru0"',
            '{ to = "ru0", from = ["leaf0", "Ethernet8"], rate = "25 Gb/s" }, { from = "ru0"',
            "cables[0] and cables[1] are the two ends of one cable, at 25000000000 and "
            "100000000000 b/s; give the rate at which it runs",
        ),
    ],
)
def test_contradictions_are_named(lab, old, new, words):
    assert old in LAB
    with pytest.raises(TopologyError, match=re.escape(words)) as refused:
        load_cabling(lab(LAB.replace(old, new, 1)))
    assert str(refused.value).isprintable()
    assert "lab.toml" in str(refused.value)


@pytest.mark.parametrize("text", ["[" * 100_000, "a." * 5000 + "b = 1", "x = 1" + "0" * 5000])
def test_toml_made_to_exhaust_is_refused(lab, text):
    with pytest.raises(TopologyError, match=r"lab\.toml"):
        load_cabling(lab(text))


def test_a_list_of_numbers_alone_is_read_as_it_was_written():
    cable = {"from": "h", "to": ["s", 5], "rate": "EDR"}
    fabric = from_json(json.dumps({"hosts": ["h"], "switches": ["s"], "cables": [cable]}))
    assert fabric.switches[0].ports == 5
    assert fabric.name == "JSON"
