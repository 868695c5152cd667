"""`daqloom runs`: records of real and simulated runs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from daqloom.base import lazy
from daqloom.base.claims import is_claimed
from daqloom.base.words import duration, printable
from daqloom.cli.app import group
from daqloom.cli.console.columns import print_table
from daqloom.cli.console.terminal import check_figures, note, print_json
from daqloom.cli.options import Json, JsonList, argument, figures, flag, option
from daqloom.results.errors import MeasureError
from daqloom.results.metrics import for_people
from daqloom.scenario.errors import ScenarioError

with lazy.imports():
    from daqloom.control.persistence import store
    from daqloom.control.record import explain as record_explain
    from daqloom.control.record import folders, past, record, series, summary
    from daqloom.report import matplotlib_renderer
    from daqloom.report.system import run_figure

ENDINGS = (".png", ".pdf", ".svg")
MOST_EVENTS = 20
NEAR_S = 1800.0
"""Time around the given one for which bins of units are read."""
DASH = "–"

app = group(
    help="""Look back at runs: each real run keeps a record in a folder of its own.

    A run is named by its ID, the beginning of one, or `last`. The folders are in $DAQLOOM_RUNS, or
    else daqloom/runs in $XDG_STATE_HOME (~/.local/state).

    \b
    Examples:
      daqloom runs list
      daqloom runs show last
      daqloom runs explain last --at 03:00
      daqloom runs draw last --figure run.png
      daqloom runs compare 20261130-1905 20261130-2005
      daqloom runs tag last good
      daqloom runs remove 20261130-190500-laptop
    """
)
Run = Annotated[str, argument("ID", "ID of a run, the beginning of one, or `last`.")]


def _record(run: past.Past) -> dict[str, Any]:
    """Return a run as a JSON object."""
    sums, about = run.summary, run.about
    # Units without a run control may wait for another one.
    is_unattended = run.state == "abandoned" and store.has_units(run.folder)
    return {
        "id": run.folder.name,
        "number": sums.number,
        "scenario": about.scenario,
        "method": about.method,
        "state": "unattended" if is_unattended else run.state,
        "began": about.began.isoformat(timespec="seconds"),
        "length_s": sums.length_s,
        "units": about.units,
        "events": sums.events,
        "event_rate_hz": sums.event_rate_hz,
        "throughput_bps": sums.throughput_bps,
        "events_lost": sums.lost,
        "units_lost": sums.units_lost,
        "regroupings": sums.regroupings,
        "tags": list(run.tags),
    }


def _runs() -> Iterator[past.Past]:
    """Yield all runs, the newest first, with a note for each broken folder."""
    for folder in folders.run_folders():
        try:
            yield past.read_run(folder)
        except MeasureError as error:
            note(str(error))


def _find(run: str) -> past.Past:
    return past.read_run(folders.find_run_folder(run))


def _cells(run: past.Past) -> dict[str, str]:
    """Return a run as labels and texts."""
    row, sums = _record(run), run.summary
    return {
        "id": row["id"],
        "number": DASH if sums.number is None else str(sums.number),
        "scenario": row["scenario"],
        "start": record.local_time(run.about.began),
        "length": duration(sums.length_s),
        "state": row["state"],
        "events": f"{sums.events:,}",
        "mean rate": for_people("event_rate_hz", sums.event_rate_hz),
        "throughput": for_people("throughput_bps", sums.throughput_bps),
        "lost": f"{sum(sums.lost.values()):,}",
        "tags": ", ".join(run.tags),
    }


@app.command("list")
def list_(
    tag: Annotated[str | None, option("TAG", "List the runs with this tag alone.")] = None,
    json: JsonList = False,
) -> None:
    """List all runs, the newest first."""
    runs = [run for run in _runs() if tag is None or tag in run.tags]
    if json:
        print_json({"schema": 1, "runs": [_record(run) for run in runs]})
    elif not runs:
        print(f"there are no runs in {folders.runs_root()}")
    else:
        rows = [_cells(run) for run in runs]
        print_table(list(rows[0]), [list(row.values()) for row in rows], words=[2, 3, 4, 5, 10])


@app.command()
def show(run: Run, json: Json = False) -> None:
    """Show a run: its sums, and its last events."""
    found = _find(run)
    events = list(past.read_events(found.folder))[-MOST_EVENTS:]
    if json:
        print_json({"schema": 1, **_record(found), "events_of_run": events})
        return
    cells = _cells(found) | {"lost": summary.losses(found.summary.lost) or "0"}
    about = found.about
    cells["system"] = f"{about.units} units, {about.protocol}, {about.transport}"
    cells["folder"] = str(found.folder)
    if found.summary.failure:
        cells["failure"] = found.summary.failure
    for name, cell in cells.items():
        print(f"{name:11} {printable(cell)}")
    if events:
        print()
    for each in events:
        print(f"{record.local_time(about.began, each['time_s'])}  {each['text']}")


@app.command()
def compare(first: Run, second: Run, json: Json = False) -> None:
    """Compare two runs side by side."""
    runs = [_find(first), _find(second)]
    if json:
        print_json({"schema": 1, "runs": [_record(run) for run in runs]})
        return
    cells = [_cells(run) | _further_cells(run) for run in runs]
    rates = [run.summary.event_rate_hz for run in runs]
    rows = [[name, cells[0][name], cells[1][name]] for name in cells[0]]
    print_table(["", "first", "second"], rows, words=[1, 2])
    if all(rates):
        print(f"the second built {rates[1] / rates[0]:.1%} of the rate of the first")


def _further_cells(run: past.Past) -> dict[str, str]:
    """Return further labels and texts of a run for a comparison."""
    return {
        "losses": summary.losses(run.summary.lost) or "none",
        "units lost": str(run.summary.units_lost),
        "regroupings": str(run.summary.regroupings),
        "units": str(run.about.units),
        "transport": run.about.transport,
        "version": run.about.version,
    }


def _series(run: past.Past, kind: series.Kind, *between_s: float) -> series.Columns:
    columns, broken = series.read_series(run.folder, kind, *between_s)
    for sentence in broken:
        note(sentence)
    return columns


@app.command()
def draw(
    run: Run, figure: Annotated[list[Path], figures("Write event rate, throughput and members")]
) -> None:
    """Draw event rate, throughput and members over the time of a run."""
    check_figures(figure, ENDINGS)
    found = _find(run)
    columns = _series(found, series.RUN)
    if not len(columns["time_s"]):
        raise MeasureError(f"{found.folder} has no series, so there is nothing to draw")
    events = list(past.read_events(found.folder))
    title = f"{found.about.scenario}, {record.local_time(found.about.began)}"
    for path in figure:
        matplotlib_renderer.save(run_figure.figure(title, columns, events), path)


@app.command()
def explain(
    run: Run,
    at: Annotated[
        str,
        option("TIME", "Time of day (03:00, local), ISO time, or seconds since the start.", "--at"),
    ],
    json: Json = False,
) -> None:
    """Explain what changed in a run around a time, the best explanation first."""
    found = _find(run)
    columns = _series(found, series.RUN)
    ends = columns["time_s"] + columns["width_s"]
    end_s = max(found.summary.length_s, float(ends[-1]) if len(ends) else 0.0)
    at_s = past.time_of(found, at, end_s)
    events = list(past.read_events(found.folder))
    units = _series(found, series.UNITS, at_s - NEAR_S, at_s + NEAR_S)
    findings = record_explain.explain(found, columns, units, events, at_s)
    if json:
        rows = [
            {"about": f.about, "weight": round(f.weight, 4), "text": f.sentence} for f in findings
        ]
        print_json({"schema": 1, "id": found.folder.name, "at_s": at_s, "findings": rows})
        return
    for each in findings:
        print(each.sentence)


@app.command()
def tag(
    run: Run,
    tags: Annotated[list[str], argument("TAG...", "Tags to add.")] = [],  # noqa: B006
    remove: Annotated[list[str] | None, option("TAG", "Tag to remove; may be repeated.")] = None,
) -> None:
    """Add or remove tags of a run, and print all."""
    print(", ".join(past.set_tags(_find(run), tags, remove or [])) or "no tags")


@app.command(saved="complete folders are removed, others are whole")
def remove(
    runs: Annotated[list[str], argument("ID...", "IDs of runs, complete or their beginnings.")],
    yes: Annotated[bool, flag("Do not ask.", "--yes")] = False,
) -> None:
    """Remove runs with their records, but none that is going on."""
    found = list(dict.fromkeys(folders.find_run_folder(run) for run in runs))
    if outside := [folder for folder in found if folder.parent != folders.runs_root()]:
        raise MeasureError(f"{outside[0]} is not in the folder of runs; remove it by yourself")
    if live := [folder.name for folder in found if is_claimed(folder)]:
        raise MeasureError(f"{live[0]} is going on; end it first: `daqloom control exit`")
    if unattended := [folder for folder in found if store.has_units(folder)]:
        raise MeasureError(
            f"{unattended[0].name} has units that go on without a run control; continue it by "
            f"`daqloom control --folder {unattended[0]}` and end it, or wait until they end"
        )
    question = f"remove {', '.join(folder.name for folder in found)}?"
    if not yes and not (sys.stdin.isatty() and typer.confirm(question)):
        raise ScenarioError("nothing was removed; --yes removes without asking")
    for folder in found:
        shutil.rmtree(folder)
        print(f"removed {folder.name}")
