"""Node orders: the host in each slot of a schedule."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daqloom.topology import TopologyError
from daqloom.topology.dump_lines import lines_of
from daqloom.topology.fabric.fabric import Fabric, natural_order
from daqloom.topology.fabric.host_names import HostNames, expand
from daqloom.topology.fabric.levels import switch_links, tree_levels
from daqloom.topology.fabric.wiring import NONE, Wiring

Slots = NDArray[np.int32]
"""(slots,): the host of each slot; `DUMMY` for a slot without a real node."""
DUMMY = -1
Units = Callable[[Slots], tuple[Slots, Slots]]
"""Function from the slots of nodes to equally many slots of readout units and of builder units."""

LARGEST_FILE_BYTES = 16 << 20


def slots_of(hosts: Iterable[int]) -> Slots:
    """Return a schedule with these hosts in this order."""
    return np.fromiter(hosts, np.int32)


def hosts_of(slots: Slots) -> list[int]:
    """Return the hosts in the order of their slots, without dummies."""
    hosts: list[int] = slots[slots != DUMMY].tolist()
    return hosts


def by_name(fabric: Fabric, wiring: Wiring) -> Slots:
    """Return all hosts that are cabled to a switch, in the order of their names."""
    return slots_of(host for host in natural_order(fabric.hosts) if wiring.leaf[host] != NONE)


def all_hosts(fabric: Fabric, wiring: Wiring) -> Slots:
    """Return all hosts that are cabled to a switch, leaf after leaf, by port within a leaf."""
    return by_port(fabric, wiring, slots_of(np.flatnonzero(wiring.leaf != NONE)), dummies=False)


def shuffle(slots: Slots, seed: int) -> Slots:
    """Return these slots in a random order."""
    return np.random.default_rng(seed).permutation(slots)


def by_port(fabric: Fabric, wiring: Wiring, slots: Slots, *, dummies: bool) -> Slots:
    """Return slots by leaf name, then by port; with or without `DUMMY` for missing ports."""
    leaves = [leaf for leaf in natural_order(fabric.switches) if (wiring.leaf == leaf).any()]
    ports = sorted(set(wiring.leaf_port[slots[slots != DUMMY]].tolist()))
    return _grid(wiring, slots, leaves, ports, dummies)


def alike(wiring: Wiring, slots: Slots, *, dummies: bool) -> Slots:
    """Return slots with one order of ports for all leaves; leaves keep their order of first use.
    The ports are ordered as on the first leaf with most slots, followed by ports that it lacks."""
    hosts = slots[slots != DUMMY]
    leaf, port = wiring.leaf[hosts], wiring.leaf_port[hosts]
    fullest = max(Counter(leaf.tolist()).items(), key=itemgetter(1), default=(NONE, 0))[0]
    ports = dict.fromkeys([*port[leaf == fullest].tolist(), *sorted(port.tolist())])
    return _grid(wiring, slots, list(dict.fromkeys(leaf.tolist())), list(ports), dummies)


def whole_pods(fabric: Fabric, wiring: Wiring, slots: Slots) -> Slots:
    """Return slots by leaf, then by port, with dummies for missing ports and for leaves without
    hosts in a pod with hosts. A pod is a set of leaves with the same switches above."""
    level = tree_levels(fabric)
    pods: dict[frozenset[int], list[int]] = defaultdict(list)
    for leaf, ends in switch_links(fabric).items():
        place = leaf - len(fabric.hosts)
        if level[place] == 1:
            pods[frozenset(end.node for end in ends.values())].append(place)
    inhabited = set(wiring.leaf[slots[slots != DUMMY]].tolist())
    leaves = {leaf for pod in pods.values() if inhabited.intersection(pod) for leaf in pod}
    in_order = [leaf for leaf in natural_order(fabric.switches) if leaf in leaves | inhabited]
    ports = sorted(set(wiring.leaf_port[slots[slots != DUMMY]].tolist()))
    whole: Slots = _rows(wiring, slots, in_order, ports).reshape(-1)
    return whole


def fold(slots: Slots) -> tuple[Slots, Slots]:
    """Return the slots of readout units and of builder units if each node has both units."""
    return slots, slots


def unfold(slots: Slots) -> tuple[Slots, Slots]:
    """Return the slots of readout units and of builder units, which alternate in the node order.

    Two neighbouring slots become one with a readout and a builder unit. For an even number of slots
    without dummies, in phase n the node of slot 2i sends to that of slot 2(i + n) + 1. These flows
    are part of phase 2n + 1 with both units on all nodes, so no link gets more flows.
    """
    places = np.flatnonzero(slots != DUMMY)
    units = np.full((2, -(-len(slots) // 2)), DUMMY, np.int32)
    units[np.arange(len(places)) % 2, places // 2] = slots[places]
    return units[0], units[1]


def by_role(slots: Slots, reads: Sequence[bool], builds: Sequence[bool]) -> tuple[Slots, Slots]:
    """Return the slots of readout units and of builder units for hosts with given roles. A host
    with both units has one slot. The k-th host with only a readout unit and the k-th host with only
    a builder unit share a slot, at the place of the earlier host."""
    units: list[list[int]] = []
    alone: tuple[list[int], list[int]] = [], []
    for host, roles in zip(slots.tolist(), zip(reads, builds, strict=True), strict=True):
        if all(roles):
            units.append([host, host])
            continue
        own = roles.index(True)
        if alone[1 - own]:
            units[alone[1 - own].pop(0)][own] = host
        else:
            alone[own].append(len(units))
            units.append([host, DUMMY] if own == 0 else [DUMMY, host])
    readouts, builders = np.array(units, np.int32).reshape(-1, 2).T
    return readouts, builders


def _grid(wiring: Wiring, slots: Slots, leaves: list[int], ports: list[int], full: bool) -> Slots:
    """Return a slot for each (leaf, port); leaves without a host of the schedule are left out."""
    rows = _rows(wiring, slots, leaves, ports)
    grid: Slots = rows[(rows != DUMMY).any(axis=1)].reshape(-1)
    return grid if full else grid[grid != DUMMY]


def _rows(wiring: Wiring, slots: Slots, leaves: list[int], ports: list[int]) -> Slots:
    """Return (leaves, ports): the host of the schedule at that port, or `DUMMY`."""
    hosts = slots[slots != DUMMY]
    table = np.full((max(leaves, default=0) + 1, max(ports, default=0) + 1), DUMMY, np.int32)
    table[wiring.leaf[hosts], wiring.leaf_port[hosts]] = hosts
    rows: Slots = table[np.array(leaves, int)][:, np.array(ports, int)]
    return rows


def read_order(path: Path, fabric: Fabric, wiring: Wiring) -> Slots:
    """Read an order of nodes from a file. A line is one host, several as Slurm lists them
    (`node[001-096]`), `dummy`, or a comment after `#`. A LID before the name, as in OpenSM's
    `opensm-ftree-ca-order.dump`, is ignored. Raises TopologyError that names the line."""
    known = HostNames([host.name for host in fabric.hosts], fabric.name)
    slots: list[int] = []
    lines: dict[int, int] = {}
    for number, line in _order_lines(path):
        name = re.sub(r"^0x[0-9a-fA-F]{1,4}\s+", "", line.strip())
        if not name or name.startswith("#"):
            continue
        where = f"order {path}, line {number}"
        for each in expand(name, where):
            if each.lower() == "dummy":
                slots.append(DUMMY)
                continue
            host = known.place(each, where)
            if wiring.leaf[host] == NONE:
                raise TopologyError(f"{where}: {each} is cabled to no switch; leave it out")
            if host in lines:
                refusal = f"{where}: {each} already has a slot, from line {lines[host]}"
                raise TopologyError(f"{refusal}; give each host once")
            lines[host] = number
            slots.append(host)
    if not lines:
        raise TopologyError(f"order {path} has no hosts; give one host's name a line")
    return slots_of(slots)


def _order_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines, decoded like those of a dump, so that names match the fabric's."""
    try:
        yield from lines_of(path, LARGEST_FILE_BYTES)
    except TopologyError as error:
        raise TopologyError(f"order {error}") from None


def order_text(fabric: Fabric, slots: Slots) -> str:
    """Return the text of a node order, which `read_order` can read."""
    names = ["dummy" if host == DUMMY else fabric.hosts[host].name for host in slots.tolist()]
    return "\n".join([*names, ""])
