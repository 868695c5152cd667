"""The commands of real runs: `daqloom measure`, `daqloom control`, `daqloom unit`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from daqloom.cli_options import Json, Name, Set
from daqloom.console import check_writable, plain_failures, print_result, spoken
from daqloom.metrics import for_people

if TYPE_CHECKING:
    from daqloom.measure.outputs import RunEvent
    from daqloom.measure.run import Progress
    from daqloom.measure.status import Status

UP = "up"
"""What `daqloom control SCENARIO` is inside."""


class _Commands(TyperGroup):
    """Whatever names none of its commands is a scenario."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        known = not args or args[0] in self.commands or args[0].startswith("-")
        return super().resolve_command(ctx, args if known else [UP, *args])


control = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="""Keep an event builder up, and steer it.

    `daqloom control SCENARIO` starts the units, shows how they are and takes commands: configure,
    start, stop, reset N, status, exit. From another terminal the commands below do the same.

    \b
    Examples:
      daqloom control lhcb-10-percent
      daqloom control status
      daqloom control reset 3 --address 127.0.0.1:41537
      daqloom control certificates certs --host daq1.site.org
      daqloom control stop --address daq1.site.org:41537 --certificates certs
    """,
)

Address = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", help="Of the run control; by default your only one on this machine."
    ),
]
Certificates = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder of `daqloom control certificates`: off loopback."),
]
LogDir = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Keep what the units print here, a file each."),
]


def measure(
    scenario: Name,
    set_: Set = None,
    duration: Annotated[
        str | None,
        typer.Option(metavar="TIME", help='Real time, warm-up included, such as "10 s".'),
    ] = None,
    events: Annotated[
        int | None, typer.Option(metavar="N", help="End after so many events, if that is sooner.")
    ] = None,
    transport: Annotated[
        str | None,
        typer.Option(metavar="NAME", help='"shm", or "libfabric:PROVIDER": see `fi_info -l`.'),
    ] = None,
    json: Json = False,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a timeline that ui.perfetto.dev opens."),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw the last phases: .png, .pdf or .svg. Of linear shifting.",
        ),
    ] = None,
    log_dir: LogDir = None,
) -> None:
    """Build events for real.

    Starts a process for each node, moves the scenario's data over shared memory or a network, and
    gives the record that `simulate` gives. `[measure]` of the scenario says how: on this machine,
    by ssh, under Slurm; `daqloom show` prints its keys. A unit that dies is left out, counted, and
    brought back.

    \b
    Examples:
      daqloom measure laptop
      daqloom measure lhcb-10-percent --set nodes.count=4
      daqloom measure my.toml --duration "10 s" --transport libfabric:tcp --json
      daqloom measure laptop --trace timeline.json
      daqloom measure my.toml --set measure.launch=ssh --set 'measure.hosts=["a", "b"]'
    """
    with plain_failures():
        if trace:
            check_writable(trace, "--trace")
        if figure:
            from daqloom.report.result_figure import FABRIC_ENDINGS

            check_writable(figure, "--figure", FABRIC_ENDINGS)
        from daqloom.measure.run import StoppedError, of_a_fabric, with_options
        from daqloom.measure.run import measure as run
        from daqloom.scenario import load_system

        system = with_options(
            of_a_fabric(load_system(scenario, set_ or ())),
            duration=duration,
            events=events,
            transport=transport,
        )
        try:
            with spoken(f"measuring {system.name}") as say:
                result = run(
                    system,
                    log_dir=log_dir,
                    trace=trace,
                    timeline=figure is not None,
                    progress=lambda how: say(how.share, _rates(how)),
                    on_event=_only_losses,
                )
        except StoppedError:
            raise KeyboardInterrupt from None
        if figure:
            from daqloom.report.result_figure import write

            write(figure, system, result)
        print(result.to_json()) if json else print_result(result)


def _rates(how: Progress) -> str:
    rate = for_people("event_rate_hz", how.events_hz)
    throughput = for_people("throughput_bps", how.throughput_bps)
    return f"{how.members} of {how.units} units {how.phase}, {rate}, {throughput}"


def _only_losses(event: RunEvent) -> None:
    # Why the whole run fails is said at its end.
    if event.tells_of_trouble and not event.text.startswith("error"):
        print(f"daqloom: {event.text}", file=sys.stderr)


@control.command(UP, hidden=True)
def up(
    scenario: Name,
    set_: Set = None,
    start: Annotated[
        bool, typer.Option("--start", help="Build events as soon as all units are ready.")
    ] = False,
    log_dir: LogDir = None,
) -> None:
    """Start the units of a scenario and steer them from here.

    A terminal shows a live table; commands are typed below it: configure, start, stop, reset N,
    status, exit. Without a terminal, commands are read from standard input, a line each, and what
    happens is printed; the end of the input changes nothing.
    """
    with plain_failures():
        from daqloom.measure.run import of_a_fabric
        from daqloom.report.run_console import keep_up
        from daqloom.scenario import load_system

        keep_up(of_a_fabric(load_system(scenario, set_ or ())), log_dir=log_dir, start=start)


@control.command()
def status(
    address: Address = None,
    certificates: Certificates = None,
    json: Annotated[bool, typer.Option("--json", help="Print it as one JSON object.")] = False,
) -> None:
    """Print how a run and its units are."""
    _steer("status", address, certificates, json=json)


@control.command()
def configure(address: Address = None, certificates: Certificates = None) -> None:
    """Connect the units: not_ready → ready. After an error it tries anew."""
    _steer("configure", address, certificates)


@control.command()
def start(address: Address = None, certificates: Certificates = None) -> None:
    """Build events: ready → running."""
    _steer("start", address, certificates)


@control.command()
def stop(address: Address = None, certificates: Certificates = None) -> None:
    """Finish what is under way, and be ready for the next start."""
    _steer("stop", address, certificates)


@control.command()
def reset(
    unit: Annotated[int, typer.Argument(metavar="N", help="The unit, from 0.")],
    address: Address = None,
    certificates: Certificates = None,
) -> None:
    """Bring a single unit back, whatever has become of it; the others go on."""
    _steer("reset", address, certificates, unit)


@control.command("exit")
def exit_(address: Address = None, certificates: Certificates = None) -> None:
    """End a run and all its processes."""
    _steer("exit", address, certificates)


@control.command()
def watch(address: Address = None, certificates: Certificates = None) -> None:
    """Show a live table of a run; Ctrl-C leaves it."""
    import time

    with plain_failures("the run goes on"):
        from rich.live import Live

        from daqloom.measure.states import Phase
        from daqloom.measure.status import Request
        from daqloom.measure.steer import steer
        from daqloom.report.run_table import live_table

        with Live(auto_refresh=False) as live:
            while True:
                now = steer(Request(command="status"), address, certificates)
                live.update(live_table(now), refresh=True)
                if now.phase is Phase.ENDED:
                    return
                time.sleep(0.5)


@control.command("certificates")
def certificates_(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder.")],
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A name or address of the run control's machine; may be repeated."
        ),
    ] = None,
) -> None:
    """Make what a run needs to be reached from other machines.

    An authority, a certificate for the run control and its operators, one for units. Copy ca.pem,
    unit.pem and unit.key to the machines of units; whoever has control.key can steer the run.

    \b
    Example:
      daqloom control certificates certs --host daq1.site.org --host 10.0.0.1
      daqloom control my.toml --set measure.bind=0.0.0.0 --set measure.certificates=certs
    """
    import socket

    with plain_failures():
        from daqloom.measure.certificates import make_certificates

        make_certificates(folder, host or [socket.gethostname()])
        for path in sorted(folder.iterdir()):
            print(path)


def _steer(
    command: Literal["status", "configure", "start", "stop", "reset", "exit"],
    address: str | None,
    certificates: Path | None,
    unit: int | None = None,
    *,
    json: bool = False,
) -> None:
    with plain_failures():
        from daqloom.measure import MeasureError
        from daqloom.measure.status import Request
        from daqloom.measure.steer import steer

        if unit is not None and not 0 <= unit < 8192:
            raise MeasureError(f"there is no unit {unit}; units count from 0")
        told = steer(Request(command=command, unit=unit), address, certificates)
        if json:
            print(told.model_dump_json(indent=2))
        else:
            _print_status(told)


def _print_status(told: Status) -> None:
    from rich.console import Console

    from daqloom.report.run_table import headline, unit_table

    console = Console(highlight=False)
    console.print(headline(told), markup=False)
    console.print(unit_table(told))


def unit(
    control: Annotated[
        str, typer.Option("--control", metavar="HOST:PORT", help="Where the run control listens.")
    ],
    unit: Annotated[
        int | None,
        typer.Option(
            "--unit",
            metavar="N",
            min=0,
            max=8191,
            help="Its number; by default what srun gives it, or any that is free.",
        ),
    ] = None,
    certificates: Certificates = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Holds the run's token; by default DAQLOOM_TOKEN, or the first line of the input.",
        ),
    ] = None,
    patience: Annotated[
        float,
        typer.Option(metavar="S", min=1, help="Ends when the run control is gone for so long."),
    ] = 10.0,
    parent: Annotated[int | None, typer.Option(hidden=True)] = None,
    while_input: Annotated[bool, typer.Option("--while-input", hidden=True)] = False,
) -> None:
    """Be one unit of a run: usually the run control starts it.

    By hand, `daqloom control SCENARIO --set measure.launch=by-hand` prints the command for it.

    \b
    Example:
      srun --ntasks=8 daqloom unit --control daq1:41537 --certificates certs --token-file token
    """
    with plain_failures("the unit has ended"):
        from daqloom.measure.node import live_node
        from daqloom.measure.unit_program import run_unit

        run_unit(
            control,
            live_node,
            unit=unit,
            certificates=certificates,
            token_file=token_file,
            parent=parent,
            while_input=while_input,
            patience_s=patience,
        )
