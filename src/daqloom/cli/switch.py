"""The `daqloom switch` commands."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from daqloom.base import lazy
from daqloom.cli.app import group
from daqloom.cli.console.columns import plain_console
from daqloom.cli.console.terminal import note, plain_failures, print_json, staged_progress
from daqloom.cli.measure import Address, Certificates
from daqloom.cli.options import Json, Name, Quiet, Set, argument, option
from daqloom.scenario.errors import ScenarioError

with lazy.imports():
    from rich import live as rich_live

    from daqloom.cli.console import benchmark as console_benchmark
    from daqloom.cli.console import switch as console_switch
    from daqloom.control.calls import operator
    from daqloom.deployment import scenarios
    from daqloom.machine import lifeline
    from daqloom.scenario import quantities
    from daqloom.scenario.file import load as file_load
    from daqloom.scenario.file import overrides, show
    from daqloom.softswitch import benchmark as mlr
    from daqloom.softswitch import costs as softswitch_costs
    from daqloom.softswitch import document as softswitch_document
    from daqloom.softswitch import dpdk, from_scenario, program, sizes, trials
    from daqloom.softswitch import load as softswitch_load
    from daqloom.softswitch import status as softswitch_status


app = group(
    help="""Run and control the lossless software switch.

    A switch on a server: frames travel between DPDK devices through rings in main memory. Each
    destination that suffers from incast has its own ring, with its own rate. A TOML file describes
    the switch.

    \b
    Examples:
      daqloom switch run switch.toml
      daqloom switch watch
      daqloom switch set 'rings.dcm1.rate="0.5 Gb/s"'
    """,
)

DROPPED = "frames held were dropped"

File = Annotated[str, argument("FILE", "TOML file of the switch, or with --hosts a scenario.")]
Hosts = Annotated[
    str,
    option(
        "NETWORK",
        "FILE is a scenario; its hosts have the addresses of this IP network, from the "
        "first one on.",
    ),
]
Which = Annotated[str, option("NAME", "Name of the software switch, if the scenario has several.")]
Override = Annotated[
    list[str] | None, option("KEY=VALUE", "Override a key of the file; may be repeated.", "--set")
]


@app.command(saved=DROPPED)
def run(
    file: File,
    hosts: Hosts = "",
    switch: Which = "",
    set_: Override = None,
    while_input: Annotated[bool, typer.Option("--while-input", hidden=True)] = False,
    json: Json = False,
) -> None:
    """Run a switch until Ctrl-C, SIGTERM or `daqloom switch stop`.

    Requires DPDK and the rights to its devices, usually those of root. A restart loses all frames,
    learned addresses and counters.

    With --hosts, FILE is a scenario with a software switch. The switch then has a port for each
    cable, whose device --set gives, and the rings and rates of the scenario.

    \b
    Examples:
      daqloom switch run switch.toml --set runs.huge_pages=false
      daqloom switch run rack.toml --hosts 10.0.0.0/16 --set ports.core.device=0000:3b:00.0
    """
    if while_input:
        lifeline.end_with_input(grace_s=lifeline.GRACE_S)
    described = load_switch(file, hosts, switch, set_)
    dpdk.require()

    def on_start(address: str, status: softswitch_status.SwitchStatus) -> None:
        note(
            f"the switch of {len(status.ports)} ports and {len(status.rings)} rings runs, and "
            f"listens at {address}; it begins anew: no frames, learned addresses or counters "
            "are kept from before"
        )
        for sentence in program.warnings(described.control):
            note(sentence)

    with _at_once(), plain_failures(DROPPED):
        _print(program.run(described, on_start), json=json)


@app.command("file")
def file_of(
    scenario: Name,
    hosts: Annotated[str, option("NETWORK", "IP network of the hosts, in the scenario's order.")],
    switch: Which = "",
    set_: Set = None,
) -> None:
    """Print the file of a scenario's software switch, still without devices.

    With --switch, the switch may also have the model "shared-memory": the software switch then has
    the same packet memory, and drops the same packets.

    \b
    Examples:
      daqloom switch file lossless-switch-all-to-all --hosts 10.0.0.0/16 > switch.toml
      daqloom switch file small-rack --set network.switch.tor.model=qfx5120-48y \
          --switch tor --hosts 10.0.0.0/16 > tor.toml
    """
    document = from_scenario.document_of(scenarios.load(scenario, set_ or ()), hosts, switch)
    for port in document["ports"].values():
        port["device"] = ""  # left to the user: `switch check` rejects an empty device
    print(show.document_text(document), end="")


@app.command()
def check(
    file: File, hosts: Hosts = "", switch: Which = "", set_: Override = None, json: Json = False
) -> None:
    """Check the file of a switch, and list the memory it needs.

    \b
    Example:
      daqloom switch check switch.toml
    """
    described = load_switch(file, hosts, switch, set_)
    rings = len(described.rings) + described.classes * len(described.ports)
    taken = {
        "ports": len(described.ports),
        "rings": rings,
        "buffers": sizes.buffers_of(described),
        "memory_bytes": described.runs.memory or sizes.memory_of(described),
    }
    if json:
        print_json({"schema": 1, **taken})
    else:
        memory = quantities.SIZE.format(round(taken["memory_bytes"], -6))
        print(
            f"{file}: {taken['ports']} ports, {rings} rings, {taken['buffers']} packet "
            f"buffers, {memory} of memory"
        )


@app.command()
def status(address: Address = None, certificates: Certificates = None, json: Json = False) -> None:
    """Show ports and rings of a running switch: packets received, queued and dropped."""
    _print(_ask(softswitch_status.Ask(), address, certificates), json=json)


@app.command(saved="the switch goes on")
def watch(address: Address = None, certificates: Certificates = None) -> None:
    """Show rates, depths and drops of a running switch, live; Ctrl-C leaves it."""
    before: Any = None
    with rich_live.Live(auto_refresh=False) as live:
        while True:
            now = _ask(softswitch_status.Ask(), address, certificates)
            live.update(console_switch.live_table(before, now, live.console.width), refresh=True)
            before = now
            time.sleep(1.0)


@app.command("set", saved="nothing has changed")
def set_keys(
    keys: Annotated[
        list[str],
        argument("KEY=VALUE...", "Keys of the switch's file, such as rings.dcm1.packets=8192."),
    ],
    address: Address = None,
    certificates: Certificates = None,
) -> None:
    """Change rings, limits of ports, rules and fixed addresses of a running switch.

    No packet is lost. All keys change between two turns of the switch, or none.

    \b
    Examples:
      daqloom switch set 'rings.dcm1.rate="0.5 Gb/s"' rings.dcm1.packets=8192
      daqloom switch set rules.no-ntp.protocol=udp rules.no-ntp.to_port=123 rules.no-ntp.action=drop
    """
    _change(overrides.parse(keys, softswitch_document.SwitchFile), address, certificates)


@app.command(saved="nothing has changed")
def remove(
    names: Annotated[list[str], argument("NAME...", "Tables or keys, such as rules.no-ntp.")],
    address: Address = None,
    certificates: Certificates = None,
) -> None:
    """Remove rules, fixed addresses, or keys that have a default, of a running switch."""
    _change(dict.fromkeys(names), address, certificates)


@app.command("forget-peaks")
def forget_peaks(address: Address = None, certificates: Certificates = None) -> None:
    """Reset the peak occupancies of the rings of a running switch."""
    _ask(softswitch_status.ForgetPeaks(), address, certificates)


@app.command()
def stop(
    drain: Annotated[
        float, option("S", "Time limit for sending the queued frames.", min=0, max=3600)
    ] = 10.0,
    address: Address = None,
    certificates: Certificates = None,
) -> None:
    """Stop a running switch: it accepts no more frames, sends the queued ones, and ends."""
    _ask(softswitch_status.Stop(drain_s=drain), address, certificates)


@app.command()
def benchmark(
    frame_size: Annotated[
        int, option("BYTES", "Size of frames, check sequence included.", min=64, max=2000)
    ] = 64,
    destinations: Annotated[
        int, option("N", "Destinations, each with a ring.", min=1, max=65_536)
    ] = 144,
    ring_packets: Annotated[
        int, option("N", "Capacity of each ring in packets.", min=1, max=1_000_000)
    ] = 512,
    pace: Annotated[
        str, option("RATE", 'Rate of each ring, such as "0.78 Gb/s"; "0 b/s": no limit.')
    ] = "0 b/s",
    descriptors: Annotated[
        int, option("N", "Descriptors of each port: a power of two.", min=64, max=65_536)
    ] = 512,
    loss: Annotated[
        float, option("RATIO", "Permitted share of lost frames.", min=0, max=0.99)
    ] = 0.0,
    width: Annotated[float, option("RATIO", "Precision of the result.", min=0.001, max=0.5)] = 0.02,
    seconds: Annotated[float, option("S", "Time limit of the search.", min=1, max=3600)] = 60.0,
    soak: Annotated[
        float,
        option(
            "S",
            "Time of a further run at 90 % of the measured rate, in which the rates of all "
            "rings change each second.",
            min=0,
            max=3600,
        ),
    ] = 0.0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure the rate at which the switch forwards without loss on this machine, by MLRsearch.

    One core runs the switch, another one sends frames and counts the returned ones; rings in memory
    replace the network cards between them. A trial is valid if the number of sent frames is within
    a thousandth of the intended one, and is evaluated when the switch is empty. If the system
    preempts the cores for longer than the descriptors can buffer, frames are lost at any rate:
    allow some --loss on such a machine. After preemptions, and when the time is over, the result is
    a lower bound.

    \b
    Examples:
      daqloom switch benchmark
      daqloom switch benchmark --frame-size 1518 --destinations 4096 --json
      daqloom switch benchmark --soak 600
    """
    dpdk.require()
    try:
        pace_bps = int(quantities.RATE.parse(pace))
    except ValueError as error:
        raise ScenarioError(f"--pace {pace[:40]} {error}") from None

    rig = trials.trials(frame_size, destinations, ring_packets, pace_bps, descriptors)
    begin_s = time.monotonic()
    with staged_progress("searching the rate", quiet=quiet) as report:

        def on_trial(trial: mlr.Trial) -> None:
            share = min(1.0, (time.monotonic() - begin_s) / seconds)
            report(share, f"{trial.load_hz / 1e6:.3f} million frames a second")

        found = mlr.search(
            rig.run, frame_size, loss_ratio=loss, seconds=seconds, width=width, on_trial=on_trial
        )
    if soak and found.forwarded_hz:

        def lasts(seconds: float) -> None:
            if not quiet:
                load = mlr.SOAK_SHARE * found.forwarded_hz / 1e6
                note(f"{load:.3f} million frames a second: {seconds:.0f} s of {soak:g} s")

        lasts(0.0)
        found.soak = mlr.soak(rig, found.forwarded_hz, soak, lasts)
    if json:
        print_json(found.document())
    else:
        console_benchmark.print_found(found, frame_size, destinations, loss)


@app.command()
def costs(
    frame_size: Annotated[
        int, option("BYTES", "Size of frames, check sequence included.", min=64, max=2000)
    ] = 64,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure the CPU times of a packet and of a batch, for the simulated switch.

    Measures the time of turns of the switch with 1 to 32 packets. Rings in memory replace network
    cards, and no ring has a rate limit. A line is fitted to the times; its coefficients are
    packet_cost and batch_cost of the switch model "software". Packets in the CPU caches cost less
    than packets in memory, such as those of long rings.

    \b
    Examples:
      daqloom switch costs
      daqloom switch costs --json
    """
    dpdk.require()

    rig = trials.trials(
        frame_size, softswitch_costs.DESTINATIONS, softswitch_costs.RING_PACKETS, 0, 512
    )
    found = {}
    for where, buffers in (
        ("in_caches", softswitch_costs.IN_CACHES),
        ("in_memory", softswitch_costs.IN_MEMORY),
    ):
        if not quiet:
            note(f"timing turns with buffers {where.replace('_', ' ')}")
        found[where] = softswitch_costs.measure(rig.turn_time_s, buffers)
    if json:
        print_json(
            {
                "schema": 1,
                "frame_bytes": frame_size,
                **{where: costs.document() for where, costs in found.items()},
            }
        )
        return
    for where, costs in found.items():
        print(
            f"# buffers {where.replace('_', ' ')}: up to {costs.full_batches_hz / 1e6:.1f} "
            f"million packets a second; a turn without any takes "
            f"{costs.idle_turn_s * 1e9:.0f} ns; "
            f"all turns are within {costs.largest_residual_s * 1e9:.0f} ns of the line\n"
            f'packet_cost = "{costs.packet_s * 1e9:.1f} ns"\n'
            f'batch_cost = "{costs.batch_s * 1e9:.0f} ns"'
        )


@contextmanager
def _at_once() -> Iterator[None]:
    """End the process with the command, without waiting for threads that a peer may block."""
    code: object = 0
    try:
        yield
    except SystemExit as ended:
        code = ended.code
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 1)


def load_switch(
    file: str, hosts: str, switch: str, changes: list[str] | None
) -> softswitch_document.SwitchFile:
    """Return the switch in a file; with `hosts`, the hosts' IP network, `file` is a scenario."""
    if hosts:
        document = from_scenario.document_of(scenarios.load(file), hosts, switch)
        return softswitch_load.build(
            document, changes or (), source=f"the software switch of {file}"
        )
    if switch or file in file_load.presets():
        raise ScenarioError(
            f"{file} is to be a scenario, whose hosts need addresses; give --hosts, such as "
            "10.0.0.0/16"
        )
    return softswitch_load.load(file, changes or ())


def _change(keys: dict[str, Any], address: str | None, certificates: Path | None) -> None:
    answer = _ask(softswitch_status.Change(keys=keys), address, certificates)
    if answer.failure:
        raise ScenarioError(answer.failure)


def _ask(
    request: softswitch_status.Request, address: str | None, certificates: Path | None
) -> softswitch_status.SwitchStatus:
    return softswitch_status.SwitchStatus.model_validate_json(
        operator.ask(request.encode(), address, certificates, softswitch_status.SWITCH)
    )


def _print(status: softswitch_status.SwitchStatus, *, json: bool) -> None:
    if json:
        print(status.model_dump_json(indent=2))
        return
    console = plain_console()
    for table in console_switch.tables(status, console.width):
        console.print(table)
    for sentence in console_switch.sentences(status):
        print(sentence)
