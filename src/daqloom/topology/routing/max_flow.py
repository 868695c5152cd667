"""Upper bound on all-to-all traffic that a network can carry with any routing.

It is a concurrent flow: all pairs of hosts send at the same rate, split over any paths. Only the
sum of a leaf's flows on each bundle of parallel cables matters, so a linear program with one
variable for each leaf and direction of a bundle is exact. Traffic that enters a switch leaves it or
is for its own hosts, and no bundle carries more than its cables.
"""

import numpy as np
from numpy.typing import NDArray

from daqloom.base import lazy
from daqloom.topology.fabric.wiring import Wiring

with lazy.imports():
    from scipy import optimize, sparse

NOTHING = 1e-12
"""Rate that counts as 0, to allow for rounding."""


def least_time(wiring: Wiring, hosts: NDArray[np.int32], sent: NDArray[np.float64]) -> float:
    """Return the least time in which the cables between switches carry all traffic from each of
    `hosts` to each other one. `sent`, (hosts,), is the time of one flow on the slowest cable of
    all. Infinity if a host is unreachable; 0 if all hosts are on one leaf."""
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
    """Return the bundles of parallel cables between switches, one for each direction: from, to, and
    total rate in units of the slowest cable's rate."""
    first, switches = len(wiring.leaf), len(wiring.out) - len(wiring.leaf)
    between = (wiring.tail >= first) & (wiring.head >= first)
    tail, head = (end[between].astype(np.int64) - first for end in (wiring.tail, wiring.head))
    pairs, bundle = np.unique(tail * switches + head, return_inverse=True)
    rate = wiring.rate_bps[between] / wiring.rate_bps.min()
    together = np.bincount(bundle, rate, len(pairs)).astype(np.float64)
    return pairs // switches, pairs % switches, together
