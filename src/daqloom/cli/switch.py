"""The `daqloom switch` commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from daqloom.cli.app import group
from daqloom.cli.console import note, plain_failures, print_json
from daqloom.cli.measure import Address, Certificates
from daqloom.cli.options import Json, argument, option

if TYPE_CHECKING:
    from daqloom.softswitch.status import Request, SwitchStatus

app = group(
    help="""Run the lossless software switch and steer it.

    A switch on a server: frames go between the devices of DPDK through rings in main memory, one
    for each destination that suffers from incast, at a pace for each. A TOML file describes it.

    \b
    Examples:
      daqloom switch run switch.toml
      daqloom switch watch
      daqloom switch set 'rings.dcm1.rate="0.5 Gb/s"'
    """,
)

File = Annotated[Path, argument("FILE", "TOML file of the switch.")]
Override = Annotated[
    list[str] | None, option("KEY=VALUE", "Override a key of the file; may be repeated.", "--set")
]


@app.command()
def run(file: File, set_: Override = None, json: Json = False) -> None:
    """Run a switch until Ctrl-C, SIGTERM or `daqloom switch stop`.

    Needs DPDK and the rights to its devices, mostly those of root. A restarted switch begins
    anew: it keeps no frames, learned addresses or counters.

    \b
    Example:
      daqloom switch run switch.toml --set runs.huge_pages=false
    """
    with plain_failures("frames held were dropped"):
        from daqloom.softswitch.load import load

        switch = load(file, set_ or ())
        running = _needs_dpdk()

        def on_start(address: str, status: SwitchStatus) -> None:
            note(
                f"the switch of {len(status.ports)} ports and {len(status.rings)} rings runs, and "
                f"listens at {address}; it begins anew: no frames, learned addresses or counters "
                "are kept from before"
            )

        _print(running.run(switch, on_start), json=json)


@app.command()
def check(file: File, set_: Override = None, json: Json = False) -> None:
    """Check the file of a switch, and say what it would take.

    \b
    Example:
      daqloom switch check switch.toml
    """
    with plain_failures():
        from daqloom.scenario.quantities import SIZE
        from daqloom.softswitch.load import load
        from daqloom.softswitch.sizes import buffers_of, memory_of

        switch = load(file, set_ or ())
        rings = len(switch.rings) + switch.classes * len(switch.ports)
        taken = {
            "ports": len(switch.ports),
            "rings": rings,
            "buffers": buffers_of(switch),
            "memory_bytes": switch.runs.memory or memory_of(switch),
        }
        if json:
            print_json({"schema": 1, **taken})
        else:
            memory = SIZE.format(round(taken["memory_bytes"], -6))
            print(
                f"{file}: {taken['ports']} ports, {rings} rings, {taken['buffers']} packet "
                f"buffers, {memory} of memory"
            )


@app.command()
def status(address: Address = None, certificates: Certificates = None, json: Json = False) -> None:
    """Show ports and rings of a running switch: what came, what is held, what was dropped."""
    with plain_failures():
        from daqloom.softswitch.status import Ask

        _print(_ask(Ask(), address, certificates), json=json)


@app.command()
def watch(address: Address = None, certificates: Certificates = None) -> None:
    """Show rates, depths and drops of a running switch, live; Ctrl-C leaves it."""
    import time

    with plain_failures("the switch goes on"):
        from rich.live import Live

        from daqloom.cli.switch_table import live_table
        from daqloom.softswitch.status import Ask

        before: Any = None
        with Live(auto_refresh=False) as live:
            while True:
                now = _ask(Ask(), address, certificates)
                live.update(live_table(before, now, live.console.width), refresh=True)
                before = now
                time.sleep(1.0)


@app.command("set")
def set_keys(
    keys: Annotated[
        list[str],
        argument("KEY=VALUE...", "Keys of the switch's file, such as rings.dcm1.packets=8192."),
    ],
    address: Address = None,
    certificates: Certificates = None,
) -> None:
    """Change rates, sizes and matches of rings, rules and fixed addresses of a running switch.

    No packet is lost by it. All keys change between two turns of the switch, or none does.

    \b
    Examples:
      daqloom switch set 'rings.dcm1.rate="0.5 Gb/s"' rings.dcm1.packets=8192
      daqloom switch set rules.no-ntp.protocol=udp rules.no-ntp.to_port=123 rules.no-ntp.action=drop
    """
    with plain_failures("nothing has changed"):
        from daqloom.scenario.overrides import parse
        from daqloom.softswitch.document import SwitchFile

        _change(parse(keys, SwitchFile), address, certificates)


@app.command()
def remove(
    names: Annotated[list[str], argument("NAME...", "Tables or keys, such as rules.no-ntp.")],
    address: Address = None,
    certificates: Certificates = None,
) -> None:
    """Remove rules, fixed addresses, or keys that have a default, of a running switch."""
    with plain_failures("nothing has changed"):
        _change(dict.fromkeys(names), address, certificates)


@app.command()
def stop(
    drain: Annotated[
        float, option("S", "How long it may take to send what it holds.", min=0, max=3600)
    ] = 10.0,
    address: Address = None,
    certificates: Certificates = None,
) -> None:
    """Stop a running switch: it takes no more frames, sends those that it holds, and ends."""
    with plain_failures():
        from daqloom.softswitch.status import Stop

        _ask(Stop(drain_s=drain), address, certificates)


def _needs_dpdk() -> Any:
    """The program of the switch, where daqloom was built with DPDK."""
    from daqloom.measure import MeasureError

    try:
        from daqloom.softswitch import program
    except ImportError as error:
        raise MeasureError(
            f"daqloom was built without DPDK ({error}); install it (Debian and Ubuntu: apt-get "
            "install libdpdk-dev) and install daqloom again"
        ) from None
    return program


def _change(keys: dict[str, Any], address: str | None, certificates: Path | None) -> None:
    from daqloom.scenario.errors import ScenarioError
    from daqloom.softswitch.status import Change

    told = _ask(Change(keys=keys), address, certificates)
    if told.failure:
        raise ScenarioError(told.failure)


def _ask(request: Request, address: str | None, certificates: Path | None) -> SwitchStatus:
    from daqloom.measure.operator import ask
    from daqloom.softswitch.status import SWITCH, SwitchStatus

    return SwitchStatus.model_validate_json(ask(request.encode(), address, certificates, SWITCH))


def _print(status: SwitchStatus, *, json: bool) -> None:
    if json:
        print(status.model_dump_json(indent=2))
        return
    from rich.console import Console

    from daqloom.cli.switch_table import tables
    from daqloom.columns import width_of

    console = Console(highlight=False)
    for table in tables(status, width_of(console)):
        console.print(table)
