"""The picture of a fabric: where things stand, what is in colour, what is written."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from daqloom.report import style
from daqloom.report.system import fabric_figure
from daqloom.report.system.fabric_layout import lay_out
from daqloom.topology import TopologyError
from daqloom.topology.anomalies import anomalies
from daqloom.topology.clos import folded_clos
from daqloom.topology.fabric import Cable, End, Fabric, Node
from daqloom.topology.load import load_fabric
from support.repository import ROOT

SAMPLES = ROOT / "scenarios" / "fabrics"
RATE = 10**11


def sample(name: str) -> Fabric:
    return load_fabric(SAMPLES / name)[0]


def three_level() -> Fabric:
    sizes = {"pods": 4, "leaves": 4, "spines": 4, "cores": 4, "hosts_per_leaf": 4}
    return folded_clos("three", **sizes, rate_bps=RATE)


def odd() -> Fabric:
    """Two leaves and a spine, with a cable between the leaves, one from the spine to itself, and a
    host at the spine."""
    hosts = [Cable(End(host, 1), End(5 + host // 2, 1 + host % 2), RATE) for host in range(4)]
    up = [Cable(End(5 + leaf, 6), End(7, leaf + 1), RATE) for leaf in range(2)]
    extra = [
        Cable(End(5, 5), End(6, 5), RATE),
        Cable(End(7, 5), End(7, 6), RATE),
        Cable(End(4, 1), End(7, 4), RATE),
    ]
    return Fabric(
        "odd",
        tuple(Node(f"H{place}", 1) for place in range(5)),
        tuple(Node(name, 6) for name in ("leaf0", "leaf1", "spine")),
        (*hosts, *up, *extra),
    )


def drawn(tmp_path: Path, fabric: Fabric, **how: bool) -> str:
    """The text of the picture; matplotlib writes each as a comment before its glyphs."""
    style.save(fabric_figure.draw(fabric, **how), tmp_path / "fabric.svg")
    return "\n".join(re.findall(r"<!-- (.*?) -->", (tmp_path / "fabric.svg").read_text()))


@pytest.mark.parametrize("fabric", [sample("cluster64"), sample("lhcb"), three_level(), odd()])
def test_boxes_of_a_row_stand_apart_and_levels_above_each_other(fabric):
    layout = lay_out(fabric, anomalies(fabric))
    assert len(layout.boxes) == len(fabric.switches)
    rows = {}
    for box in layout.boxes.values():
        rows.setdefault(box.y, []).append(box)
        assert box.x - box.width / 2 >= 0
        assert box.x + box.width / 2 <= layout.width
    for row in rows.values():
        for left, right in pairwise(sorted(row, key=lambda box: box.x)):
            assert left.x + left.width / 2 < right.x - right.width / 2
    for lower, upper in pairwise(sorted(rows)):
        assert lower + rows[lower][0].height / 2 < upper - rows[upper][0].height / 2


@pytest.mark.parametrize("fabric", [sample("cluster64"), odd()])
def test_each_irregular_cable_touches_the_boxes_of_its_switches(fabric):
    found = anomalies(fabric)
    layout = lay_out(fabric, found)
    cables = [
        (anomaly.kind, pair)
        for anomaly in found
        if anomaly.kind != "unexpected host"
        for pair in zip(anomaly.ends[::2], anomaly.ends[1::2], strict=False)
    ]
    assert [wire.kind for wire in layout.wires] == [kind for kind, _ in cables]
    for wire, (_, pair) in zip(layout.wires, cables, strict=True):
        for touch, end in zip(wire.ends, pair, strict=True):
            box = layout.boxes[end.node]
            assert touch.port == end.port
            assert abs(touch.y - box.y) == pytest.approx(box.height / 2)
            assert abs(touch.x - box.x) <= layout.width / len(layout.boxes)
    touched = [(touch.x, touch.y) for wire in layout.wires for touch in wire.ends]
    assert len(set(touched)) == len(touched)


def test_what_is_irregular_is_written_with_its_ports(tmp_path):
    fabric = sample("cluster64")
    text = drawn(tmp_path, fabric)
    for switch in fabric.switches:
        assert switch.name in text
    assert "13 irregular places" in text
    assert "swapped cables" in text
    assert "missing link" in text
    for missing in ("2 missing", "3 missing", "1 missing"):
        assert missing in text
    # leaf00 port 29 has no cable, leaf02 port 36 and leaf03 port 20 are swapped.
    assert {"29", "36", "20"} <= set(text.splitlines())


def test_a_regular_fabric_is_called_so(tmp_path):
    text = drawn(tmp_path, sample("lhcb"))
    assert "the cabling is regular" in text
    assert text.count("20 hosts") == 18
    assert "2 cables" in text


def test_cables_within_a_level_and_to_the_switch_itself_are_drawn(tmp_path):
    text = drawn(tmp_path, odd())
    assert "extra cable" in text
    assert "1 unexpected" in text


def test_every_host_is_drawn_on_request(tmp_path):
    fabric = sample("cluster64")
    text = drawn(tmp_path, fabric, each_host=True)
    for host in fabric.hosts:
        assert host.name in text
    assert "16 hosts" not in text


def test_long_names_show_their_ends_and_no_name_is_mathematics(tmp_path):
    vendor = "Quantum Mellanox Technologies:$x_1$"
    regular = folded_clos("$n$", leaves=3, spines=2, hosts_per_leaf=1, rate_bps=RATE)
    switches = tuple(Node(f"{vendor} {node.name}", node.ports) for node in regular.switches)
    text = drawn(tmp_path, Fabric("$n$", regular.hosts, switches, regular.cables))
    assert "$n$: 3 hosts" in text
    assert "$x_1$ leaf02" in text
    assert vendor not in text


def test_a_fabric_without_anything_is_an_empty_picture(tmp_path):
    assert "none: 0 hosts" in drawn(tmp_path, Fabric("none", (), (), ()))


def test_what_nobody_could_see_is_refused():
    wide = Fabric("wide", (), tuple(Node(f"s{place}", 1) for place in range(1001)), ())
    with pytest.raises(TopologyError, match=r"too large for a figure .* write \.dot or \.json"):
        lay_out(wide, ())
