"""The commands that describe, analyse and simulate a system.

To start quickly (`daqloom analyse` takes half a second), imports are deferred until first use, and
modules of other commands are imported only for these commands.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from daqloom import load
from daqloom.base import lazy
from daqloom.base.words import join_names
from daqloom.cli.app import DESCRIBED, group
from daqloom.cli.console.terminal import (
    check_figures,
    check_folder,
    check_writable,
    note,
    present,
    present_list,
    progress,
    whole_or_stopped,
)
from daqloom.cli.options import (
    Json,
    JsonList,
    Name,
    Quiet,
    Set,
    figures,
    flag,
    load_with,
    option,
)
from daqloom.results.result import Result
from daqloom.scenario import document
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.parts import Parts
from daqloom.system import System

with lazy.imports():
    from rich import console

    from daqloom import scenario as daqloom_scenario
    from daqloom.cli.console import citation, installation, recording
    from daqloom.control.record import simulation
    from daqloom.report.system import demo as system_demo
    from daqloom.report.system import result_figure
    from daqloom.scenario.file import load as file_load
    from daqloom.topology.fabric import links as fabric_links
    from daqloom.topology.shapes import shape


app = group(
    name="daqloom",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ANSWERED = frozenset({"--version", "--cite"})
"""Options that print an answer, without any command."""
FIGURES = (".png", ".pdf", ".svg", ".html")

Figures = Annotated[
    list[Path] | None,
    figures(
        f"Write a figure; the ending sets the format: {', '.join(FIGURES)} (the last for racks)"
    ),
]


def _print_version(requested: bool) -> None:
    if requested:
        print(*installation.lines(), sep="\n")
        raise typer.Exit


def _print_citation(requested: bool) -> None:
    if requested:
        print(citation.citation())
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool,
        flag(
            "Print version, commit and features.",
            "--version",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
    cite: Annotated[
        bool,
        flag(
            "Print the citation: BibTeX and a sentence.",
            "--cite",
            callback=_print_citation,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Describe an event-building network once, then analyse, simulate and measure it.

    How much buffer does a top-of-rack switch need at 12 kHz × 5 MB? How many events does this
    machine build?

    \b
      daqloom analyse atlas-lab
      daqloom simulate atlas-lab
      daqloom measure laptop

    Exit codes: 0 done, 2 bad input, 1 failed while running, 130 interrupted.
    """


@app.command(rich_help_panel=DESCRIBED)
def scenarios(json: JsonList = False) -> None:
    """List the scenarios that come with daqloom."""
    present_list("scenarios", file_load.titles(), json=json)


@app.command(rich_help_panel=DESCRIBED)
def show(scenario: Name, set_: Set = None) -> None:
    """Print a scenario with all defaults.

    The output is a scenario file. Comments at its head list the assumed values: guessed defaults of
    keys that the scenario does not give. Keys that mean nothing after a change are left out, with a
    note on standard error.

    \b
    Examples:
      daqloom show atlas-lab
      daqloom show atlas-lab --set network.switch.tor.model=qfx5120-48y > mine.toml
    """
    shown = load(scenario, set_ or ())
    if left_out := sorted(_set_keys(load(scenario)) - _set_keys(shown)) if set_ else []:
        note(
            f"left out, because they mean nothing with these changes: {join_names(left_out)}; give "
            "what the new keys should have of them"
        )
    print(shown.show(), end="")


def _set_keys(system: System) -> set[str]:
    """Return the keys that a scenario gives, dotted."""
    return set(document.keys(system.scenario.model_dump(mode="json", exclude_unset=True)))


@app.command(rich_help_panel=DESCRIBED)
def analyse(
    scenario: Name,
    set_: Set = None,
    json: Json = False,
    figure: Figures = None,
    quiet: Quiet = False,
) -> None:
    """Evaluate the closed forms, in milliseconds.

    For pull building over TCP in a rack: buffer peak (exact and published), bandwidth-delay
    product, incast rule, overhead. For linear shifting and DAQPIPE over RDMA, on InfiniBand or on
    Ethernet with fixed paths: phases, barriers, conflicts, and the event rate at which each
    resource saturates. Other systems have no closed form.

    Event builders: a multi-fragment packet (MFP) has consecutive fragments of one source, a
    multi-event packet (MEP) the MFPs of all sources; "folded" means that each node has both a
    readout unit and a builder unit.

    \b
    Examples:
      daqloom analyse atlas-lab
      daqloom analyse atlas-lab --set event.size="2 MB" --set transport.overhead=false
      daqloom analyse my-rack.toml --json
      daqloom analyse lhcb-run3-test --set building.barrier=centralised
    """
    drawn = figure or []
    check_figures(drawn, FIGURES)

    system = load(scenario, set_ or ())
    if drawn and Parts.INCAST not in system.scenario.parts:
        raise ScenarioError(
            f"--figure {drawn[0]}: the closed forms of {system.name} have no figure; leave it "
            "out, or use pull building over TCP in a rack, such as atlas-lab"
        )
    result = system.analyse()
    _draw(drawn, system.scenario, result)
    present(result, json=json, quiet=quiet)


def _draw(paths: Sequence[Path], scenario: daqloom_scenario.Scenario, result: Result) -> None:
    for path in paths:
        result_figure.write(path, scenario, result)


@app.command(rich_help_panel=DESCRIBED)
def simulate(
    scenario: Name,
    set_: Set = None,
    seed: Annotated[
        int | None, option("N", "Seed of the random streams, in place of run.seed.")
    ] = None,
    json: Json = False,
    pcap: Annotated[
        list[str] | None,
        option(
            "LINK=FILE", "Record the frames of a link as pcapng for Wireshark; may be repeated."
        ),
    ] = None,
    trace: Annotated[Path | None, option("FILE", "Write a timeline for ui.perfetto.dev.")] = None,
    figure: Figures = None,
    duration: Annotated[
        str | None, option("TIME", 'Simulated time, such as "100 ms", in place of run.duration.')
    ] = None,
    record: Annotated[
        bool, flag("Keep a record of the run for `daqloom runs`, in virtual time.", "--record")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Simulate packet by packet.

    Simulates any building protocol over any network. Results are event rate, latency and
    throughput. Ethernet adds buffer occupancy, drops and retransmissions of TCP and RDMA;
    InfiniBand adds the time without credits. The figure of a rack shows buffer and latency. Other
    figures show the receiver of each sender in each phase, latency and cable load.

    Event builders: a multi-fragment packet (MFP) has consecutive fragments of one source, a
    multi-event packet (MEP) the MFPs of all sources; "folded" means that each node has both a
    readout unit and a builder unit.

    \b
    Examples:
      daqloom simulate small-rack
      daqloom simulate atlas-lab --set network.switch.tor.model=qfx5120-48y --seed 2 --json
      daqloom simulate small-rack --pcap access.0.down=builder.pcapng --trace timeline.json
      daqloom simulate lhcb-10-percent --set building.barrier=none --figure phases.png
    """
    if trace:
        check_writable(trace, "--trace")

    system = load_with(scenario, set_ or (), {"run.seed": seed, "run.duration": duration})
    if pcap and Parts.PULL | Parts.TCP not in system.scenario.parts:
        raise ScenarioError(
            f"--pcap records frames of pull building over TCP, which {system.name} is not; "
            "leave it out, or use a rack such as small-rack"
        )
    if figure:
        check_figures(figure, result_figure.endings(system.scenario))
    kept: dict[str, Any] = {"trace": trace, "pcap": _captures(pcap or [], system.scenario)}
    kept["timeline"] = bool(figure) and not system.scenario.protocol.has_arrivals
    kept["course"] = record
    with progress(f"simulating {system.name}", quiet=quiet) as show:
        result = whole_or_stopped(lambda: system.simulate(**kept, progress=show))
    if record:
        with recording.run_record(system.name, quiet=quiet) as folder:
            if folder:
                simulation.record_simulation(folder, system.scenario, result)
    _draw(figure or (), system.scenario, result)
    present(result, json=json, quiet=quiet)


def _captures(options: list[str], scenario: daqloom_scenario.Scenario) -> dict[str, Path]:
    if not options:
        return {}
    links = [
        link.name for link in fabric_links.link_names(scenario.network, shape.cables(scenario)[0])
    ]
    captures: dict[str, Path] = {}
    for given in options:
        link, equals, file = given.partition("=")
        if not (link and equals and file):
            raise ScenarioError(
                f"--pcap {given}: expected LINK=FILE, such as access.0.down=b0.pcapng"
            )
        if link not in links:
            raise ScenarioError(
                f'--pcap {given}: there is no link "{link}"; the {len(links)} links are '
                f"{', '.join(links[:2])} to {', '.join(links[-2:])}"
            )
        if link in captures:
            raise ScenarioError(f"--pcap {given}: {link} is already recorded")
        if Path(file) in captures.values():
            raise ScenarioError(f"--pcap {given}: {file} is already the file of another link")
        check_writable(Path(file), "--pcap")
        captures[link] = Path(file)
    return captures


@app.command(saved="complete figures stay in the output folder", rich_help_panel=DESCRIBED)
def demo(
    output: Annotated[Path, option("DIR", "Folder for the figures and results.")] = Path(
        "demo-output"
    ),
) -> None:
    """Answer the ATLAS question: how much buffer does a top-of-rack switch need?

    Simulates three switches, builds real events on this machine for two seconds, and writes a page:
    the answer in three sentences, figures, and a table by formula and by simulation.
    """
    check_folder(output, "--output", "figure.png")

    system_demo.run(output, console.Console())
