"""Which flows share links: the schedule check, with the time of each flow.

`daqloom.topology.schedule.shift_check` counts flows; here each has its length, so that
a link with two short flows may be free before one with a long one.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daqloom.scenario.schema.models import Scenario
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.fabric.wiring import NONE
from daqloom.topology.routing.by_name import MENDED
from daqloom.topology.routing.routes import Paths, trace
from daqloom.topology.schedule.slots import DUMMY, Slots
from daqloom.topology.system.system import scheduled

_NETWORK = "shape dumps switches cables leaves spines spine_links hosts_per_leaf hosts pods cores"
SHAPE = (
    *(f"network.{key}" for key in f"{_NETWORK} core_links switch.radix routing".split()),
    *("hosts.spares", "faults.cables", "faults.seed"),
)
"""Keys that determine cables and routes."""
ANY_RATE = 10**9
"""Rate of the cables (b/s), of any value: who shares a cable does not depend on it."""
PLACES = ("nodes", "hosts.placement", "hosts.units", "building.dummies", "hosts.order")
"""Keys that determine slots."""
COUNTERS = 1 << 21
"""Limit on the pairs (phase, link) whose flows and loads are in memory at once: some 50 MB."""

Times = NDArray[np.float64]


class Phases(NamedTuple):
    """Some phases of the schedule, one after the other; arrays (phases, nodes)."""

    receivers: NDArray[np.int32]
    """The host to which a node sends; `DUMMY` where it is idle."""
    switches: NDArray[np.int32]
    """Switches on the path; 0 where it sends to itself, or is idle."""
    shared_s: Times
    """Time of all flows together on the most loaded link of the path; 0 likewise."""
    flows: NDArray[np.int32]
    """(phases,): largest number of flows on one link."""
    links_s: Times
    """(links,): time of all flows on each link, all these phases together."""


@dataclass(frozen=True)
class Traffic:
    """Paths and slots of a fabric scenario."""

    paths: Paths
    slots: Slots
    builders: Slots
    """Slots of the receivers of linear shift: as a rule `slots`."""
    switches: NDArray[np.int32]
    """(switches, hosts): how many switches a path has that begins at this one."""
    warnings: list[str]
    """Assumptions of the import of dumps."""
    fabric: Fabric
    """The cables, at any rate."""

    @property
    def hosts(self) -> NDArray[np.int32]:
        """Hosts of the nodes, in slot order."""
        hosts: NDArray[np.int32] = self.slots[self.slots != DUMMY]
        return hosts

    def between(self, source: int, destination: int) -> int:
        """Return the number of switches on the path between two hosts."""
        return int(self.switches[self.paths.wiring.leaf[source], destination])

    @property
    def farthest(self) -> int:
        """Switches on the longest path between two nodes."""
        leaves = np.unique(self.paths.wiring.leaf[self.hosts])
        return int(self.switches[np.ix_(leaves, self.hosts)].max(initial=0))

    def phases(self, flow_s: Times) -> Iterator[Phases]:
        """Yield all phases of linear shift in batches; `flow_s` (nodes,): time of a flow alone."""
        slots = len(self.slots)
        of_node = np.flatnonzero(self.slots != DUMMY)
        at_once = max(1, COUNTERS // max(self.paths.wiring.links, slots))
        for first in range(0, slots, at_once):
            phase = np.arange(first, min(first + at_once, slots))[:, None]
            receivers = self.builders[(of_node[None, :] + phase) % slots]
            yield self._loaded(receivers, flow_s)

    def busiest_s(
        self, sources: NDArray[np.int32], targets: NDArray[np.int32], flow_s: Times
    ) -> float:
        """Return the time of the most loaded link if each source sends to each other target."""
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


def traffic(scenario: Scenario) -> Traffic:
    """Return the traffic of a scenario. Raises ScenarioError where fabric and nodes do not fit. The
    last few are kept: sizes, costs and buffers change nothing about them."""
    seed = scenario.run.seed if scenario.hosts.order == "shuffled" else 0
    determining = (attrgetter(*SHAPE, *PLACES)(scenario), scenario.network.digest(), seed)
    return _traffic(_Determined(determining, scenario))


@dataclass(frozen=True)
class _Determined:
    """A scenario that equals others with the same cables, routes and slots."""

    by: tuple[object, ...]
    scenario: Scenario = field(compare=False)


@functools.lru_cache(maxsize=8)
def _traffic(determined: _Determined) -> Traffic:
    network = determined.scenario.network
    links = network.links.model_copy(update={"rate": ANY_RATE})
    at_any_rate = {"network": network.model_copy(update={"links": links})}
    (fabric, routes, _, warnings), slots, _, builders = scheduled(
        determined.scenario.model_copy(update=at_any_rate)
    )
    if network.routing != MENDED:  # each node sends to all others in turn, whatever units it has
        builders = slots
    paths = trace(fabric, routes)
    switches = (paths.rest != NONE).sum(axis=0, dtype=np.int32)
    return Traffic(paths, slots, builders, switches, warnings, fabric)
