"""The `daqloom faults` commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from daqloom.base import lazy
from daqloom.base.line_counts import MALFORMED, in_words
from daqloom.base.output import write_text
from daqloom.base.words import plural, printable
from daqloom.cli import options
from daqloom.cli.app import group
from daqloom.cli.console.terminal import (
    check_figures,
    check_writable,
    note,
    print_json,
    progress,
)
from daqloom.cli.options import Json, Quiet, argument, figures, flag, option
from daqloom.faults import FaultsError

with lazy.imports():
    from daqloom.cli import fabric_options
    from daqloom.cli.console import cost as console_cost
    from daqloom.cli.console import fabric as console_fabric
    from daqloom.cli.console import faults, study
    from daqloom.deployment import scenarios
    from daqloom.faults.costs import loss, loss_record
    from daqloom.faults.costs import network as faults_network
    from daqloom.faults.logs import change, opensm_log, read, table_log
    from daqloom.faults.statistics import dataset, failure, summary
    from daqloom.faults.statistics import draw as faults_draw
    from daqloom.faults.statistics import errors as faults_errors
    from daqloom.faults.statistics import generate as faults_generate
    from daqloom.faults.statistics import links as faults_links
    from daqloom.faults.statistics import periods as faults_periods
    from daqloom.report.faults import cost_figure, failure_figure
    from daqloom.scenario.file import show as file_show
    from daqloom.study.run import cable_failures, runner
    from daqloom.topology.shapes import shape


app = group(
    help="Failures of links: statistics of a site's logs, the loss that they cause, "
    "scenarios in which links fail as in a log, and generated logs."
)

DRAWINGS = (".png", ".pdf", ".svg", ".html")


Test = Annotated[
    list[str] | None,
    option(
        "BEGIN/END",
        "Test period, whose failures do not count, such as "
        "2024-03-04T08:00/2024-03-04T18:00; may be repeated.",
    ),
]
Tests = Annotated[Path | None, option("FILE", "File with test periods, one a line.", "--tests")]
Logs = Annotated[
    list[Path],
    option("FILE", "Log of failures, as `daqloom faults log` reads it; may be repeated."),
]
Seed = Annotated[int, option("N", "Seed of the draws.", min=0, max=2**63 - 1)]
Gap = Annotated[
    str, option("TIME", "Longest time between two failures of a link that count as one.")
]
Year = Annotated[
    int | None,
    option(
        "YEAR",
        "Year in which logs without years begin (default: the year of the file's last change).",
        min=1970,
        max=9999,
    ),
]
Dates = Annotated[
    str,
    option("ORDER", "Order of day and month in dates such as 02/03/2024: day-first, month-first."),
]
Figures = Annotated[
    list[Path] | None,
    figures(f"Write a figure; the ending sets the format: {', '.join(DRAWINGS)}"),
]


@app.command()
def log(
    files: Annotated[
        list[Path],
        argument(
            "FILE...",
            "Logs, .gz or not: OpenSM's, syslog and `show logging` of switches and hosts, "
            "`dmesg -T`, tables (time, port, state), and counters as ibqueryerrors and perfquery "
            "print them.",
        ),
    ],
    network: Annotated[
        str | None,
        option(
            "NETWORK",
            "Network of the ports, in which both ends of a cable are one link: a folder or "
            "file of dumps, a scenario, or a name from `daqloom topology list`.",
        ),
    ] = None,
    test: Test = None,
    tests: Tests = None,
    gap: Gap = "60 s",
    time_out: Annotated[
        list[str] | None,
        option(
            "TIME",
            "Report the share of failures that last longer; may be repeated (default: 1 s, 10 "
            "s, 1 min, 10 min, 1 h).",
            "--time-out",
        ),
    ] = None,
    year: Year = None,
    dates: Dates = "",
    figure: Figures = None,
    parquet: Annotated[Path | None, option("FILE", "Write all failures as a table.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Count failures of links, their durations and the failing links, in three ways.

    The three ways: all failures; failures outside test periods; and these with successive failures
    of a flapping link merged into one. Logs of counters are shown as a table. Used, ignored and
    malformed lines are counted; a log in an unknown format is refused.

    \b
    Examples:
      daqloom faults log opensm.log --network dumps/ --figure failures.png
      daqloom faults log switch*.log.gz --gap "5 min" --time-out "30 s"
      daqloom faults log march.csv --tests tests.txt --network lhcb --json
    """
    check_figures(figure or (), DRAWINGS)
    if parquet:
        check_writable(parquet, "--parquet", (".parquet",))
    periods = _periods(test or [], tests)
    gap_s = _seconds("--gap", gap)
    time_outs_s = [_seconds("--time-out", each) for each in time_out or ()] or summary.TIME_OUTS_S
    fabric = fabric_options.fabric_of(network) if network else None
    logs = _read(files, year, dates, quiet)
    links = faults_links.Links(fabric, logs.cables, logs.names)
    history = failure.failures_of(logs, links)
    _check_ports(logs, links)
    kinds = summary.variants(history, periods, gap_s, len(links.names))
    errors = faults_errors.errors_by_link(logs.counters, links)
    for path in figure or ():
        failure_figure.write(path, kinds, links.names)
    if parquet:
        dataset.write_parquet(parquet, kinds)
    if json:
        record: dict[str, Any] = {"schema": 1, "lines": dict(logs.lines)}
        record["unpaired"] = dict(history.unpaired)
        record["begin_s"], record["end_s"] = history.observed
        record["variants"] = {
            name.replace(" ", "_"): each.record(time_outs_s) for name, each in kinds.items()
        }
        record["errors"] = [each.record() for each in errors]
        print_json(record)
    else:
        if not logs.has_only_counters:
            faults.print_failures(kinds, time_outs_s)
            print()
        if change.COUNTERS in logs.formats:
            faults.print_counters(errors)
            print()
        console_fabric.print_lines(fabric.lines if fabric else {})
        print(in_words(logs.lines))
    if not quiet:
        _note_omissions(logs, history, links)


@app.command(saved=options.IN_STORE)
def cost(
    scenario: options.Name,
    log: Logs,
    test: Test = None,
    tests: Tests = None,
    gap: Gap = "60 s",
    year: Year = None,
    dates: Dates = "",
    set_: options.Set = None,
    failures: Annotated[
        str | None,
        option(
            "K,...",
            "Numbers of broken cables to simulate (default: those of 1, 3 and 5 that the logs "
            "reach).",
        ),
    ] = None,
    draws: Annotated[
        int,
        option(
            "N",
            "Number of random draws of the broken cables, for each number of them.",
            min=1,
            max=1000,
        ),
    ] = 3,
    own_only: Annotated[
        bool,
        flag(
            "Simulate the scenario only as it is, without other building rules and tables.",
            "--as-it-is",
        ),
    ] = False,
    repair: Annotated[
        list[str] | None,
        option(
            "TIME", "Estimate the loss if every failure were repaired within TIME; may be repeated."
        ),
    ] = None,
    sweep: Annotated[
        str | None,
        option(
            "TIME",
            "Time until the tables avoid a failed cable (default: 0.35 ms for each host, "
            "OpenSM's minimum).",
        ),
    ] = None,
    seed: Annotated[int, option("N", "Seed of the intervals.", min=0, max=2**63 - 1)] = 1,
    figure: Figures = None,
    store: options.Store = options.STORE,
    workers: options.Workers = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Estimate the data that an event builder loses in a month by failures of links, and the effect
    of remedies.

    The logs give the time with each number of cables down at once. The scenario is simulated with
    these numbers of broken cables; a failed host link loses the units behind it. The remedies are
    other building rules, mended tables, faster repairs, and the worst links without failures.
    Results are kept in the store; the same command continues after an interruption.

    \b
    Examples:
      daqloom faults generate lhcb-10-percent -o month.csv
      daqloom faults cost lhcb-10-percent --log month.csv --tests month.tests.txt
      daqloom faults cost mine.toml --log opensm.log --failures 1,2,4,8 --figure cost.html
    """
    check_figures(figure or (), DRAWINGS)
    periods = _periods(test or [], tests)
    gap_s = _seconds("--gap", gap)
    repairs_s = [_seconds("--repair", each) for each in repair or ()]
    sweep_s = None if sweep is None else _seconds("--sweep", sweep)
    given = scenarios.load(scenario, set_ or ())
    network = faults_network.network_of(given)
    logs = _read(log, year, dates, quiet)
    found, month = _merge(logs, network.links, periods, gap_s, quiet)
    most = loss.most_at_once(month, network)
    numbers = _numbers(failures, network) if failures else cable_failures.usual_numbers(most)
    planned = cable_failures.broken_study(given, numbers, draws, others=not own_only)
    with study.computation(planned.study, store, workers, quiet=quiet) as (done, opened):
        outcomes = runner.replay(planned.study, opened)
        throughputs, missing = planned.throughputs(outcomes, dict(done.failures))
    lost = loss.cost(month, network, throughputs, repairs_s=repairs_s, sweep_s=sweep_s, seed=seed)
    for path in figure or ():
        cost_figure.write(path, given.name, lost)
    sentences = [*planned.notes, *missing, *loss_record.notes(lost)]
    if json:
        print_json(
            {
                "schema": 1,
                "scenario": given.name,
                "scenario_hash": given.hash(),
                "lines": dict(logs.lines),
                "unpaired": dict(found.unpaired),
                **loss_record.record(lost),
                "notes": sentences,
            }
        )
    else:
        console_cost.print_cost(lost)
        for sentence in sentences:
            print(f"note: {sentence}")


@app.command()
def generate(
    network: Annotated[
        str,
        argument(
            "NETWORK", "Network whose links fail: a folder or file of dumps, a scenario, or a name."
        ),
    ],
    output: Annotated[Path, option("FILE", "Table to write.", "-o", "--output")],
    seed: Seed = 1,
    days: Annotated[int, option("N", "Length of the log.", min=1, max=3660)] = 31,
    failures: Annotated[
        int, option("N", "Failures outside test periods.", min=0, max=1_000_000)
    ] = 1384,
    in_tests: Annotated[
        int, option("N", "Failures in test periods.", "--in-tests", min=0, max=1_000_000)
    ] = 549,
) -> None:
    """Write a generated log of failures, whose true values are known, and a file of its test
    periods.

    The default numbers of failures are those of LHCb's network in March 2024; differences between
    links, flapping and repair times are assumed. The test periods are in a file whose name ends in
    .tests.txt.

    \b
    Examples:
      daqloom faults generate lhcb -o month.csv
      daqloom faults log month.csv --tests month.tests.txt --network lhcb
    """
    check_writable(output, "--output", (".csv",))
    truth = faults_generate.Truth(days=days, failures=failures, in_tests=in_tests)
    truth = faults_generate.clip_tests(truth)
    drawn = faults_generate.generate(
        faults_links.Links(fabric_options.fabric_of(network)).names, truth, seed
    )
    periods = output.with_suffix(".tests.txt")
    faults_generate.write_table(output, drawn)
    faults_generate.write_periods(periods, truth.periods)
    print(f"{output}: {len(drawn)} failures in {days} days; {periods}: test periods")


@app.command()
def draw(
    scenario: options.Name,
    log: Logs,
    output: Annotated[Path, option("FILE", "Scenario to write.", "-o", "--output")],
    compress: Annotated[
        float,
        option(
            "FACTOR",
            "Seconds of the log per simulated second, such as 1e6.",
            "--compress",
        ),
    ],
    span: Annotated[
        str | None, option("TIME", "Time in which links fail (default: run.duration).")
    ] = None,
    seed: Seed = 1,
    test: Test = None,
    tests: Tests = None,
    gap: Gap = "60 s",
    year: Year = None,
    dates: Dates = "",
    set_: options.Set = None,
    quiet: Quiet = False,
) -> None:
    """Write a scenario in which links fail as in a log, with time compressed.

    Uses the failures outside test periods, with those of a flapping link as one. Times between
    failures are drawn from a distribution fitted to the log; links and durations are those of the
    log.

    \b
    Examples:
      daqloom faults generate lhcb-10-percent -o month.csv
      daqloom faults draw lhcb-10-percent --log month.csv --tests month.tests.txt \\
          --compress 1e6 -o failing.toml --set transport.retry_timeout="2 ms"
      daqloom simulate failing.toml --figure failing.png
    """
    check_writable(output, "--output", (".toml",))
    # Overrides of `faults` are applied later, together with the drawn faults.
    given = scenarios.load(
        scenario, [each for each in set_ or () if not each.startswith("faults.")]
    )
    fabric = shape.cable_network(given).fabric
    links = faults_links.Links(fabric)
    span_s = given.run.duration if span is None else _seconds("--span", span)
    periods = _periods(test or [], tests)
    logs = _read(log, year, dates, quiet)
    _, month = _merge(logs, links, periods, _seconds("--gap", gap), quiet)
    drawn = faults_draw.draw(month, span_s=span_s, compress=_factor(compress), seed=seed)
    ends = {name: fabric.end_name(cable.a) for name, cable in links.cables.items()}
    keys = [f'{key}="{value}"' for key, value in faults_draw.injection(drawn, ends).items()]
    write_text(output, file_show.to_toml(scenarios.load(scenario, [*(set_ or ()), *keys])))
    law = faults_draw.law(month).name
    print(f"{output}: {plural(len(drawn), 'failure')}, {law} times between them")


def _factor(compress: float) -> float:
    """Return the factor of --compress. Raises FaultsError if out of range."""
    if 1e-6 <= compress <= 1e15:
        return compress
    raise FaultsError(f"--compress {compress:g}: expected a number from 1e-6 to 1e15")


def _read(files: list[Path], year: int | None, dates: str, quiet: bool) -> change.LogContent:
    """Read logs, with progress. Raises FaultsError."""
    if dates not in ("", table_log.DAY_FIRST, table_log.MONTH_FIRST):
        raise FaultsError(
            f"--dates {dates[:80]}: expected {table_log.DAY_FIRST} or {table_log.MONTH_FIRST}"
        )
    with progress("reading logs", quiet=quiet) as show:
        return read.read_logs(files, year, lambda done, size: show(done / max(1, size)), dates)


def _merge(
    logs: change.LogContent,
    links: faults_links.Links,
    periods: list[failure.Period],
    gap_s: float,
    quiet: bool,
) -> tuple[failure.FailureHistory, summary.Variant]:
    """Return all failures, and those outside test periods with the failures of a flapping link
    merged into one. Notes report unusable lines. Raises FaultsError for logs without link changes,
    and for logs of another network."""
    if logs.has_only_counters:
        raise FaultsError(
            "the logs have counters only, which have no times; give a log of links that go down "
            "and come up"
        )
    found = failure.failures_of(logs, links)
    _check_ports(logs, links, least=0.5)
    if not quiet:
        _note_omissions(logs, found, links)
    return found, summary.variants(found, periods, gap_s, len(links.names))[summary.MERGED]


def _check_ports(logs: change.LogContent, links: faults_links.Links, least: float = 0.0) -> None:
    """Raise FaultsError if the network has none of the ports in the logs, or less than the share
    `least` of them."""
    ports = {each.port: links.name(each.port) for each in logs.changes}
    ports |= {each.port: links.name(each.port) for each in logs.outages}
    ports |= {each.port: links.name(each.port) for each in logs.counters}
    known = sum(link is not None for link in ports.values())
    if not links.names or not ports or (known and known >= least * len(ports)):
        return
    first = next(port for port, link in ports.items() if link is None)
    share = f"only {known:,} of the {len(ports):,}" if known else "none of the"
    raise FaultsError(
        f"the network has {share} ports of the logs, and no "
        f"{printable(f'{first.node} port {first.port}' if first.port else first.node)}; give the "
        f"network of these logs, whose links have names such as {links.names[0]}, or the lines of "
        "its links alone"
    )


def _periods(given: list[str], file: Path | None) -> list[failure.Period]:
    return [
        *map(faults_periods.period, given),
        *(faults_periods.read_periods(file) if file else []),
    ]


def _seconds(name: str, text: str) -> float:
    """Return the time of an option in seconds. Raises FaultsError."""
    found = table_log.seconds(text)
    if found is None:
        raise FaultsError(f'{name} {text} is not a time; write it such as "30 s" or "5 min"')
    return found


def _numbers(text: str, network: faults_network.Network) -> tuple[int, ...]:
    """Return the numbers of broken cables in --failures. Raises FaultsError."""
    parts = [part.strip() for part in text.split(",")]
    most = network.between_switches
    if all(part.isdecimal() and len(part) < 9 and 1 <= int(part) <= most for part in parts):
        return tuple(sorted({int(part) for part in parts}))
    raise FaultsError(
        f"--failures {text[:80]}: expected numbers of broken cables between switches, from 1 to "
        f"{most:,}, such as 1,3,5"
    )


def _note_omissions(
    logs: change.LogContent, found: failure.FailureHistory, links: faults_links.Links
) -> None:
    """Print notes on unusable or ambiguous entries of the logs."""
    odd = {name: number for name, number in logs.lines.items() if number}
    if number := odd.get(MALFORMED):
        note(
            f"{plural(number, 'line was', 'lines were')} malformed and left out, the first is "
            f"{logs.first_malformed}"
        )
    if number := odd.get("too long"):
        note(f"{plural(number, 'line was', 'lines were')} too long and cut")
    if number := odd.get("clock step"):
        note(f"a clock was set back {plural(number, 'time')}; durations across a step are wrong")
    if number := odd.get(table_log.BARE_DURATION):
        what = plural(number, "duration without a unit was", "durations without a unit were")
        note(f"{what} taken as seconds")
    if number := found.unpaired["unknown port"]:
        what = plural(number, "change was", "changes were")
        note(f"{what} of ports that the network does not have")
    if number := sum(links.name(each.port) is None for each in logs.counters):
        note(f"counters of {plural(number, 'port')} that the network does not have were left out")
    if logs.changes and not any(each.is_up for each in logs.changes):
        note("no link comes up in these logs; durations are lower bounds")
    if not links.names and logs.cables and any(not each.port.port for each in logs.changes):
        note(
            "a host that OpenSM names and the port of its switch count as two links; give "
            "--network to have them as one"
        )
    if (number := odd.get(opensm_log.NAMELESS)) and not any(
        each.port.port for each in logs.changes
    ):
        note(
            f"OpenSM reports {plural(number, 'change')} of switches' links without the port; run "
            "it with -D 0x0f to have ports named"
        )
