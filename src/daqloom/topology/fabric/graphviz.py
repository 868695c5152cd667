"""Text for Graphviz's `dot`: switch levels as ranks, parallel links as a line with a count."""

import json
from collections import Counter
from collections.abc import Iterator

from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.fabric.levels import tree_levels


def to_dot(fabric: Fabric, *, each_host: bool = False) -> str:
    """Return an undirected graph. Hosts are nodes if `each_host`, else a number at their leaf."""
    return "\n".join(_lines(fabric, each_host)) + "\n"


def _lines(fabric: Fabric, each_host: bool) -> Iterator[str]:
    hosts = len(fabric.hosts)
    yield f"graph {quote(fabric.name)} {{"
    yield "  graph [rankdir=BT, ranksep=2, splines=line]; node [shape=box]; edge [fontsize=8];"
    ranks: dict[int, list[int]] = {0: list(range(hosts))} if each_host else {}
    for place, level in enumerate(tree_levels(fabric)):
        ranks.setdefault(level, []).append(hosts + place)
    for level, nodes in sorted(ranks.items()):
        yield "  { rank=same;" if level or each_host else "  {"
        for node in nodes:
            label = fabric.nodes[node].name
            if fabric.host_counts[node] and not each_host:
                label += f"\n{fabric.host_counts[node]} hosts"
            shape = ", shape=ellipse" if node < hosts else ""
            yield f"    n{node} [label={quote(label)}{shape}];"
        yield "  }"
    links: Counter[tuple[int, int]] = Counter()
    for cable in fabric.cables:
        low, high = sorted((cable.a.node, cable.b.node))
        if low >= hosts or each_host:
            links[low, high] += 1
    for (low, high), count in sorted(links.items()):
        label = f' [label="{count}", penwidth={min(1 + count / 2, 6):g}]' if count > 1 else ""
        yield f"  n{low} -- n{high}{label};"
    yield "}"


def quote(text: str) -> str:
    """Return `text` as a quoted string of the DOT language."""
    return json.dumps(text, ensure_ascii=False)
