"""Links shared by flows of a fabric, weighted by the time of each flow.
`daqloom.topology.schedule.shift_check` only counts the flows on a link. Here flows have lengths: a
link with two short flows may be free before a link with one long flow."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daqloom.deployment.fabric_system import schedule_network
from daqloom.scenario.schema.models import Scenario
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.fabric.wiring import NONE
from daqloom.topology.routing.by_name import MENDED
from daqloom.topology.routing.routes import Paths, trace
from daqloom.topology.schedule.slots import DUMMY, Slots

_NETWORK = "shape dumps switches cables leaves spines spine_links hosts_per_leaf hosts pods cores"
SHAPE = (
    *(f"network.{key}" for key in f"{_NETWORK} core_links switch.radix routing".split()),
    *("hosts.spares", "faults.cables", "faults.seed"),
)
"""Scenario keys that determine cables and routes."""
ANY_RATE = 10**9
"""Arbitrary rate of the cables (b/s): the flows that share a cable do not depend on it."""
PLACES = ("nodes", "hosts.placement", "hosts.units", "building.dummies", "hosts.order")
"""Scenario keys that determine the slots of the schedule."""
COUNTERS = 1 << 21
"""Maximum pairs (phase, link) whose flows and loads are in memory together: about 50 MB."""

Times = NDArray[np.float64]


class Phases(NamedTuple):
    """Successive phases of the schedule; arrays have shape (phases, nodes) unless stated
    otherwise."""

    receivers: NDArray[np.int32]
    """The host to which a node sends; `DUMMY` if the node is idle."""
    switches: NDArray[np.int32]
    """Switches on the path; 0 if the node sends to itself or is idle."""
    shared_s: Times
    """Sum of the times of all flows on the most loaded link of the path; 0 if there is no path."""
    flows: NDArray[np.int32]
    """(phases,): largest number of flows on one link."""
    links_s: Times
    """Time of all flows on each link, summed over the phases, shape (links,)."""


@dataclass(frozen=True)
class Traffic:
    """Paths and slots of a fabric scenario."""

    paths: Paths
    slots: Slots
    builders: Slots
    """Slots of the receivers of linear shift; equal to `slots` unless the routing is mended."""
    switches: NDArray[np.int32]
    """Number of switches on the path from a switch to a host, shape (switches, hosts)."""
    warnings: list[str]
    """Warnings about assumptions made on import of topology dumps."""
    fabric: Fabric
    """The cables, all at the arbitrary rate `ANY_RATE`."""

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
        """Yield all phases of linear shift in batches. `flow_s`, shape (nodes,), is the time of
        each node's flow on an unshared link."""
        slots = len(self.slots)
        of_node = np.flatnonzero(self.slots != DUMMY)
        at_once = max(1, COUNTERS // max(self.paths.wiring.links, slots))
        for first in range(0, slots, at_once):
            phase = np.arange(first, min(first + at_once, slots))[:, None]
            receivers = self.builders[(of_node[None, :] + phase) % slots]
            yield self._load(receivers, flow_s)

    def busiest_s(
        self, sources: NDArray[np.int32], targets: NDArray[np.int32], flow_s: Times
    ) -> float:
        """Return the total time on the most loaded link if each source sends to every target."""
        fullest = np.zeros(self.paths.wiring.links)
        at_once = max(1, COUNTERS // max(1, len(targets)))
        for first in range(0, len(sources), at_once):
            some = slice(first, first + at_once)
            used = self.paths.links(sources[some, None], targets[None, :])
            weights = np.broadcast_to(flow_s[some, None], used.shape)
            real = used != NONE
            fullest += np.bincount(used[real], weights[real], minlength=len(fullest))
        return float(fullest.max(initial=0.0))

    def _load(self, receivers: NDArray[np.int32], flow_s: Times) -> Phases:
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
    """Return the paths and slots of a scenario. Raises ScenarioError if fabric and nodes do not
    match. Recent results are cached, because sizes, costs and buffers do not affect them."""
    seed = scenario.run.seed if scenario.hosts.order == "shuffled" else 0
    determining = (attrgetter(*SHAPE, *PLACES)(scenario), scenario.network.digest(), seed)
    return _traffic(_PathKey(determining, scenario))


@dataclass(frozen=True)
class _PathKey:
    """Cache key: equal for all scenarios with the same cables, routes and slots."""

    by: tuple[object, ...]
    scenario: Scenario = field(compare=False)


@functools.lru_cache(maxsize=8)
def _traffic(determined: _PathKey) -> Traffic:
    network = determined.scenario.network
    links = network.links.model_copy(update={"rate": ANY_RATE})
    at_any_rate = {"network": network.model_copy(update={"links": links})}
    (fabric, routes, _, warnings), slots, _, builders = schedule_network(
        determined.scenario.model_copy(update=at_any_rate)
    )
    if network.routing != MENDED:  # every node sends to all slots in turn
        builders = slots
    paths = trace(fabric, routes)
    switches = (paths.rest != NONE).sum(axis=0, dtype=np.int32)
    return Traffic(paths, slots, builders, switches, warnings, fabric)
