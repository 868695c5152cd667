"""Record that `daqloom topology show` prints: levels, rates, capacity, and irregularities."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from daqloom.topology.fabric.anomalies import Anomaly, anomalies
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.fabric.levels import Tree, level_name, node_levels, tree

SCHEMA = 1


@dataclass(frozen=True)
class Cables:
    """Cables between two levels at one rate (b/s)."""

    lower: int
    upper: int
    rate_bps: int
    count: int


@dataclass(frozen=True)
class Summary:
    """Summary of a fabric: levels, cables, capacity and anomalies."""

    fabric: Fabric
    level: Sequence[int]
    """Level of each node; see `node_levels`."""
    tree: Tree
    cables: list[Cables]
    anomalies: tuple[Anomaly, ...]

    @property
    def regular_cabling(self) -> bool:
        """Whether the cabling has no anomaly except missing hosts."""
        return all(anomaly.kind == "missing host" for anomaly in self.anomalies)

    def record(self) -> dict[str, Any]:
        """Return all results for JSON; ends are [node, port], and an unknown port is null."""
        nodes = self.fabric.nodes
        return {
            "schema": SCHEMA,
            "fabric": self.fabric.name,
            "hosts": len(self.fabric.hosts),
            "switches": {level_name(level): count for level, count in self.tree.counts.items()},
            "cables": [
                {
                    "from": level_name(cables.lower),
                    "to": level_name(cables.upper),
                    "rate_bps": cables.rate_bps,
                    "count": cables.count,
                }
                for cables in self.cables
            ],
            "hosts_bps": self.tree.hosts_bps,
            "full_bisection": self.tree.full_bisection,
            "non_blocking": self.tree.non_blocking,
            "blocking_switches": [
                {
                    "switch": self.fabric.switches[balance.switch].name,
                    "down_bps": balance.down_bps,
                    "up_bps": balance.up_bps,
                }
                for balance in self.tree.blocking
            ],
            "anomalies": [
                {
                    "kind": anomaly.kind,
                    "ends": [[nodes[end.node].name, end.port or None] for end in anomaly.ends],
                    "sentence": anomaly.sentence,
                }
                for anomaly in self.anomalies
            ],
        }


def summarise(fabric: Fabric) -> Summary:
    """Count a fabric's nodes and cables by level, and find irregularities."""
    level = node_levels(fabric)
    counts: Counter[tuple[int, int, int]] = Counter()
    for cable in fabric.cables:
        lower, upper = sorted((level[cable.a.node], level[cable.b.node]))
        counts[lower, upper, cable.rate_bps] += 1
    cables = [Cables(*between, count) for between, count in sorted(counts.items())]
    return Summary(fabric, level, tree(fabric), cables, anomalies(fabric))
