"""Tables of broken fabrics: OpenSM's and daqloom's.

From a two-level fat tree 1, 3, 5 or 10 cables between switches are taken out at random. OpenSM
(engines minhop and updn, on ibsim) and `minimal:balanced` route what is left. Compared are the
(switch, host) pairs that have a route, and how many hosts the most loaded port between switches
carries; and whether all ports carry as many. A line for each fabric goes to standard error, one
JSON object to standard output; it ends with an error where reachability differs or the largest
loads by more than 1. Needs the Debian packages ibsim-utils, opensm and infiniband-diags.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
from fabrics import FABRICS, MOST_S, fat_tree, ibsim, need_opensm
from numpy.typing import NDArray

from daqloom.topology.fabric.broken_cables import with_broken
from daqloom.topology.fabric.fabric import End, Fabric
from daqloom.topology.formats.load import load_cabling, load_tables
from daqloom.topology.routing.by_name import routing

DEAD = (1, 3, 5, 10)


def of_opensm(fabric: Fabric, engine: str, folder: Path) -> tuple[Fabric, NDArray[np.int16]]:
    """The fabric that OpenSM finds, and its tables."""
    with ibsim(fabric, folder) as (_, env):
        # -o: one sweep; flag 0x40 has tables written to the folder.
        manager = ["opensm", "-f", str(folder / "osm.log"), "-R", engine, "-o", "-D", "0x43"]
        subprocess.run(manager, env=env, check=True, capture_output=True, timeout=MOST_S)
        found = subprocess.run(
            ["ibnetdiscover"], env=env, check=True, capture_output=True, text=True, timeout=MOST_S
        )
    (folder / "ibnetdiscover.txt").write_text(found.stdout)
    cabling, _ = load_cabling(folder / "ibnetdiscover.txt")
    tables, _ = load_tables(folder, cabling)
    if tables is None:
        raise RuntimeError("OpenSM has written no tables")
    return cabling, tables


def loads(fabric: Fabric, ports: NDArray[np.int16]) -> Counter[tuple[int, int]]:
    """How many hosts each port between switches carries, by switch and port."""
    hosts = len(fabric.hosts)
    found = Counter((int(at), int(ports[at, to])) for at, to in np.argwhere(ports))
    return Counter(
        {
            (switch, port): count
            for (switch, port), count in found.items()
            if fabric.peers[End(hosts + switch, port)].node >= hosts
        }
    )


def compare(hosts: int, dead: int, seed: int, engine: str) -> dict[str, object]:
    """One broken fabric."""
    with tempfile.TemporaryDirectory() as folder:
        fabric, theirs = of_opensm(with_broken(fat_tree(hosts), dead, seed), engine, Path(folder))
    ours = routing(fabric, None, "minimal:balanced").ports
    their_loads, our_loads = loads(fabric, theirs), loads(fabric, ours)
    return {
        "engine": engine,
        "hosts": hosts,
        "dead": dead,
        "seed": seed,
        "same_reachability": bool(((theirs > 0) == (ours > 0)).all()),
        "largest_load_opensm": max(their_loads.values()),
        "largest_load": max(our_loads.values()),
        "same_loads": their_loads == our_loads,
        "same_tables": bool((theirs == ours).all()),
    }


def main() -> None:
    """Compare all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fabrics", type=int, default=20, help="broken fabrics of each size")
    parser.add_argument("--hosts", type=int, nargs="*", choices=FABRICS, default=[72, 360])
    parser.add_argument("--engines", nargs="*", default=["minhop", "updn"], help="of OpenSM")
    options = parser.parse_args()
    need_opensm()
    rows = []
    for engine, hosts, seed in product(options.engines, options.hosts, range(options.fabrics)):
        row = compare(hosts, DEAD[seed % len(DEAD)], seed, engine)
        rows.append(row)
        print(", ".join(f"{name} {value}" for name, value in row.items()), file=sys.stderr)
    print(json.dumps(rows, indent=2))
    if any(
        not row["same_reachability"]
        or abs(int(str(row["largest_load"])) - int(str(row["largest_load_opensm"]))) > 1
        for row in rows
    ):
        sys.exit("tables differ by more than 1 in their largest load, or in reachability")


if __name__ == "__main__":
    main()
