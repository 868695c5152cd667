"""The commands of real runs: `daqloom measure`, `daqloom control`, `daqloom unit`."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer

from daqloom import load
from daqloom.base import lazy, log
from daqloom.base.words import reason_of
from daqloom.cli.app import Group, group
from daqloom.cli.console.columns import plain_console, print_table
from daqloom.cli.console.terminal import (
    BAD_INPUT,
    check_figures,
    check_writable,
    fail,
    present,
    staged_progress,
    whole_or_stopped,
)
from daqloom.cli.options import (
    Json,
    Name,
    Quiet,
    Set,
    argument,
    figures,
    flag,
    load_with,
    option,
    with_options,
)
from daqloom.results.errors import MeasureError
from daqloom.results.metrics import for_people, with_unit
from daqloom.scenario.errors import ScenarioError

with lazy.imports():
    from rich import live as rich_live

    from daqloom.cli.console import full_screen, recording, run_console
    from daqloom.cli.console import run as console_run
    from daqloom.control import run_log, unit_program
    from daqloom.control import status as control_status
    from daqloom.control.calls import certificates as control_certificates
    from daqloom.control.protocol import states
    from daqloom.measure import check, configure
    from daqloom.measure import dry_run as measure_dry_run
    from daqloom.measure import run as measure_run
    from daqloom.report.system import result_figure


HELP = ("-h", "--help")
UP = "up"
"""Name of the hidden command that `daqloom control SCENARIO` runs."""
STAYS = "the run goes on"


class _Commands(Group):
    """Command group in which a first argument that is no command is a scenario, or an option of the
    command that runs one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_option = bool(args) and args[0].startswith("-") and args[0] not in HELP
        return super().parse_args(ctx, [UP, *args] if is_option else args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        known = not args or args[0] in self.commands or args[0].startswith("-")
        return super().resolve_command(ctx, args if known else [UP, *args])


control = group(
    cls=_Commands,
    help="""Run an event builder and control it.

    `daqloom control SCENARIO` starts the units, shows their status and accepts commands: configure,
    start, stop, reset N, include N, exclude N, status, exit. The commands below do the same from
    another terminal.

    \b
    Examples:
      daqloom control lhcb-10-percent
      daqloom control status
      daqloom control configure --set event.rate="20 kHz" --wait
      daqloom control exclude 3 5
      daqloom control reset 3 --address 127.0.0.1:41537
      daqloom control certificates certs --host daq1.site.org
      daqloom control stop --address daq1.site.org:41537 --certificates certs
    """,
)

Transition = Literal["configure", "start", "stop"]
Address = Annotated[
    str | None,
    option(
        "HOST:PORT",
        "Address of the run control; by default that of your only run control on this machine.",
    ),
]
Certificates = Annotated[
    Path | None,
    option(
        "DIR",
        "Folder from `daqloom control certificates`; required unless the address is loopback.",
    ),
]
LogFormat = Annotated[
    log.Format,
    option(
        "FORMAT",
        "Format of the log: text, json (objects, one a line, on standard error) or journal "
        "(systemd's).",
        "--log",
        envvar=log.VARIABLE,
    ),
]
LogDir = Annotated[Path | None, option("DIR", "Folder for the output of the units, one file each.")]


def measure(
    scenario: Name,
    set_: Set = None,
    duration: Annotated[
        str | None, option("TIME", 'Wall-clock time, warm-up included, such as "10 s".')
    ] = None,
    events: Annotated[
        int | None,
        option("N", "End after this number of events, unless the duration is over before."),
    ] = None,
    transport: Annotated[
        str | None, option("NAME", 'In place of measure.transport, such as "tcp".')
    ] = None,
    lab: Annotated[
        bool,
        flag(
            "Make the scenario's network on this machine, over TCP, in place of measure.lab: a "
            "network namespace for each host, links with their rates, switches with their buffers.",
            "--lab",
        ),
    ] = False,
    connections: Annotated[
        bool,
        flag(
            "Also show the kernel's counters of TCP connections, those with most "
            "retransmissions first; with --json those of all connections.",
            "--connections",
        ),
    ] = False,
    dry_run: Annotated[bool, flag("Print the commands without running any.", "--dry-run")] = False,
    json: Json = False,
    trace: Annotated[Path | None, option("FILE", "Write a timeline for ui.perfetto.dev.")] = None,
    arrivals: Annotated[
        Path | None,
        option(
            "FILE",
            "Pull building: write the arrival times of events at the event manager, as a file "
            "for event.trace.",
        ),
    ] = None,
    figure: Annotated[
        list[Path] | None,
        figures(
            "Write a figure: typical phases of linear shifting; with other protocols or injected "
            "faults the course of the run; .png, .pdf or .svg"
        ),
    ] = None,
    log_dir: LogDir = None,
    seed: Annotated[
        int | None, option("N", "Seed of the generated sizes, in place of run.seed.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Build events with real processes, and measure.

    Starts a process for each node, moves the scenario's data over shared memory or a network, and
    returns the same metrics as `simulate`. `[measure]` in the scenario sets how units start (on
    this machine, by ssh, under Slurm); `daqloom show` prints its keys. A unit that fails is
    removed, counted, and restarted.

    A multi-fragment packet (MFP) has consecutive fragments of one source, a multi-event packet
    (MEP) the MFPs of all sources, which one builder unit builds at once. Nodes are folded if each
    has both a readout unit and a builder unit.

    \b
    Examples:
      daqloom measure laptop
      daqloom measure lhcb-10-percent --set readout.units=4
      daqloom measure my.toml --duration "10 s" --transport libfabric:tcp --json
      daqloom measure laptop --trace timeline.json
      daqloom measure lab-rack
      daqloom measure lab-rack --arrivals arrivals.txt
      daqloom measure my-rack.toml --lab
      daqloom measure my-rack.toml --set measure.device=$PWD/tor.toml --dry-run
      daqloom measure my.toml --set measure.launch=ssh --set 'measure.hosts=["a", "b"]'
    """
    if trace:
        check_writable(trace, "--trace")
    if arrivals:
        check_writable(arrivals, "--arrivals")
    if figure:
        check_figures(figure, result_figure.FABRIC_ENDINGS)

    # The transport is checked alone first, so that an error names its option. It is applied before
    # --set, which may set keys that only this transport has.
    chosen = {"measure.transport": transport or ("tcp" if lab else None)}
    chosen["measure.lab"] = "namespaces" if lab else None
    with_options(load(scenario), chosen)
    carried = [f"{key}={value}" for key, value in chosen.items() if value]
    given = {"run.seed": seed, "measure.duration": duration, "measure.events": events}
    system = load_with(scenario, [*carried, *(set_ or ())], given)
    check.check_measurable(system.scenario)
    if connections and system.scenario.measure.transport != "tcp":
        raise ScenarioError(
            '--connections needs measure.transport = "tcp", whose sockets have counters; it is '
            f'"{system.scenario.measure.transport}"'
        )
    if dry_run:
        print("\n".join(measure_dry_run.dry_run(system.scenario)))
        return
    shows_phases = system.scenario.protocol.has_phases and not system.scenario.faults.injected
    what = f"measuring {system.name}"
    with (
        recording.run_record(system.name, quiet=quiet) as folder,
        staged_progress(what, quiet=quiet, at_once="the units start") as report,
    ):
        result = whole_or_stopped(
            lambda: system.measure(
                log_dir=log_dir,
                trace=trace,
                arrivals=arrivals,
                timeline=bool(figure) and shows_phases,
                progress=lambda how: report(how.share, _rates(how), how.phase),
                on_event=None if quiet else _only_losses,
                record=folder,
            )
        )
    for path in figure or ():
        result_figure.write(path, system.scenario, result)
    if connections and not json:
        _print_connections(result.series.get("connections", {}))
    shown = [name for name in result.series if connections or name != "connections"]
    present(result, json=json, quiet=quiet, series=shown)


MOST_CONNECTIONS = 40
"""Maximum rows of the table of connections."""


def _print_connections(columns: Mapping[str, Any]) -> None:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    rows.sort(key=lambda row: -row["segments_retransmitted"])
    head = ("from", "to", "sent", "retransmitted", "timeouts", "round trip", "least", "delivery")
    shown = [
        [
            str(row["from"]),
            str(row["to"]),
            with_unit(row["sent_bytes"], "B"),
            str(row["segments_retransmitted"]),
            str(row["retransmission_timeouts"]),
            with_unit(row["round_trip_s"], "s"),
            with_unit(row["least_round_trip_s"], "s"),
            with_unit(float(f"{row['delivery_rate_bps']:.3g}"), "bit/s"),
        ]
        for row in rows[:MOST_CONNECTIONS]
    ]
    print_table(head, shown)
    if len(rows) > MOST_CONNECTIONS:
        print(f"and {len(rows) - MOST_CONNECTIONS} more connections")


def _rates(how: measure_run.Progress) -> str:
    units = f"{how.members} of {how.units} units {how.phase}"
    if not how.events_hz:
        return units
    rate = for_people("event_rate_hz", how.events_hz)
    return f"{units}, {rate}, {for_people('throughput_bps', how.throughput_bps)}"


def _only_losses(event: run_log.RunEvent) -> None:
    if event.about in (
        run_log.About.UNIT,
        run_log.About.FAULT,
    ):  # a failure of the run is printed at its end
        print(f"daqloom: {event.text}", file=sys.stderr)


Wait = Annotated[
    bool, flag("Return when the state is reached; exit code 1 if it is not.", "--wait")
]
Timeout = Annotated[
    float, option("S", "Longest time that --wait waits.", "--timeout", min=0, max=86_400)
]


@control.command(UP, hidden=True)
def up(
    scenario: Annotated[
        str | None,
        argument("SCENARIO", "A name from `daqloom scenarios`, or the path of a TOML file."),
    ] = None,
    set_: Set = None,
    folder: Annotated[
        Path | None,
        option(
            "DIR",
            "Folder of the run, a new one by default; a run there whose run control has ended is "
            "continued.",
        ),
    ] = None,
    resume: Annotated[
        bool,
        flag(
            "Continue the newest run of the scenario whose run control has ended, if there is one.",
            "--resume",
        ),
    ] = False,
    start: Annotated[bool, flag("Build events as soon as all units are ready.", "--start")] = False,
    log_dir: LogDir = None,
    log_format: LogFormat = "text",
    hooks: Annotated[
        Path | None,
        option("FILE", "TOML file of hooks: programs that run at transitions.", "--hooks"),
    ] = None,
    run_numbers: Annotated[
        Path | None,
        option("FILE", "File with the last run number; by default one for all your runs."),
    ] = None,
) -> None:
    """Start the units of a scenario and control them from this terminal.

    A terminal shows a live table; commands are typed below it: configure, start, stop, reset N,
    include N, exclude N, status, exit. Without a terminal, commands are read from standard input,
    one a line, and events are printed; the end of the input has no effect.
    """
    _start_log(log_format)
    if scenario is None and folder is None:
        fail("give a scenario, or --folder with the run of an ended run control", BAD_INPUT)
    run_console.keep_up(
        check.check_measurable(load(scenario, set_ or ()).scenario) if scenario else None,
        log_dir=log_dir,
        start=start,
        folder=folder,
        resume=resume,
        hooks=hooks,
        run_numbers=run_numbers,
    )


@control.command(saved=STAYS)
def status(
    address: Address = None,
    certificates: Certificates = None,
    json: Annotated[bool, flag("Print the status as one JSON object.", "--json")] = False,
    watch: Annotated[bool, flag("Follow the run, as `control watch` does.", "--watch")] = False,
) -> None:
    """Print the status of a run and of its units, those with trouble first.

    Rates, latencies and shares of waiting are those of the last five seconds.
    """
    if watch and json:
        fail("--watch shows a table; without it, --json prints the status once", BAD_INPUT)
    if watch:
        _follow(address, certificates)
    _steer({"command": "status"}, address, certificates, json=json)


TRANSITIONS: dict[Transition, str] = {
    "start": "Build events: ready → running.",
    "stop": "Finish events in flight: running → ready.",
}


@control.command("configure", saved=STAYS)
def configure_(
    set_: Annotated[
        list[str] | None,
        option("KEY=VALUE", "New value of a key of the scenario; may be repeated.", "--set"),
    ] = None,
    address: Address = None,
    certificates: Certificates = None,
    wait: Wait = False,
    timeout: Timeout = 60.0,
) -> None:
    """Connect the units: not_ready → ready. After an error this tries again.

    With --set the units get new values first, without new processes: such as another rate, packing,
    buffer or barrier. A key that needs new processes is refused.
    """
    request = {"command": "configure", "settings": tuple(set_ or ())}
    _steer(request, address, certificates, wait_s=timeout if wait else None)


def _transition(command: Transition) -> Callable[..., None]:
    def steer(
        address: Address = None,
        certificates: Certificates = None,
        wait: Wait = False,
        timeout: Timeout = 60.0,
    ) -> None:
        _steer({"command": command}, address, certificates, wait_s=timeout if wait else None)

    return steer


for _command, _help in TRANSITIONS.items():
    control.command(_command, saved=STAYS, help=_help)(_transition(_command))


@control.command(saved=STAYS)
def reset(
    unit: Annotated[int, argument("N", "The unit, from 0.")],
    address: Address = None,
    certificates: Certificates = None,
) -> None:
    """Restart or reset one unit in any state; the others continue."""
    _steer({"command": "reset", "unit": unit}, address, certificates)


Units = Annotated[list[int], argument("N…", "The units, from 0.", min=0, max=8191)]
Sources = Annotated[
    bool, flag("Only the readout units of these units; they still build.", "--sources")
]


def _selection(command: str) -> Callable[..., None]:
    def steer(
        units: Units,
        sources: Sources = False,
        address: Address = None,
        certificates: Certificates = None,
    ) -> None:
        fields = {"command": command, "units": tuple(units), "sources": sources}
        _steer(fields, address, certificates)

    return steer


for _selects, _help in {
    "exclude": "Leave units out of the run until they are included; the others continue.",
    "include": "Let excluded units take part again.",
}.items():
    control.command(_selects, saved=STAYS, help=_help)(_selection(_selects))


@control.command("exit", saved=STAYS)
def exit_(address: Address = None, certificates: Certificates = None) -> None:
    """End a run and all its processes."""
    _steer({"command": "exit"}, address, certificates)


@control.command(saved=STAYS)
def watch(address: Address = None, certificates: Certificates = None) -> None:
    """Show a live table of a run, units with trouble first; Ctrl-C leaves it."""
    _follow(address, certificates)


def _follow(address: str | None, certificates: Path | None) -> NoReturn:
    request = control_status.Request(command="status")
    with rich_live.Live(auto_refresh=False) as live:
        while True:
            now = control_status.steer(request, address, certificates)
            live.update(console_run.live_table(now, live.console.size), refresh=True)
            if now.phase is states.Phase.ENDED:
                sys.exit(0)
            time.sleep(0.5)


@control.command(saved=STAYS)
def top(address: Address = None, certificates: Certificates = None) -> None:
    """Follow a run in a full-screen table: sort by any column, see the log.

    Keys: left and right choose the column to sort by, r reverses, t sorts by trouble, l shows the
    log, q leaves.
    """
    full_screen.Top(
        lambda: control_status.steer(
            control_status.Request(command="status"), address, certificates
        )
    ).run()


@control.command("certificates")
def certificates_(
    folder: Annotated[Path, argument("DIR", "Folder to make for the certificates.")],
    host: Annotated[
        list[str] | None,
        option("NAME", "Name or address of the machine of the run control; may be repeated."),
    ] = None,
) -> None:
    """Make certificates for a run over several machines.

    Makes an authority, a certificate for the run control and its operators, and one for units. Copy
    ca.pem, unit.pem and unit.key to the machines of units. The holder of control.key can control
    the run.

    \b
    Example:
      daqloom control certificates certs --host daq1.site.org --host 10.0.0.1
      daqloom control my.toml --set measure.bind=0.0.0.0 --set measure.certificates=certs
    """
    control_certificates.make_certificates(folder, host or [socket.gethostname()])
    for path in sorted(folder.iterdir()):
        print(path)


def _steer(
    fields: Mapping[str, Any],
    address: str | None,
    certificates: Path | None,
    *,
    json: bool = False,
    wait_s: float | None = None,
) -> None:
    if (unit := fields.get("unit")) is not None and not 0 <= unit < 8192:
        raise MeasureError(f"there is no unit {unit}; units are numbered from 0")
    request = control_status.Request(**fields)
    if wait_s is None:
        answer = control_status.steer(request, address, certificates)
    else:
        answer = control_status.steer_until(request, address, certificates, wait_s)
    if request.command != "status" and answer.refusal:
        raise MeasureError(answer.refusal)
    if json:
        print(answer.model_dump_json(indent=2))
    else:
        _print_status(answer)


def _print_status(answer: control_status.Status) -> None:
    console = plain_console()
    for line in (console_run.headline(answer), *console_run.overview(answer)):
        console.print(line, markup=False)
    console.print(console_run.unit_table(answer, console.width))


def _start_log(kind: log.Format) -> None:
    try:
        log.start_log(kind)
    except OSError as error:
        raise MeasureError(
            f"--log {kind}: {log.JOURNAL}: {reason_of(error)}; expected systemd's journal; use json"
        ) from None


def unit(
    control: Annotated[
        str, option("HOST:PORT", "Address of the run control, host:port.", "--control")
    ],
    unit: Annotated[
        int | None,
        option(
            "N",
            "Number of the unit; by default the number of srun's task, or any free one.",
            "--unit",
            min=0,
            max=8191,
        ),
    ] = None,
    certificates: Certificates = None,
    token_file: Annotated[
        Path | None,
        option(
            "FILE",
            "File with the run's token; by default the environment variable DAQLOOM_TOKEN, or "
            "the first line of standard input.",
        ),
    ] = None,
    patience: Annotated[
        float,
        option("S", "Time without the run control after which the unit ends.", min=1),
    ] = 10.0,
    log_format: LogFormat = "text",
    parent: Annotated[int | None, typer.Option(hidden=True)] = None,
    address_file: Annotated[Path | None, typer.Option("--address-file", hidden=True)] = None,
    while_input: Annotated[bool, typer.Option("--while-input", hidden=True)] = False,
    stay: Annotated[bool, typer.Option("--stay", hidden=True)] = False,
) -> None:
    """Run one unit. Usually the run control starts units.

    `daqloom control SCENARIO --set measure.launch=by-hand` prints the command that starts a unit by
    hand.

    \b
    Example:
      srun --ntasks=8 daqloom unit --control daq1:41537 --certificates certs --token-file token
    """
    _start_log(log_format)
    unit_program.run_unit(
        control,
        configure.live_node,
        unit=unit,
        certificates=certificates,
        token_file=token_file,
        parent=parent,
        while_input=while_input,
        patience_s=patience,
        address_file=address_file,
        stays=stay,
    )
