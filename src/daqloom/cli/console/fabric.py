"""Terminal output for a fabric, its check and a route."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from daqloom.base.line_counts import FileCounts, in_words
from daqloom.base.words import plural, printable
from daqloom.deployment.check import FabricCheck, Schedule
from daqloom.scenario.quantities import RATE
from daqloom.topology.fabric.anomalies import Kind
from daqloom.topology.fabric.fabric import End, Fabric
from daqloom.topology.fabric.levels import level_name
from daqloom.topology.fabric.summary import Summary
from daqloom.topology.routing.by_name import MENDED
from daqloom.topology.routing.credit_loops import loop_names
from daqloom.topology.routing.routes import Hop

MOST_LINES = 8
"""Maximum lines printed per kind of finding; one faulty cable may cause hundreds."""
MOST_ANOMALIES = 40
MOST_FILES = 4
"""Maximum files with separate line counts; for more files, only the sum is printed."""

KINDS: dict[Kind, tuple[str, str]] = {
    "missing link": ("missing link", "missing links"),
    "swapped cables": ("swap of cables", "swaps of cables"),
    "misplaced cable": ("misplaced cable", "misplaced cables"),
    "extra cable": ("extra cable", "extra cables"),
    "uneven links": ("pair with uneven links", "pairs with uneven links"),
    "no pattern": ("switch without pattern", "switches without pattern"),
    "other rate": ("link of another rate", "links of another rate"),
    "separate part": ("separate part", "separate parts"),
    "unexpected host": ("unexpected host", "unexpected hosts"),
    "missing host": ("missing host", "missing hosts"),
}
"""Readable name of each kind of anomaly, in singular and plural."""


def headline(fabric: Fabric, routing: str | None = None) -> str:
    """Return one line with the numbers of hosts, switches and cables, and the routing."""
    return f"{fabric.name}: {counts(fabric)}" + (f"; routing {routing}" if routing else "")


def counts(fabric: Fabric) -> str:
    """Return the numbers of a fabric's hosts, switches and cables, as text."""
    cables = plural(len(fabric.cables), "cable")
    return (
        f"{plural(len(fabric.hosts), 'host')}, {plural(len(fabric.switches), 'switch')}, {cables}"
    )


def print_summary(summary: Summary, lines: FileCounts) -> None:
    """Print switch levels, cables between levels, capacity and cabling anomalies."""
    print(headline(summary.fabric))
    print_lines(lines)
    print("\nSwitches")
    for level, count in summary.tree.counts.items():
        print(f"  {level_name(level):<10}{count:>6,}")
    print("\nCables")
    for cables in summary.cables:
        between = f"{level_name(cables.lower)} – {level_name(cables.upper)}"
        rate = RATE.format(cables.rate_bps)
        total = RATE.format(cables.count * cables.rate_bps)
        print(f"  {between:<16}{cables.count:>6,} × {rate} = {total}")
    _print_capacity(summary)
    _print_cabling(summary, MOST_ANOMALIES, "--json")


def print_check(check: FabricCheck, routing: str, lines: FileCounts) -> None:
    """Print the check's findings on routes, cabling and schedule, with suggestions."""
    print(headline(check.fabric, routing))
    print_lines(lines)
    _print_routes(check)
    _print_cabling(check.summary, MOST_LINES, "`daqloom topology show`")
    _print_schedule(check)
    if check.schedule.check.conflicting:
        _print_suggestions(check)


def print_route(fabric: Fabric, hops: Sequence[Hop], routing: str) -> None:
    """Print a line for each node of a route with its input and output port."""
    nodes = fabric.nodes
    ends = f"{nodes[hops[0].node].name} → {nodes[hops[-1].node].name}"
    print(f"{ends}: {plural(len(hops) - 1, 'cable')}; routing {routing}")
    width = max(len("node"), *(len(nodes[hop.node].name) for hop in hops))
    rows = [
        [
            fabric.port_name(End(hop.node, port)) if port else ""
            for port in (hop.in_port, hop.out_port)
        ]
        for hop in hops
    ]
    come, go = (
        max(map(len, column)) for column in zip(("in port", "out port"), *rows, strict=True)
    )
    print(f"\n  {'node':<{width}}  {'in port':>{come}}  {'out port':>{go}}")
    for hop, (port_in, port_out) in zip(hops, rows, strict=True):
        print(f"  {nodes[hop.node].name:<{width}}  {port_in:>{come}}  {port_out:>{go}}".rstrip())


def print_lines(lines: FileCounts) -> None:
    """Print counts of used and ignored lines: for each file, or the sum if there are many files."""
    if len(lines) > MOST_FILES:
        total: Counter[str] = Counter()
        for counts in lines.values():
            total.update(counts)
        lines = {plural(len(lines), "file"): total}
    for name, counts in lines.items():
        is_list = name.endswith((".json", ".toml"))
        unit = ("entry", "entries") if is_list else ("line", "lines")
        print(f"{printable(name)}: {in_words(counts, *unit)}")


def _print_capacity(summary: Summary) -> None:
    print("\nCapacity")
    words = {True: "yes", False: "no", None: "not known" if summary.fabric.hosts else "no hosts"}
    print(f"  full bisection  {words[summary.tree.full_bisection]}")
    print(f"  non-blocking    {words[summary.tree.non_blocking]}")
    for balance in summary.tree.blocking[:MOST_LINES]:
        name = summary.fabric.switches[balance.switch].name
        down, up = (RATE.format(bps) for bps in (balance.down_bps, balance.up_bps))
        print(f"  {name}: {down} from below, {up} to other switches")
    _print_rest(len(summary.tree.blocking))
    if summary.tree.non_blocking and not summary.regular_cabling:
        print(
            "  computed from cable counts; where cabling is irregular, flows may still share a "
            "cable"
        )


def _print_cabling(summary: Summary, most: int, rest: str) -> None:
    """Print the number of anomalies by kind, then each. Missing hosts are grouped by leaf
    switch."""
    found = summary.anomalies
    if not found:
        print("\nCabling: regular")
        return
    counts = Counter(anomaly.kind for anomaly in found)
    kinds = ", ".join(plural(times, *KINDS[kind]) for kind, times in counts.items())
    print(f"\nCabling: {kinds}")
    lines = [anomaly.sentence for anomaly in found if anomaly.kind != "missing host"]
    free: dict[int, list[int]] = defaultdict(list)
    for anomaly in found:
        if anomaly.kind == "missing host":
            free[anomaly.ends[0].node].append(anomaly.ends[0].port)
    lines += [f"{summary.fabric.nodes[leaf].name} {_ports(free[leaf])} no host" for leaf in free]
    for line in lines[:most]:
        print(f"  {line}")
    _print_rest(len(lines), most, rest)


def _ports(ports: list[int]) -> str:
    """port 3 has; ports 3, 5-8 have."""
    runs: list[list[int]] = []
    for port in sorted(ports):
        if runs and port == runs[-1][-1] + 1:
            runs[-1].append(port)
        else:
            runs.append([port])
    listed = ", ".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"port {listed} has" if len(ports) == 1 else f"ports {listed} have"


def _print_routes(check: FabricCheck) -> None:
    lost = check.paths.pairs_lost
    verdict = (
        f"{lost:,} of {check.pairs:,} pairs lost"
        if lost
        else f"all {check.pairs:,} pairs connected"
    )
    loops = sum(defect.kind == "loop" for defect in check.paths.defects)
    circles = check.credit_loops
    blocks = plural(len(circles), "credit loop") if circles else "no credit loop"
    print(f"\nRoutes: {verdict}, {plural(loops, 'loop') if loops else 'no loop'}, {blocks}")
    for circle in circles[:MOST_LINES]:
        print(f"  credit loop: {loop_names(check.fabric, circle)}")
    _print_rest(len(circles))
    if circles:
        print(
            "  when each of these buffers is full, InfiniBand and Ethernet with pause frames block "
            "for good"
        )
    for defect in check.paths.defects[:MOST_LINES]:
        print(f"  {defect.sentence} ({plural(defect.pairs, 'pair')})")
    _print_rest(len(check.paths.defects))


def _print_schedule(check: FabricCheck) -> None:
    given = check.schedule
    shift = given.check
    slots = f"{plural(shift.phases, 'slot')}, {plural(given.dummies, 'dummy', 'dummies')}"
    print(f"\nSchedule: linear shift, {given.what}; {slots}")
    print(f"  phases in conflict    {shift.conflicting} of {shift.phases}")
    worst = f"  most flows on a link  {shift.worst_flows}"
    if shift.conflicting:
        phase = shift.worst_phase
        worst += f", in phase {phase} {_link(check, int(shift.worst_link[phase]))}"
    print(worst)
    if shift.transfers.max(initial=0) > shift.worst_flows:
        phase = shift.slowest_phase
        link = int(shift.slowest_link[phase])
        rate = RATE.format(int(check.paths.wiring.rate_bps[link]))
        print(
            f"  longest phase         {phase}: {shift.transfers[phase]:.4g} transfers by a host's"
        )
        print(f"                        cable long, {_link(check, link)} at {rate}")
    if shift.lost:
        print(f"  flows without route   {shift.lost:,}, in no count")
    print(f"  event rate            {_rate(given)}")
    if not shift.conflicting:
        return
    print("\n  flows on a link       how often, links × phases")
    for flows, count in enumerate(shift.histogram.tolist()):
        if count:
            print(f"  {flows:>15}       {count:,}")
    if shift.links_unused:
        print(f"  not counted           {plural(shift.links_unused, 'link')} without any flow")
    links = check.conflicts()
    up = sum(check.upward(link) for link in links)
    print(f"\n  links in conflict     {up} upwards, {len(links) - up} downwards; most phases first")
    for link in links[:MOST_LINES]:
        phases, flows = int(shift.link_conflicts[link]), int(shift.link_worst[link])
        print(f"  {_link(check, link)}: {plural(phases, 'phase')}, up to {flows} flows")
    _print_rest(len(links))


def _print_suggestions(check: FabricCheck) -> None:
    cleared = any(not suggestion.check.conflicting for suggestion in check.suggestions)
    if not check.suggestions:
        mended = f", nor is network.routing = {MENDED}" if check.tried_mended else ""
        print(f"\nSuggestions: none; no other node order is better{mended}")
    else:
        print(f"\nSuggestions, each checked{'' if cleared else '; none clears all conflicts'}")
    if not cleared and check.summary.tree.full_bisection is False:
        print(
            "  the fabric has no full bisection: a phase in which one half of the hosts sends to "
            "the other shares links"
        )
    for number, suggestion in enumerate(check.suggestions, start=1):
        shift = suggestion.check
        found = "no conflict"
        if shift.conflicting:
            found = f"{shift.conflicting} of {shift.phases} phases in conflict"
        dummies = plural(suggestion.dummies, "dummy", "dummies")
        print(f"  {number}. {suggestion.what}: {found}, {dummies}")
        print(f"     event rate {_rate(suggestion)}")


def _rate(schedule: Schedule) -> str:
    """Return the event rate as a share of the rate without link conflicts and empty slots."""
    if schedule.check.lost:
        return "unknown: some flows have no route"
    share = f"{schedule.rate_share:.1%} of the conflict-free rate"
    if schedule.check.conflicting or schedule.check.transfers.max(initial=0) > 1:
        return f"at most {share}"
    if schedule.dummies:
        share += f": {schedule.built} of {len(schedule.slots)} slots are hosts"
    return share


def _link(check: FabricCheck, link: int) -> str:
    begin, end = check.ends(link)
    nodes, port = check.fabric.nodes, check.fabric.port_name
    return f"{nodes[begin.node].name} port {port(begin)} → {nodes[end.node].name} port {port(end)}"


def _print_rest(count: int, shown: int = MOST_LINES, where: str = "--json") -> None:
    if count > shown:
        print(f"  … and {count - shown} more; {where} has all")
