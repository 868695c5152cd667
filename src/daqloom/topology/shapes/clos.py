"""Regular trees: the folded Clos network of two and of three levels.

Ports are numbered from below: a switch's cables downwards begin at port 1, in the order of the
nodes below; its cables upwards occupy its *last* ports, in the order of the switches above. Links
between the same switches use adjacent ports. In a tree with radix r, S spines, L links per pair

    host h of a leaf          leaf port h + 1
    spine s, parallel link l  leaf port r − S·L + s·L + l + 1  ↔  spine port i·L + l + 1

for leaf i (all counted from 0). The ports of uplinks thus do not depend on the number of hosts.
"""

from collections.abc import Iterator

from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import MOST_PORTS, Cable, End, Fabric, Node, check, check_size


def folded_clos(
    name: str,
    *,
    leaves: int,
    spines: int,
    hosts_per_leaf: int,
    rate_bps: int,
    links: int = 1,
    pods: int | None = None,
    cores: int | None = None,
    core_links: int | None = None,
    hosts: int | None = None,
    radix: int | None = None,
) -> Fabric:
    """Return two levels, in which every leaf has `links` cables to every spine, or `pods` trees.

    With pods, spine j of every pod has `core_links` cables (default 1) to each of the `cores`
    switches of plane j: core c of plane j is number j·cores + c; its ports p·core_links + l + 1
    lead to pod p. Leaves and spines are numbered through all pods.

    One leaf without spines is a switch with all hosts. `hosts` (default: all leaves full) fill leaf
    after leaf; empty leaves are cabled upwards like others. `radix` defaults to the ports that the
    fullest switch needs. `rate_bps`: for all cables. Raises TopologyError if ports are too few.
    """
    deep = (pods, cores, core_links) != (None, None, None)
    if deep and (pods is None or cores is None):
        raise TopologyError(f"{name}: three levels require both pods and cores")
    pods, cores = (1, 0) if pods is None or cores is None else (pods, cores)
    core_links = 1 if core_links is None else core_links
    places = pods * leaves * hosts_per_leaf
    count = places if hosts is None else hosts
    sizes = (pods, leaves, spines, hosts_per_leaf, links, core_links, cores if deep else 1)
    is_one = (pods, leaves, spines, deep) == (1, 1, 0, False)
    if (min(sizes) < 1 and not (is_one and places)) or not 0 <= count <= places:
        raise TopologyError(
            f"{name}: a tree of {pods * leaves} leaves with {hosts_per_leaf} hosts each, {spines} "
            f"spines, {cores} cores and {links} links per pair cannot hold {count} hosts"
        )
    switches = pods * (leaves + spines) + spines * cores
    between = pods * spines * (leaves * links + cores * core_links)
    check_size(name, count + switches, count + between)
    ports = _radix(
        name,
        radix,
        leaf=hosts_per_leaf + spines * links,
        spine=leaves * links + cores * core_links,
        core=pods * core_links,
    )
    first_spine = count + pods * leaves
    first_core = first_spine + pods * spines

    def cables() -> Iterator[Cable]:
        for host in range(count):
            leaf, place = divmod(host, hosts_per_leaf)
            yield Cable(End(host, 1), End(count + leaf, place + 1), rate_bps)
        for leaf in range(pods * leaves):
            pod, place = divmod(leaf, leaves)
            upper = range(first_spine + pod * spines, first_spine + (pod + 1) * spines)
            yield from _uplinks(count + leaf, place, upper, links, ports, rate_bps)
        for spine in range(pods * spines):
            pod, plane = divmod(spine, spines)
            upper = range(first_core + plane * cores, first_core + (plane + 1) * cores)
            yield from _uplinks(first_spine + spine, pod, upper, core_links, ports, rate_bps)

    of_leaf = _number_names("H", pods * leaves)
    of_place = _number_names("-", hosts_per_leaf)
    counts = {"leaf": pods * leaves, "spine": pods * spines, "core": spines * cores}
    names = [name for kind, count in counts.items() for name in _number_names(kind, count)]
    return check(
        Fabric(
            name,
            tuple(
                Node(of_leaf[host // hosts_per_leaf] + of_place[host % hosts_per_leaf], 1)
                for host in range(count)
            ),
            tuple(Node(switch, ports) for switch in names),
            tuple(cables()),
        )
    )


def _radix(name: str, radix: int | None, **needed: int) -> int:
    """Return the number of ports of each switch: `radix`, or as many as the fullest kind needs.
    Raises TopologyError if a kind of switch needs more, or if the number is above MOST_PORTS."""
    ports = max(needed.values()) if radix is None else radix
    for kind, number in needed.items():
        if max(number, ports) > MOST_PORTS:
            refusal = f"{name}: a {kind} of {max(number, ports)} ports"
            raise TopologyError(f"{refusal}; a switch has at most {MOST_PORTS}")
        if number > ports:
            raise TopologyError(
                f"{name}: a {kind} needs {number} ports, and its radix is {ports}; give a larger "
                "radix, or none for as many ports as needed"
            )
    return ports


def _uplinks(
    node: int, place: int, above: range, links: int, radix: int, rate_bps: int
) -> Iterator[Cable]:
    """Yield the cables upwards of a switch that has index `place` below each of `above`."""
    first = radix - len(above) * links + 1
    for index, upper in enumerate(above):
        for link in range(links):
            port = End(node, first + index * links + link)
            yield Cable(port, End(upper, place * links + link + 1), rate_bps)


def _number_names(prefix: str, count: int) -> list[str]:
    width = max(2, len(str(count - 1)))
    return [f"{prefix}{index:0{width}}" for index in range(count)]
