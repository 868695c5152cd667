"""Who shares links with whom: the schedule check, with the time that each flow takes.

`daqloom.topology.shift_check` counts flows; here each has its length, so that a link with two short
flows may be free before one with a long one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daqloom.scenario.infiniband import InfinibandFabric
from daqloom.scenario.push import Nodes
from daqloom.topology.routes import Paths, trace
from daqloom.topology.schedule import DUMMY, Slots
from daqloom.topology.system import cabled, node_slots
from daqloom.topology.wiring import NONE

if TYPE_CHECKING:
    from daqloom.scenario.fabric import FabricScenario

SHAPE = (
    *(
        "shape",
        "dumps",
        "leaves",
        "spines",
        "links",
        "hosts_per_leaf",
        "pods",
        "cores",
        "core_links",
        "radix",
    ),
    "routing",
)
"""Keys of [fabric] that decide over cables and routes."""
ANY_RATE = 10**9
"""Of the cables (b/s): who shares one does not depend on it."""
PLACES = ("count", "placement", "dummies", "order")
"""Keys of [nodes] that decide over slots."""
COUNTERS = 1 << 21
"""Flows and loads of so many (phase, link) at once: some 50 MB."""

Times = NDArray[np.float64]


class Phases(NamedTuple):
    """Some phases of the schedule, one after the other; arrays (phases, nodes)."""

    receivers: NDArray[np.int32]
    """The host to which a node sends; `DUMMY` where it is idle."""
    switches: NDArray[np.int32]
    """On the way there; 0 where it sends to itself, or is idle."""
    shared_s: Times
    """Time of all flows together on the fullest link of the way; 0 likewise."""
    flows: NDArray[np.int32]
    """(phases,): the most flows on one link."""
    links_s: Times
    """(links,): time of all flows on each link, all these phases together."""


@dataclass(frozen=True)
class Traffic:
    """Paths and slots of a fabric's scenario."""

    paths: Paths
    slots: Slots
    switches: NDArray[np.int32]
    """(switches, hosts): how many switches a path has that begins at this one."""
    warnings: list[str]
    """What the import of dumps had to take for granted."""

    @property
    def hosts(self) -> NDArray[np.int32]:
        """Of the nodes, in the order of the slots."""
        hosts: NDArray[np.int32] = self.slots[self.slots != DUMMY]
        return hosts

    def between(self, source: int, destination: int) -> int:
        """Switches on the way between two hosts."""
        return int(self.switches[self.paths.wiring.leaf[source], destination])

    @property
    def farthest(self) -> int:
        """Switches on the longest way between two nodes."""
        leaves = np.unique(self.paths.wiring.leaf[self.hosts])
        return int(self.switches[np.ix_(leaves, self.hosts)].max(initial=0))

    def phases(self, flow_s: Times) -> Iterator[Phases]:
        """All phases of linear shift; `flow_s`, shape (nodes,): what each node's flow takes of a
        link alone. They come in batches."""
        slots = len(self.slots)
        of_node = np.flatnonzero(self.slots != DUMMY)
        at_once = max(1, COUNTERS // max(self.paths.wiring.links, slots))
        for first in range(0, slots, at_once):
            phase = np.arange(first, min(first + at_once, slots))[:, None]
            receivers = self.slots[(of_node[None, :] + phase) % slots]
            yield self._loaded(receivers, flow_s)

    def busiest_s(
        self, sources: NDArray[np.int32], targets: NDArray[np.int32], flow_s: Times
    ) -> float:
        """Time of the fullest link when every source sends a flow to every target but itself."""
        fullest = np.zeros(self.paths.wiring.links)
        at_once = max(1, COUNTERS // max(1, len(targets)))
        for first in range(0, len(sources), at_once):
            some = slice(first, first + at_once)
            used = self.paths.links(sources[some, None], targets[None, :])
            weights = np.broadcast_to(flow_s[some, None], used.shape)
            real = used != NONE
            fullest += np.bincount(used[real], weights[real], minlength=len(fullest))
        return float(fullest.max(initial=0.0))

    def _loaded(self, receivers: NDArray[np.int32], flow_s: Times) -> Phases:
        phases, links = len(receivers), self.paths.wiring.links
        used = self.paths.links(self.hosts[None, :], receivers)
        real = used != NONE
        counter = used + np.arange(phases)[None, :, None] * links
        counter[~real] = phases * links
        weights = np.broadcast_to(flow_s, used.shape)
        load_s = np.bincount(counter.reshape(-1), weights.reshape(-1), phases * links + 1)
        flows = np.bincount(counter.reshape(-1), minlength=phases * links + 1)
        load_s[-1] = flows[-1] = 0
        by_link = (phases, links)
        return Phases(
            receivers,
            np.maximum(real.sum(axis=0, dtype=np.int32) - 1, 0),
            load_s[counter].max(axis=0),
            flows[:-1].reshape(by_link).max(axis=1, initial=0).astype(np.int32),
            load_s[:-1].reshape(by_link).sum(axis=0),
        )


def traffic(scenario: FabricScenario) -> Traffic:
    """The traffic of a scenario. Raises ScenarioError where fabric and nodes do not fit.

    Of the last few fabrics it is kept: other sizes, costs and buffers change nothing about it.
    """
    fabric, nodes = scenario.fabric, scenario.nodes
    seed = scenario.run.seed if nodes.order == "shuffled" else 0
    shape = InfinibandFabric.model_construct(
        rate=ANY_RATE, **{key: getattr(fabric, key) for key in SHAPE}
    )
    places = Nodes.model_construct(**{key: getattr(nodes, key) for key in PLACES})
    return _traffic(shape, fabric.digest(), places, seed)


@functools.lru_cache(maxsize=8)
def _traffic(shape: InfinibandFabric, _digest: str, nodes: Nodes, seed: int) -> Traffic:
    fabric, routes, warnings = cabled(shape)
    slots = node_slots(nodes, fabric, seed)
    paths = trace(fabric, routes)
    switches = (paths.rest != NONE).sum(axis=0, dtype=np.int32)
    return Traffic(paths, slots, switches, warnings)
