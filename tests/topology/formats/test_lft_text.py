"""Forwarding tables as OpenSM loads them."""

import numpy as np
import pytest

from daqloom.scenario.dumps import shipped_fabrics
from daqloom.topology import TopologyError
from daqloom.topology.fabric.broken_cables import with_broken
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.failures.repair import mend
from daqloom.topology.formats.lft_dump import read_lft_dump
from daqloom.topology.formats.lft_text import lft_text
from daqloom.topology.formats.load import load_cabling, load_fabric
from daqloom.topology.routing.by_name import routing
from daqloom.topology.routing.routes import Routes
from daqloom.topology.schedule.slots import slots_of
from daqloom.topology.shapes.clos import folded_clos
from support.ibsim import entries, ibsim, sweep_once


def sample(name: str) -> tuple[Fabric, Routes]:
    fabric, tables, _ = load_fabric(shipped_fabrics()[name])
    assert tables is not None
    return fabric, Routes(tables)


@pytest.mark.parametrize("name", ["fattree72", "cluster64"])
def test_written_tables_are_read_back(tmp_path, name):
    fabric, imported = sample(name)
    for routes in imported, routing(fabric, None, "minimal:modulo"):
        path = tmp_path / "opensm-lfts.dump"
        path.write_text(lft_text(fabric, routes))
        ports, warnings = read_lft_dump(path, fabric)
        assert (ports == routes.ports).all()
        assert warnings == []


def test_entries_lead_to_each_switch_and_lack_missing_routes():
    """Each switch of the tree is reached from everywhere, over two cables between two leaves."""
    fabric, routes = sample("fattree72")
    routes.ports[0, 5] = 0
    found = entries(lft_text(fabric, routes))
    switches, nodes = fabric.switches, fabric.nodes
    guids = {f"{node.guid:#018x}": fabric.switch_node(i) for i, node in enumerate(switches)}
    assert len(found) == len(switches) * len(nodes) - 1
    assert (f"{switches[0].guid:#018x}", fabric.hosts[5].lid) not in found
    for first in guids:
        for switch in switches:
            here, hops = guids[first], 0
            while port := found[f"{nodes[here].guid:#018x}", switch.lid]:
                here, hops = fabric.peers[here, port].node, hops + 1
            assert nodes[here] == switch
            assert hops <= 2


def test_fabrics_without_guids_or_lids_are_refused():
    made = folded_clos("made", leaves=2, spines=1, hosts_per_leaf=2, rate_bps=10**11)
    with pytest.raises(TopologyError, match=r"made: H00-00 has no GUID, .*ibnetdiscover"):
        lft_text(made, routing(made, None, None))


@pytest.mark.process
def test_opensm_loads_mended_tables_of_a_broken_fabric(tmp_path):
    """OpenSM 3.3 on ibsim. It first finds the fabric and routes it itself, then loads our tables
    and dumps those of all switches."""
    tree = folded_clos("tree", leaves=3, spines=3, links=2, hosts_per_leaf=6, rate_bps=10**11)
    (tmp_path / "loaded").mkdir()
    with ibsim(with_broken(tree, 2, seed=1), tmp_path) as (_, env):
        theirs = entries(sweep_once(env, tmp_path, "-R", "minhop").read_text())
        fabric, _ = load_cabling(tmp_path / "opensm-subnet.lst")
        own, slots = routing(fabric, None, None), slots_of(range(18))
        mended = mend(fabric, own, slots)
        assert not np.array_equal(mended.routes.ports, own.ports)
        text = lft_text(fabric, mended.routes)
        (tmp_path / "ours.lft").write_text(text)
        options = "-R", "file", "--lfts_file", str(tmp_path / "ours.lft")
        loaded = entries(sweep_once(env, tmp_path / "loaded", *options).read_text())
    assert loaded == entries(text)
    assert loaded.keys() == theirs.keys()
    assert len(loaded) == 6 * (18 + 6)
    assert loaded != theirs
