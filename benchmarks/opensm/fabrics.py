"""OpenSM on ibsim's simulated fabrics. Needs ibsim, libumad2sim and opensm."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.shapes.clos import folded_clos

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from support.ibsim import MOST_S, SIMULATED, ibsim

__all__ = ["FABRICS", "MOST_S", "fat_tree", "ibsim", "need_opensm"]
FABRICS = {
    72: {"leaves": 4, "spines": 9, "links": 2, "hosts_per_leaf": 18},
    360: {"leaves": 18, "spines": 10, "links": 2, "hosts_per_leaf": 20},
    800: {"leaves": 40, "spines": 20, "links": 1, "hosts_per_leaf": 20},
}
"""Two-level fat trees by the number of their hosts."""


def fat_tree(hosts: int) -> Fabric:
    """One of `FABRICS`."""
    return folded_clos("tree", rate_bps=2 * 10**11, **FABRICS[hosts])


def need_opensm() -> None:
    """Exit where it is not installed."""
    if not all(map(shutil.which, ("ibsim", "opensm", "ibnetdiscover"))) or not SIMULATED.exists():
        sys.exit("ibsim and opensm are needed: apt install ibsim-utils opensm infiniband-diags")
