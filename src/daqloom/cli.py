"""The `daqloom` command.

Start-up counts: `daqloom analyse` answers in half a second. What a command needs is imported in it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from daqloom import cli_conclude
from daqloom.cli_compare import compare
from daqloom.cli_data import app as data_app
from daqloom.cli_doctor import doctor
from daqloom.cli_measure import control, measure, unit
from daqloom.cli_options import Json, Name, Set
from daqloom.cli_report import report
from daqloom.cli_study import app as study_app
from daqloom.cli_topology import app as topology_app
from daqloom.console import check_writable, plain_failures, print_result, progress

if TYPE_CHECKING:
    from daqloom.scenario import Scenario

app = typer.Typer(
    name="daqloom",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help keeps the layout of the examples and starts sooner
    context_settings={"help_option_names": ["-h", "--help"]},
)

FIGURES = (".png", ".pdf", ".svg", ".html")

Figure = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help=f"Write a figure; the ending decides: {', '.join(FIGURES)} (the last for racks).",
    ),
]


def _print_version(wanted: bool) -> None:
    if wanted:
        import daqloom

        print(f"daqloom {daqloom.__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print it and exit."
        ),
    ] = False,
) -> None:
    """Describe an event-building network once; analyse it in closed form, simulate it by packet.

    How much buffer does a top-of-rack switch need at 12 kHz × 5 MB?

    \b
      daqloom analyse atlas-lab
      daqloom simulate atlas-lab

    Exit codes: 0 done, 2 bad input, 1 failed while running, 130 interrupted.
    """


@app.command()
def scenarios() -> None:
    """List the scenarios that come with daqloom."""
    with plain_failures():
        from daqloom.scenario import load_system, presets

        names = presets()
        width = max(map(len, names), default=0)
        for name in names:
            print(f"{name:<{width}}  {load_system(name).title}")


@app.command()
def show(scenario: Name, set_: Set = None) -> None:
    """Print a scenario with every default.

    What is printed is a scenario file itself.

    \b
    Examples:
      daqloom show atlas-lab
      daqloom show atlas-lab --set switch.tor.model=qfx5120-48y > mine.toml
    """
    with plain_failures():
        from daqloom.scenario import load_system, to_toml

        print(to_toml(load_system(scenario, set_ or ())), end="")


@app.command()
def analyse(scenario: Name, set_: Set = None, json: Json = False, figure: Figure = None) -> None:
    """Answer in closed form, at once.

    Of a rack: buffer peak (exact and published), bandwidth-delay product, incast rule, overhead.
    Of an InfiniBand fabric: phases, barriers, conflicts, and the rate at which each part is full.

    \b
    Examples:
      daqloom analyse atlas-lab
      daqloom analyse atlas-lab --set event.size="2 MB" --set transport.overhead=false
      daqloom analyse my-rack.toml --json
      daqloom analyse lhcb-run3-test --set shift.barrier=centralised
    """
    with plain_failures():
        if figure:
            check_writable(figure, "--figure", FIGURES)
        from daqloom.scenario import Scenario, ScenarioError, load_system

        system = load_system(scenario, set_ or ())
        if figure and not isinstance(system, Scenario):
            raise ScenarioError(
                f"--figure {figure}: the closed forms of a fabric have none; leave it out, or take "
                "a rack such as atlas-lab"
            )
        result = system.analyse()
        if figure and isinstance(system, Scenario):
            from daqloom.report.result_figure import write

            write(figure, system, result)
        print(result.to_json()) if json else print_result(result)


@app.command()
def simulate(
    scenario: Name,
    set_: Set = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="Seed of the random streams, in place of run.seed."),
    ] = None,
    json: Json = False,
    pcap: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LINK=FILE",
            help="Record the frames of a link as pcapng, for Wireshark; may be repeated.",
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a timeline that ui.perfetto.dev opens."),
    ] = None,
    figure: Figure = None,
) -> None:
    """Simulate packet by packet.

    Event rate, collection latency, buffer occupancy, drops, retransmissions, time-outs. Of an
    InfiniBand fabric, credit by credit: throughput, barriers, waiting for credits; its figure shows
    who sends to whom when, how long writes take, and what each cable carries.

    \b
    Examples:
      daqloom simulate small-rack
      daqloom simulate atlas-lab --set switch.tor.model=qfx5120-48y --seed 2 --json
      daqloom simulate small-rack --pcap access.0.down=builder.pcapng --trace timeline.json
      daqloom simulate lhcb-10-percent --set shift.barrier=none --figure phases.png
    """
    with plain_failures():
        if trace:
            check_writable(trace, "--trace")
        from daqloom.scenario import Scenario, ScenarioError, load_system

        system = load_system(scenario, set_ or ())
        if pcap and not isinstance(system, Scenario):
            raise ScenarioError(
                f"--pcap records Ethernet frames, and {system.name} is an InfiniBand fabric; leave "
                "it out, or take a rack such as small-rack"
            )
        if figure:
            from daqloom.report.result_figure import endings

            check_writable(figure, "--figure", endings(system))
        if seed is not None:
            try:
                system = system.with_overrides({"run.seed": seed})
            except ScenarioError as error:
                raise ScenarioError(f"--seed: {error}") from None
        with progress(f"simulating {system.name}") as show_progress:
            if isinstance(system, Scenario):
                captures = _captures(pcap or [], system)
                result = system.simulate(pcap=captures, trace=trace, progress=show_progress)
            else:
                result = system.simulate(
                    trace=trace, timeline=figure is not None, progress=show_progress
                )
        if figure:
            from daqloom.report.result_figure import write

            write(figure, system, result)
        print(result.to_json()) if json else print_result(result)


def _captures(options: list[str], system: Scenario) -> dict[str, Path]:
    from daqloom.scenario import ScenarioError

    counts = {
        "source": system.sources.count,
        "uplink": system.links.uplink.count,
        "access": system.builders.count,
    }
    captures: dict[str, Path] = {}
    for option in options:
        link, equals, file = option.partition("=")
        if not (link and equals and file):
            raise ScenarioError(
                f"--pcap {option}: expected LINK=FILE, such as access.0.down=b0.pcapng"
            )
        name = re.fullmatch(r"(source|uplink|access)\.([0-9]{1,6})\.(up|down)", link)
        if not name or int(name[2]) >= counts[name[1]]:
            known = ", ".join(f"{kind}.0 to {kind}.{n - 1}" for kind, n in counts.items())
            raise ScenarioError(
                f'--pcap {option}: there is no link "{link}"; links are {known}, with .up towards '
                "the core or .down away from it"
            )
        if link in captures:
            raise ScenarioError(f"--pcap {option}: {link} is recorded already")
        if Path(file) in captures.values():
            raise ScenarioError(f"--pcap {option}: {file} is another link's file already")
        check_writable(Path(file), "--pcap")
        captures[link] = Path(file)
    return captures


@app.command()
def demo(
    output: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the figures and results.")
    ] = Path("demo-output"),
) -> None:
    """Answer the ATLAS question.

    How much buffer does a top-of-rack switch need? One table with both methods and three
    switches, and figures of it.
    """
    with plain_failures("figures that are complete stay in the output folder"):
        check_writable(output / "figure.png", "--output")
        from rich.console import Console

        from daqloom.report.demo import run

        run(output, Console())


for conclusion in (cli_conclude.levels, cli_conclude.fit, cli_conclude.compare):
    study_app.command()(conclusion)
app.add_typer(study_app, name="study")
app.add_typer(topology_app, name="topology")
app.add_typer(data_app, name="data")
app.command()(measure)
app.command()(doctor)
app.add_typer(control, name="control")
app.command()(unit)
app.command()(compare)
app.command()(report)
