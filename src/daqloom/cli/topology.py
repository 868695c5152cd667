"""The `daqloom topology` commands."""

from __future__ import annotations

import json as json_
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from daqloom.base import lazy
from daqloom.base.line_counts import in_words
from daqloom.base.output import write_text
from daqloom.base.words import did_you_mean, plural
from daqloom.cli.app import group
from daqloom.cli.console.terminal import check_writable, note, present_list, progress
from daqloom.cli.fabric_options import NamedFabric, takes_fabric
from daqloom.cli.measure import Address, Certificates
from daqloom.cli.options import Json, JsonList, Name, Quiet, Set, argument, flag, option
from daqloom.cli.switch import File, Hosts, Override, Which, load_switch
from daqloom.topology import TopologyError

with lazy.imports():
    from daqloom.cli import fabric_schedule
    from daqloom.cli.console import fabric as console_fabric
    from daqloom.cli.console import follow as console_follow
    from daqloom.deployment import check as deployment_check
    from daqloom.deployment import scenarios
    from daqloom.report import matplotlib_renderer
    from daqloom.report.system import fabric_figure
    from daqloom.scenario import dumps, quantities
    from daqloom.scenario.file import show as file_show
    from daqloom.scenario.schema import switches
    from daqloom.softswitch import controllers
    from daqloom.topology.fabric import fabric as fabric_fabric
    from daqloom.topology.fabric import graphviz
    from daqloom.topology.fabric import summary as fabric_summary
    from daqloom.topology.formats import as_json, lft_text, load, switch_buffers
    from daqloom.topology.routing import by_name
    from daqloom.topology.routing import routes as routing_routes
    from daqloom.topology.schedule import slots


app = group(help="InfiniBand and Ethernet fabrics: cabling, routes, and conflicts of schedules.")

DRAWINGS = (".dot", ".json", ".png", ".pdf", ".svg")

Routing = Annotated[
    str | None,
    option(
        "NAME",
        "Routing: imported (tables of the dump; the default where there are any), d-mod-k, or "
        "minimal with a rule for ties: minimal:balanced, minimal:lowest-port, minimal:modulo; of "
        "`check` also mended: tables and an order of builder units that go together.",
    ),
]


@app.command("list")
def list_(json: JsonList = False) -> None:
    """List the fabrics that come with daqloom."""
    fabrics = {name: load.load_cabling(path)[0] for name, path in dumps.shipped_fabrics().items()}
    if json:
        present_list(
            "fabrics", {n: console_fabric.counts(each) for n, each in fabrics.items()}, json=True
        )
    else:
        print(*map(console_fabric.headline, fabrics.values()), sep="\n")


@app.command()
@takes_fabric
def show(given: NamedFabric, json: Json = False) -> None:
    """Print the cabling: switches by level, rates, capacity, irregularities.

    Full bisection: any half of the hosts can send to the other half at full rate. Non-blocking:
    each switch has the same capacity upwards and downwards. Both consider cables only; `check`
    follows routes. Missing hosts, swapped cables and dead links are listed by switch and port.

    \b
    Examples:
      daqloom topology show dumps/
      daqloom topology show lldp/ --rate "400 Gb/s"
      daqloom topology show cluster64 --json
      daqloom topology show clos --leaves 18 --spines 10 --links 2 --hosts-per-leaf 20
    """
    summary = fabric_summary.summarise(given.fabric)
    if json:
        print(json_.dumps(summary.record() | {"lines": given.lines}))
    else:
        console_fabric.print_summary(summary, given.lines)


@app.command()
@takes_fabric
def draw(
    given: NamedFabric,
    output: Annotated[
        Path | None,
        option(
            "FILE",
            f"Output file; its ending sets the format: {', '.join(DRAWINGS)}. By default DOT "
            "is printed.",
            "-o",
            "--output",
        ),
    ] = None,
    each_host: Annotated[
        bool, flag("Draw each host instead of the number of hosts per leaf.", "--each-host")
    ] = False,
) -> None:
    """Draw the fabric with irregular cables in colour, or write it for Graphviz or as JSON.

    The JSON can be edited, and read instead of dumps.

    \b
    Examples:
      daqloom topology draw cluster64 -o cluster64.png
      daqloom topology draw dumps/ | dot -Tsvg > fabric.svg
      daqloom topology draw dumps/ -o fabric.json && daqloom topology check fabric.json
    """
    if output is None:
        print(graphviz.to_dot(given.fabric, each_host=each_host), end="")
        return
    check_writable(output, "--output", DRAWINGS)
    ending = output.suffix.lower()
    if ending in (".dot", ".json"):
        fabric = given.fabric
        text = (
            as_json.to_json(fabric)
            if ending == ".json"
            else graphviz.to_dot(fabric, each_host=each_host)
        )
        write_text(output, text)
    else:
        matplotlib_renderer.save(fabric_figure.figure(given.fabric, each_host=each_host), output)
    print(output)


@app.command()
@takes_fabric
def check(
    given: NamedFabric,
    routing: Routing = None,
    order: Annotated[
        str | None,
        option(
            "ORDER",
            "Node order, which assigns hosts to slots: natural (hosts by name; the default, "
            "except for scenarios, which have their own order), shuffle:SEED, or a file with "
            "one host a line and `dummy` for a dummy node.",
        ),
    ] = None,
    dummies: Annotated[
        bool,
        flag(
            "Add dummy nodes, so that all leaves have the same ports in the schedule.", "--dummies"
        ),
    ] = False,
    output: Annotated[
        Path | None,
        option("FILE", "Write the best node order found to a file, for --order.", "-o", "--output"),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check routes, cabling and schedule: lost pairs, loops, swapped cables, shared links.

    In phase n of linear shift, slot i sends to slot i + n. If transfers share a link, other node
    orders, dummy nodes (empty slots) and forwarding tables mended for the schedule are tried, and
    better ones are listed. A scenario is checked with its units, dummies and routing.

    \b
    Examples:
      daqloom topology check dumps/
      daqloom topology check dumps/ --order shuffle:1 -o better.txt
      daqloom topology check dumps/ --order better.txt
      daqloom topology check lhcb-run3
      daqloom topology check clos --leaves 18 --spines 10 --links 2 --hosts-per-leaf 20
    """
    if output:
        check_writable(output, "--output")
    plan = fabric_schedule.fabric_plan(given, routing, order, dummies=dummies)
    for sentence in plan.notes:
        note(sentence)
    with progress("checking the schedule", quiet=quiet) as show_progress:
        found = deployment_check.check_fabric(
            given.fabric, plan.routes, plan.readouts, plan.what, show_progress, plan.builders,
            plan.units, mends=plan.mends,
        )  # fmt: skip
    name = plan.routing
    if given.path and name == by_name.IMPORTED:
        found = replace(found, paths=load.with_lines(given.path, given.fabric, found.paths))
    if output:
        orders = [each for each in found.suggestions if not each.routing]
        best = orders[0] if orders else found.schedule
        write_text(output, slots.order_text(given.fabric, best.slots))
    if json:
        print(json_.dumps(found.record() | {"routing": name, "lines": given.lines}))
    else:
        console_fabric.print_check(found, name, given.lines)


@app.command()
@takes_fabric
def route(
    given: NamedFabric,
    source: Annotated[str, argument("FROM", "A host's name.")],
    destination: Annotated[str, argument("TO", "A host's name.")],
    routing: Routing = None,
    json: Json = False,
) -> None:
    """Print the path from one host to another: switches and ports.

    \b
    Examples:
      daqloom topology route dumps/ H00-00 H05-07
      daqloom topology route dumps/ H00-00 H05-07 --routing d-mod-k
    """
    fabric = given.fabric
    ends = _host(fabric, source), _host(fabric, destination)
    name, routes = given.routes(routing)
    hops = routing_routes.route(fabric, routes, *ends)
    if json:
        record = {
            "schema": 1,
            "fabric": fabric.name,
            "routing": name,
            "hops": [
                {
                    "node": fabric.nodes[hop.node].name,
                    "in_port": hop.in_port or None,
                    "out_port": hop.out_port or None,
                }
                for hop in hops
            ],
        }
        print(json_.dumps(record))
    else:
        console_fabric.print_route(fabric, hops, name)


def _host(fabric: fabric_fabric.Fabric, name: str) -> int:
    known = {host.name: place for place, host in enumerate(fabric.hosts)}
    if name not in known:
        hint = did_you_mean(name, known, "`draw --each-host` prints all names")
        raise TopologyError(f'there is no host "{name[:80]}" in {fabric.name}; {hint}')
    return known[name]


@app.command()
def follow(
    scenario: Name,
    log: Annotated[Path, argument("LOG", "OpenSM's log; its messages need opensm -D 0x0f.")],
    set_: Set = None,
    mend: Annotated[
        bool, flag("Give each mended schedule to a run of the scenario, for its next epoch.")
    ] = False,
    tables: Annotated[
        Path | None,
        option("FILE", "Write the tables of each mended schedule, for opensm -R file --lfts_file."),
    ] = None,
    once: Annotated[bool, flag("End at the end of the log, instead of following it.")] = False,
    address: Address = None,
    certificates: Certificates = None,
    json: Json = False,
) -> None:
    """Follow OpenSM's log: links that go down or up, what they cost, and the mended schedule.

    Prints for each change the conflicts of linear shift and an upper bound of its throughput, with
    the tables of OpenSM's sweep and with mended tables and order (--json: one object a line).

    \b
    Example:
      daqloom topology follow mine.toml /var/log/opensm.log --mend --tables mended.lft
    """
    if tables:
        check_writable(tables, "--tables")
    console_follow.follow(
        scenarios.load(scenario, set_ or ()), log, mend=mend, tables=tables, once=once,
        address=address, certificates=certificates, json=json,
    )  # fmt: skip


@app.command("write-tables")
@takes_fabric
def write_tables(
    given: NamedFabric,
    output: Annotated[Path, option("FILE", "Write to a file.", "-o", "--output")],
    routing: Routing = None,
) -> None:
    """Write forwarding tables that OpenSM loads: opensm -R file --lfts_file FILE.

    They need an InfiniBand fabric with known GUIDs and LIDs, as in dumps of ibnetdiscover.

    \b
    Example:
      daqloom topology write-tables lhcb --routing mended -o tables.lft
    """
    check_writable(output, "--output")
    plan = fabric_schedule.fabric_plan(given, routing, None, dummies=False)
    text = lft_text.lft_text(given.fabric, plan.routes)
    for sentence in plan.notes:
        note(sentence)
    if missing := int((plan.routes.ports == 0).sum()):
        note(f"{plural(missing, 'route is', 'routes are')} missing: OpenSM drops such packets")
    write_text(output, text)
    print(output)


@app.command()
def buffers(
    files: Annotated[
        list[Path],
        argument(
            "FILE",
            "config_db.json of SONiC, or the output of Junos' `show class-of-service "
            "shared-buffer`, and its configuration as another FILE.",
        ),
    ],
    name: Annotated[
        str, option("NAME", "Switch of the table: core, tor, leaf or spine.", "--switch")
    ] = "tor",
    ports: Annotated[
        int | None, option("N", "Number of ports with a reserved part.", min=1, max=10_000)
    ] = None,
    cell_size: Annotated[
        str | None,
        option("SIZE", 'Size of a cell, such as "254 B"; "0 B" counts bytes.', "--cell-size"),
    ] = None,
    alpha: Annotated[
        float | None, option("X", "Junos: alpha where no file has a threshold.", min=1e-6, max=1e6)
    ] = None,
    queue: Annotated[
        int, option("N", "SONiC: queue of each port that carries the traffic.", min=0, max=63)
    ] = 0,
    profile: Annotated[
        str, option("NAME", "SONiC: its buffer profile, where ports have different ones.")
    ] = "",
    json: Json = False,
) -> None:
    """Print the packet buffers of a real switch as a table [network.switch.NAME] of a scenario.

    Reads the egress settings: the pool or partition of a queue, its reserved part, and the dynamic
    threshold. SONiC's dynamic_th n is alpha = 2^n, Junos' dynamic-threshold n is 2^(n - 7). Options
    supply values that the files do not contain.

    \b
    Examples:
      daqloom topology buffers config_db.json --ports 33 --cell-size "254 B"
      daqloom topology buffers shared-buffer.txt junos.conf --ports 56 --cell-size "256 B"
    """
    if name not in switches.LEVELS:
        raise TopologyError(f"--switch {name[:40]}: expected one of {', '.join(switches.LEVELS)}")
    try:
        cell = None if cell_size is None else round(quantities.SIZE.parse(cell_size))
    except ValueError as error:
        raise TopologyError(f"--cell-size {cell_size} {error}") from None
    found = switch_buffers.read_buffers(
        files, switch_buffers.BufferChoice(ports, cell, alpha, queue, profile)
    )
    for file, counts in found.counts.items():
        note(f"{file}: {in_words(counts, found.unit)}")
    if json:
        print(json_.dumps({"schema": 1, "from": found.origin, "switch": found.table()}))
    else:
        table = {"network": {"switch": {name: found.table()}}}
        print(f"# {found.origin}", file_show.document_text(table), sep="\n", end="")


@app.command(saved="what was written before stays")
def configure(
    file: File,
    hosts: Hosts = "",
    switch: Which = "",
    set_: Override = None,
    bridge: Annotated[str, option("NAME", "Bridge of Open vSwitch to configure.")] = "br0",
    datapath: Annotated[
        Literal["system", "netdev"],
        option("KIND", "system (the kernel's) or netdev (in user space)."),
    ] = "system",
    database: Annotated[
        str, option("SOCKET", "Database of Open vSwitch, such as unix:/run/openvswitch/db.sock.")
    ] = "",
    folder: Annotated[
        str, option("DIR", "Folder of Open vSwitch's sockets, such as /run/openvswitch.")
    ] = "",
    dry_run: Annotated[bool, flag("Print the changes without writing any.", "--dry-run")] = False,
) -> None:
    """Configure an Open vSwitch like a software switch: bridge, ports, queues, flows.

    FILE is that of a switch, or with --hosts a scenario with a software switch. Each ring with a
    rate becomes a queue with that rate (linux-htb), and its matches become flows. The capacity of a
    queue is set by Linux (ip link set DEV txqueuelen N). An earlier configuration of the same
    bridge is replaced. In user space Open vSwitch does not use the queues of interfaces. Requires
    the package daqloom-sdn.

    \b
    Examples:
      daqloom topology configure switch.toml --bridge daq0 --dry-run
      daqloom topology configure rack.toml --hosts 10.0.0.0/16 --set ports.core.device=eth1
    """
    described = load_switch(file, hosts, switch, set_)
    target = controllers.controller_type("openvswitch", "topology configure")(
        bridge, database, folder
    )
    if dry_run:
        print(*target.commands(described, datapath), sep="\n")
    else:
        target.write(described, datapath)
