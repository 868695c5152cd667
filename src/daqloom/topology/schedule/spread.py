"""Assignment of the flows of a tree to its spines, with no two flows on a cable.

The spines are filled one by one; each takes as many flows as it has cables for. A spine must take
flows of a leaf that the cables of later spines cannot carry. For each leaf, as sender and as
receiver, this bounds the number of flows from below and above. If such a linear program has a
solution, it has one in whole numbers (it is a flow in a network).
"""

import numpy as np
from numpy.typing import NDArray

from daqloom.base import lazy

with lazy.imports():
    from scipy import optimize, sparse

NOWHERE = -1
"""Value in place of a spine for a flow without free cables."""

Ints = NDArray[np.int64]
_Limit = tuple[Ints, Ints, Ints]
"""Row of each flow, and the least and largest number of flows in each row."""


def spread(
    senders: Ints, receivers: Ints, up: Ints, down: Ints, alone: Ints, worth: NDArray[np.float64]
) -> Ints:
    """Return the spine of each flow, `NOWHERE` if no spine is left.

    `senders` and `receivers`, (flows,), are rows of `up` and `down`, (rows, spines): cables.
    `alone` and `worth`, (flows, spines): of the flows with the same number in `alone`, a spine
    takes at most one; it takes the flows with the largest sum of `worth`, which is above 0.
    """
    chosen = np.full(len(senders), NOWHERE, np.int64)
    for spine in range(up.shape[1]):
        left = np.flatnonzero(chosen == NOWHERE)
        if not len(left):
            break
        limits = []
        for rows, cables in (senders[left], up), (receivers[left], down):
            flows_of = np.bincount(rows, minlength=len(cables))
            later = cables[:, spine + 1 :].sum(axis=1)
            most = np.minimum(flows_of, cables[:, spine])
            limits.append((rows, np.clip(flows_of - later, 0, most), most))
        groups = np.unique(alone[left, spine], return_inverse=True)[1].reshape(-1)
        ones = np.ones(int(groups.max()) + 1, np.int64)
        limits.append((groups, 0 * ones, ones))
        taken = _most_worth(worth[left, spine], limits)
        chosen[left[taken]] = spine
    return chosen


def _most_worth(worth: NDArray[np.float64], limits: list[_Limit]) -> NDArray[np.bool_]:
    """Return the flows with the largest total worth within `limits`; if no solution exists, the
    lower limits are dropped."""
    flows = len(worth)
    rows = sparse.vstack(
        [
            sparse.csr_array((np.ones(flows), (row, np.arange(flows))), shape=(len(most), flows))
            for row, _, most in limits
        ]
    )
    least, most = (np.concatenate([limit[side] for limit in limits]) for side in (1, 2))
    for lower in (least, 0 * least):
        found = optimize.milp(
            -worth,
            constraints=optimize.LinearConstraint(rows, lower, most),
            bounds=optimize.Bounds(0, 1),
        )
        if found.x is not None:
            break
    taken: NDArray[np.bool_] = found.x > 0.5
    return taken
