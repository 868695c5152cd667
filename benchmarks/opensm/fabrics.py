"""OpenSM on ibsim's simulated fabrics. Needs ibsim, libumad2sim and opensm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from daqloom.topology.fabric.fabric import End, Fabric
from daqloom.topology.shapes.clos import folded_clos

SIMULATED = Path("/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so")
FABRICS = {
    72: {"leaves": 4, "spines": 9, "links": 2, "hosts_per_leaf": 18},
    360: {"leaves": 18, "spines": 10, "links": 2, "hosts_per_leaf": 20},
    800: {"leaves": 40, "spines": 20, "links": 1, "hosts_per_leaf": 20},
}
"""Two-level fat trees by the number of their hosts."""
MOST_S = 120.0


def fat_tree(hosts: int) -> Fabric:
    """One of `FABRICS`."""
    return folded_clos("tree", rate_bps=2 * 10**11, **FABRICS[hosts])


def need_opensm() -> None:
    """Exit where it is not installed."""
    if not all(map(shutil.which, ("ibsim", "opensm", "ibnetdiscover"))) or not SIMULATED.exists():
        sys.exit("ibsim and opensm are needed: apt install ibsim-utils opensm infiniband-diags")


def as_ibsim(fabric: Fabric) -> str:
    """The fabric in the language of ibsim."""
    lines = []
    for index, node in enumerate(fabric.nodes):
        kind = "Hca" if index < len(fabric.hosts) else "Switch"
        lines.append(f'{kind}\t{node.ports} "{node.name}"')
        for port in range(1, node.ports + 1):
            if peer := fabric.peers.get(End(index, port)):
                lines.append(f'[{port}]\t"{fabric.nodes[peer.node].name}"[{peer.port}]')
        lines.append("")
    return "\n".join(lines)


@contextmanager
def ibsim(fabric: Fabric, folder: Path) -> Iterator[tuple[IO[str], dict[str, str]]]:
    """Its console, and the environment of programs that shall see this fabric."""
    net, cache = folder / "net", folder / "cache"
    net.write_text(as_ibsim(fabric))
    cache.mkdir()
    nodes = 2 * len(fabric.nodes)
    sizes = ["-N", str(nodes), "-S", str(nodes), "-P", str(32 * nodes), "-L", "4096"]
    simulator = subprocess.Popen(
        ["ibsim", *sizes, "-s", str(net)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        time.sleep(1)
        assert simulator.stdin is not None
        env = {"LD_PRELOAD": str(SIMULATED), "SIM_HOST": fabric.hosts[0].name,
               "OSM_CACHE_DIR": str(cache), "OSM_TMP_DIR": str(folder)}  # fmt: skip
        yield simulator.stdin, os.environ | env
    finally:
        simulator.terminate()
        simulator.wait()
