"""Tables and order for broken trees: what cables allow, OpenSM's minhop, and `mend`.

Of trees with ten spines and two cables from each leaf to each, cables between switches are taken
out at random, ten draws each. A line for each tree and number goes to standard error, one JSON
object to standard output: the time of a round in transfers by a host's cable, as the maximum flow
allows it, with a barrier after each phase and minhop's tables, and with mended ones; the medians,
and of mended also the worst draw. Besides, the shares of the rate that the maximum flow allows, and
the processor's time for mending.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import numpy as np

from daqloom.topology.fabric.broken_cables import with_broken
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.fabric.wiring import wire
from daqloom.topology.failures.repair import Repair, mend, round_time
from daqloom.topology.routing.max_flow import least_time
from daqloom.topology.routing.minimal import minimal
from daqloom.topology.schedule.slots import by_port, slots_of
from daqloom.topology.shapes.clos import folded_clos

TREES = ((2, 20, 40), (6, 18, 108), (6, 20, 120), (18, 18, 321), (18, 20, 360))
"""Leaves, host ports of each, hosts."""
BROKEN = (1, 3, 5)
DRAWS = range(1, 11)


def main() -> None:
    """Print the lines, and all draws as JSON."""
    found = []
    for leaves, ports, hosts in TREES:
        whole = folded_clos(
            "tree", leaves=leaves, spines=10, links=2, hosts_per_leaf=ports, rate_bps=10**11
        )
        for cables in BROKEN:
            draws = [_draw(whole, hosts, cables, seed) for seed in DRAWS]
            found += [{"hosts": hosts, "broken": cables} | draw for draw in draws]
            print(f"{hosts} hosts, {cables} broken:", _summary(draws), file=sys.stderr, flush=True)
    print(json.dumps(found))


def _summary(draws: list[dict[str, float]]) -> str:
    middle = statistics.median
    allowed, minhop, mended, order, tables, took_s = (
        [draw[key] for draw in draws] for key in draws[0]
    )
    shares = [
        [least / each for least, each in zip(allowed, times, strict=True)]
        for times in (minhop, mended, order, tables)
    ]
    return (
        f"allowed {middle(allowed):.1f}, minhop {middle(minhop):.0f}, mended {middle(mended):.0f} "
        f"(worst {max(mended):.0f}); share of minhop {middle(shares[0]):.3f}, of mended "
        f"{middle(shares[1]):.3f} (worst {min(shares[1]):.3f}), of its order with minhop's tables "
        f"{middle(shares[2]):.3f}, of its tables in the usual order {middle(shares[3]):.3f}; "
        f"{max(took_s):.2f} s at most"
    )


def _draw(whole: Fabric, hosts: int, cables: int, seed: int) -> dict[str, float]:
    fabric = with_broken(whole, cables, seed)
    routes = minimal(fabric)
    slots = by_port(fabric, wire(fabric), slots_of(range(hosts)), dummies=True)
    begin_s = time.process_time()
    mended = mend(fabric, routes, slots)
    took_s = time.process_time() - begin_s
    between = least_time(wire(fabric), np.arange(hosts, dtype=np.int32), np.ones(hosts))
    return {
        "allowed": max(hosts - 1, between),
        "minhop": round_time(fabric, Repair(routes, slots, slots)),
        "mended": round_time(fabric, mended),
        "order_alone": round_time(fabric, mended._replace(routes=routes)),
        "tables_alone": round_time(fabric, Repair(mended.routes, slots, slots)),
        "took_s": took_s,
    }


if __name__ == "__main__":
    main()
