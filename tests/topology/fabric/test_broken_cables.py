"""Cables that are broken from the start: which, and how what is left is routed."""

import numpy as np
import pytest

from daqloom.deployment.scenarios import override
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.file.load import load
from daqloom.scenario.file.unused_keys import unused_warnings
from daqloom.study.file.hasher import ScenarioHasher
from daqloom.study.methods import methods
from daqloom.topology import TopologyError
from daqloom.topology.fabric.broken_cables import between_switches, with_broken
from daqloom.topology.routing.minimal import minimal
from daqloom.topology.shapes.clos import folded_clos
from daqloom.topology.shapes.shape import cable_network

TREE = folded_clos("tree", leaves=3, spines=2, links=2, hosts_per_leaf=4, rate_bps=10**11)


def of(scenario: str, **keys: object):
    return cable_network(
        load(scenario, {key.replace("__", "."): value for key, value in keys.items()})
    )


def test_only_cables_between_switches_break_and_the_requested_number() -> None:
    assert len(between_switches(TREE)) == 3 * 2 * 2
    for seed in range(20):
        left = with_broken(TREE, 5, seed)
        gone = set(TREE.cables) - set(left.cables)
        assert len(gone) == 5
        assert min(min(c.a.node, c.b.node) for c in gone) >= len(TREE.hosts)
        assert left.cables == tuple(cable for cable in TREE.cables if cable not in gone)
        assert with_broken(TREE, 5, seed) == left
    assert len({with_broken(TREE, 5, seed).cables for seed in range(20)}) > 15
    assert with_broken(TREE, 0, 1) == TREE
    assert len(with_broken(TREE, 12, 1).cables) == 12
    with pytest.raises(
        TopologyError, match=r"12 cables between switches, of which 13 .* 12 at most"
    ):
        with_broken(TREE, 13, 1)


def test_remaining_cables_are_routed_like_opensms_minhop() -> None:
    """`benchmarks/opensm/tables.py` compares these tables with those of OpenSM."""
    found = of("lhcb-10-percent", faults__cables=3, network__routing="minimal:balanced")
    assert (found.routes.ports == minimal(found.fabric, "balanced").ports).all()
    assert (found.routes.ports > 0).all()
    whole = of("daqpipe-cluster64")
    broken = of("daqpipe-cluster64", faults__cables=2)
    assert len(broken.fabric.cables) == len(whole.fabric.cables) - 2
    assert (broken.routes.ports == minimal(broken.fabric, "balanced").ports).all()
    assert not np.array_equal(broken.routes.ports, whole.routes.ports)


def test_each_draw_is_a_scenario_of_its_own_with_its_hash_in_a_study() -> None:
    plain = load("lhcb-10-percent")
    assert plain.hash() == load("lhcb-10-percent", {"faults.cables": 0}).hash()
    drawn = [{"faults.cables": n, "faults.seed": seed} for n, seed in ((1, 1), (1, 2), (2, 1))]
    hashes = {load("lhcb-10-percent", keys).hash() for keys in drawn}
    assert len(hashes | {plain.hash()}) == 4
    assert "faults" not in load("atlas-lab").content()
    # No cable broken, where the seed changes nothing, among them.
    base = load("lhcb-10-percent")
    hasher = ScenarioHasher(base)
    for cables in (0, 1, 3, 0):
        for seed in (1, 2, 3):
            keys = {"faults.cables": cables, "faults.seed": seed}
            assert hasher.hash(keys) == override(base, keys).hash()
    with pytest.raises(ScenarioError, match=r"faults\.cables"):
        load("atlas-lab", {"faults.cables": 1})


def test_one_of_two_parallel_cables_broken_doubles_a_phase() -> None:
    """Two leaves of two hosts, one spine, two cables to it from each leaf. In one phase of four
    hosts write to themselves, which needs no cable, in two one host of each leaf writes to the
    other leaf, and in one both do: that takes twice as long where one cable carries both. A round
    takes 1 + 1 + 2 instead of 3 times as long as a write: 3/4 of the rate is left."""
    keys = {
        "readout.units": 4, "network.leaves": 2, "network.spines": 1, "network.spine_links": 2,
        "network.hosts_per_leaf": 2, "event.packing": 30_000, "readout.streams": 1,
        "building.barrier": "ideal", "network.routing": "d-mod-k",
        "run.warmup": "2 ms", "run.duration": "12 ms",
    }  # fmt: skip
    variants = [load("lhcb-run3-test-160", keys | {"faults.cables": cables}) for cables in (0, 1)]
    whole, broken = map(methods.simulate, variants)
    rate = [each.metrics["written_throughput_bps"] for each in (whole, broken)]
    assert rate[1] / rate[0] == pytest.approx(3 / 4, rel=0.03)


def test_a_measurement_warns_that_no_real_cable_is_broken() -> None:
    assert "faults" not in " ".join(unused_warnings(load("laptop"), "measure"))
    broken = unused_warnings(load("laptop", {"faults.cables": 1}), "measure")
    text = "cables and routing tables of this machine stay as they are"
    assert broken[-1] == f"without effect: faults.cables; {text}"
