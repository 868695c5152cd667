"""Figure of a fabric: positions, colours and texts."""

import re
from itertools import pairwise

import pytest

from daqloom.report import matplotlib_renderer
from daqloom.report.figure import Text
from daqloom.report.system import fabric_figure
from daqloom.report.system.fabric_layout import lay_out
from daqloom.topology import TopologyError
from daqloom.topology.fabric.anomalies import anomalies
from daqloom.topology.fabric.fabric import Cable, End, Fabric, Node
from daqloom.topology.formats.load import load_fabric
from daqloom.topology.shapes.clos import folded_clos
from support.figures import marks, names, texts
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


def test_irregular_cables_have_their_ports():
    fabric = sample("cluster64")
    found = texts(fabric_figure.figure(fabric))
    written = "\n".join(found)
    assert {switch.name for switch in fabric.switches} <= found
    assert {"swapped cables", "missing link"} <= found
    assert "13 irregular places" in written
    assert all(f"{count} missing" in written for count in (1, 2, 3))
    # leaf00 port 29 has no cable, leaf02 port 36 and leaf03 port 20 are swapped.
    assert {"29", "36", "20"} <= found


def test_regular_and_empty_fabrics_are_called_so_and_too_large_ones_refused():
    [panel] = fabric_figure.figure(sample("lhcb")).panels
    written = [word for text in marks(panel, Text) for word in text.text]
    assert "the cabling is regular" in written
    assert written.count("20 hosts") == 18
    assert "2 cables" in names(fabric_figure.figure(sample("lhcb")))
    figure = fabric_figure.figure(Fabric("none", (), (), ()))
    assert any("none: 0 hosts" in text for text in texts(figure))
    assert matplotlib_renderer.svg(figure)
    wide = Fabric("wide", (), tuple(Node(f"s{place}", 1) for place in range(1001)), ())
    with pytest.raises(TopologyError, match=r"too large for a figure .* write \.dot or \.json"):
        lay_out(wide, ())


def test_cables_within_a_level_and_every_host_on_request_are_drawn():
    found = texts(fabric_figure.figure(odd()))
    assert "extra cable" in found
    assert any("1 unexpected" in text for text in found)
    fabric = sample("cluster64")
    found = texts(fabric_figure.figure(fabric, each_host=True))
    assert {host.name for host in fabric.hosts} <= found
    assert not any("16 hosts" in text for text in found)


def test_long_names_show_their_ends_and_no_name_is_mathematics(tmp_path):
    vendor = "Quantum Mellanox Technologies:$x_1$"
    regular = folded_clos("$n$", leaves=3, spines=2, hosts_per_leaf=1, rate_bps=RATE)
    switches = tuple(Node(f"{vendor} {node.name}", node.ports) for node in regular.switches)
    fabric = Fabric("$n$", regular.hosts, switches, regular.cables)
    matplotlib_renderer.save(fabric_figure.figure(fabric), tmp_path / "fabric.svg")
    # matplotlib writes each text as a comment before its glyphs.
    written = re.findall(r"<!-- (.*?) -->", (tmp_path / "fabric.svg").read_text())
    assert any(text.startswith("$n$: 3 hosts") for text in written)
    assert any("$x_1$ leaf02" in text for text in written)
    assert not any(vendor in text for text in written)
