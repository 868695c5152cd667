"""The most that a network can carry of an exchange of all with all, however it is routed.

A concurrent flow: all pairs of hosts at the same rate, split over any ways. Of what a leaf sends
only the sum on each bundle of parallel cables counts, so a linear program with a number for each
leaf and direction of a bundle is exact: at every switch what comes and does not go on is for its
own hosts, and no bundle carries more than its cables.
"""

import numpy as np
from numpy.typing import NDArray

from daqloom.base import lazy
from daqloom.topology.fabric.wiring import Wiring

with lazy.imports():
    from scipy import optimize, sparse

NOTHING = 1e-12
"""A rate that is 0 but for rounding."""


def least_time(wiring: Wiring, hosts: NDArray[np.int32], sent: NDArray[np.float64]) -> float:
    """Return the least time in which the cables between switches carry what each of `hosts` sends
    to each other one: `sent`, (hosts,), is the time of one flow on the slowest cable of all.
    Infinity where there is no way; 0 where all are on one leaf."""
    leaves, leaf = np.unique(wiring.leaf[hosts], return_inverse=True)
    tails, heads, cables = _bundles(wiring)
    count, switches = len(leaves), len(wiring.out) - len(wiring.leaf)
    if count < 2:
        return 0.0
    demand = np.zeros((count, switches))
    demand[:, leaves] = np.outer(np.bincount(leaf, sent), np.bincount(leaf))
    others = np.ones((count, switches), bool)
    others[np.arange(count), leaves] = False  # a leaf sends what all others get
    bundle = np.arange(len(tails))
    stays = sparse.csr_array(
        (np.repeat([1.0, -1.0], len(bundle)), (np.append(heads, tails), np.tile(bundle, 2))),
        shape=(switches, len(bundle)),
    )
    balance = sparse.kron(sparse.eye(count), stays, format="csr")[others.reshape(-1)]
    cost = np.zeros(balance.shape[1] + 1)
    cost[-1] = -1.0
    found = optimize.linprog(
        cost,
        A_eq=sparse.hstack([balance, -demand[others][:, None]]),
        b_eq=np.zeros(balance.shape[0]),
        A_ub=sparse.hstack(
            [sparse.eye(len(bundle))] * count + [sparse.csr_array((len(bundle), 1))]
        ),
        b_ub=cables,
        method="highs-ipm",
    )
    rate = float(found.x[-1])
    return 1.0 / rate if rate > NOTHING else float("inf")


def _bundles(
    wiring: Wiring,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the bundles of parallel cables between switches, once for each direction: from, to,
    and the rate of all cables together, in units of that of the slowest cable of all."""
    first, switches = len(wiring.leaf), len(wiring.out) - len(wiring.leaf)
    between = (wiring.tail >= first) & (wiring.head >= first)
    tail, head = (end[between].astype(np.int64) - first for end in (wiring.tail, wiring.head))
    pairs, bundle = np.unique(tail * switches + head, return_inverse=True)
    rate = wiring.rate_bps[between] / wiring.rate_bps.min()
    together = np.bincount(bundle, rate, len(pairs)).astype(np.float64)
    return pairs // switches, pairs % switches, together
